//! One message, byte by byte: little-endian, packed.
//!
//! ```text
//! offset  bytes
//! 0       1      type, see [`Operation`]; never zero
//! 1       3      zero
//! 4       4      i32 device; −1 in a question about a device asks for their number
//! 8       8      u64 bytes
//! 16      1      type of the buffer
//! 17      3      zero
//! 20      4      i32 pid that the sender claims to have
//! 24      8      u64 id of the buffer
//! 32      8      u64 time, ns since 1970
//! 40      72     answers only, and zero in requests: allocated bytes of DRAM, L1, L1_SMALL, TRACE (4 × u64), total DRAM and L1
//!                (2 × u64), architecture, DRAM channels, bytes per channel, L1 bytes per core, available, devices (6 × u32)
//! ```
//!
//! The first 72 bytes are the oldest struct. The longest, of 144 bytes, has CB and KERNEL (2 × u64) after TRACE, and at its end four u32 about the ring buffer of
//! kernels: total, used, programs, zero.

use crate::book::MemoryKind;

/// Bytes of a message that say something in a request.
pub(super) const HEADER: usize = 40;

/// How long a sender's messages are. An answer is as long as the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// 72 bytes, without device information, as the oldest scripts send them.
    Oldest,
    /// 112 bytes, as the Python client and the monitor send them.
    Short,
    /// 144 bytes, as instrumented builds of tt-metal send them.
    Long,
}

impl Length {
    pub(super) const ALL: [Length; 3] = [Length::Oldest, Length::Short, Length::Long];

    /// In bytes.
    pub fn bytes(self) -> usize {
        match self {
            Length::Oldest => 72,
            Length::Short => 112,
            Length::Long => 144,
        }
    }
}

/// What a message asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// 1, and 8 for circular buffers, and 10 for kernels: this much was allocated.
    Allocate(MemoryKind),
    /// 2, and 9 and 11: it was freed.
    Free(Option<MemoryKind>),
    /// 3: how much is allocated on a device?
    Query,
    /// 5: print what is left.
    DumpRemaining,
    /// 6: what is this device?
    DeviceInfo,
    /// 12: print the kernels.
    DumpKernels,
    /// An allocation in the host's memory, which is none of the device's.
    HostMemory,
}

/// A message from a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PocRequest {
    /// The requested operation.
    pub operation: Operation,
    /// The device, by its number.
    pub device: i32,
    /// How many bytes.
    pub bytes: u64,
    /// The process id that the sender claims.
    pub pid: i32,
    /// Which buffer.
    pub buffer: u64,
    /// When, ns since 1970. Zero when the sender does not say.
    pub time: u64,
}

/// Why a message was not understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// There is no such type.
    #[error("unknown message type {0}")]
    Type(u8),
    /// There is no such type of buffer.
    #[error("unknown buffer type {0}")]
    Buffer(u8),
    /// A server's message came from a client.
    #[error("message type {0} is an answer, not a question")]
    Answer(u8),
}

impl PocRequest {
    /// Decodes the first 40 bytes of a message.
    pub(super) fn decode(header: &[u8; HEADER], length: Length) -> Result<PocRequest, FrameError> {
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let operation = match header[0] {
            1 => match kind(header[16], length)? {
                Some(kind) => Operation::Allocate(kind),
                None => Operation::HostMemory,
            },
            2 => Operation::Free(None),
            3 => Operation::Query,
            5 => Operation::DumpRemaining,
            6 => Operation::DeviceInfo,
            8 => Operation::Allocate(MemoryKind::Cb),
            9 => Operation::Free(Some(MemoryKind::Cb)),
            10 => Operation::Allocate(MemoryKind::Kernel),
            11 => Operation::Free(Some(MemoryKind::Kernel)),
            12 => Operation::DumpKernels,
            answer @ (4 | 7) => return Err(FrameError::Answer(answer)),
            other => return Err(FrameError::Type(other)),
        };
        Ok(PocRequest {
            operation,
            device: u32_at(4) as i32,
            bytes: u64_at(8),
            pid: u32_at(20) as i32,
            buffer: u64_at(24),
            time: u64_at(32),
        })
    }
}

/// What a type of buffer means. The two kinds of senders number them differently.
fn kind(number: u8, length: Length) -> Result<Option<MemoryKind>, FrameError> {
    Ok(match (number, length) {
        (0, _) => Some(MemoryKind::Dram),
        (1, _) => Some(MemoryKind::L1),
        (2, Length::Long) => None,
        (2, _) | (3, Length::Long) => Some(MemoryKind::L1Small),
        (3 | 4, _) => Some(MemoryKind::Trace),
        (other, _) => return Err(FrameError::Buffer(other)),
    })
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceInfo {
    /// Bytes of DRAM.
    pub total_dram: u64,
    /// Bytes of L1.
    pub total_l1: u64,
    /// 0 not known, 2 Wormhole, 3 Blackhole.
    pub architecture: u32,
    /// Channels of DRAM.
    pub dram_channels: u32,
    /// Bytes of each.
    pub dram_per_channel: u32,
    /// Bytes of L1 of a core.
    pub l1_per_core: u32,
    /// Whether there is such a device.
    pub is_available: bool,
    /// How many devices there are.
    pub devices: u32,
}

/// A message to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PocAnswer {
    /// To [`Operation::Query`]: allocated bytes by [`MemoryKind`].
    Allocated {
        /// The device that was asked about.
        device: i32,
        /// Its bytes.
        bytes: [u64; 6],
    },
    /// To [`Operation::DeviceInfo`].
    Device {
        /// The device that was asked about.
        device: i32,
        /// What it is.
        info: DeviceInfo,
    },
}

impl PocAnswer {
    /// As it goes over the wire.
    pub fn encode(&self, length: Length) -> Vec<u8> {
        let (number, device, bytes, info) = match *self {
            PocAnswer::Allocated { device, bytes } => (4, device, bytes, DeviceInfo::default()),
            PocAnswer::Device { device, info } => (7, device, [0; 6], info),
        };
        let mut message = vec![0; HEADER];
        message[0] = number;
        message[4..8].copy_from_slice(&device.to_le_bytes());
        let kinds = if length == Length::Long { 6 } else { 4 };
        let mut long = |value: u64| message.extend_from_slice(&value.to_le_bytes());
        bytes.iter().take(kinds).copied().for_each(&mut long);
        long(info.total_dram);
        long(info.total_l1);
        let rest = [
            info.architecture,
            info.dram_channels,
            info.dram_per_channel,
            info.l1_per_core,
            info.is_available.into(),
            info.devices,
        ];
        message.extend(rest.iter().flat_map(|value| value.to_le_bytes()));
        message.resize(length.bytes(), 0);
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(number: u8, buffer_type: u8) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[0] = number;
        header[4..8].copy_from_slice(&3i32.to_le_bytes());
        header[8..16].copy_from_slice(&4096u64.to_le_bytes());
        header[16] = buffer_type;
        header[20..24].copy_from_slice(&4711i32.to_le_bytes());
        header[24..32].copy_from_slice(&0x8000u64.to_le_bytes());
        header[32..40].copy_from_slice(&7u64.to_le_bytes());
        header
    }

    #[test]
    fn every_field_of_a_request_has_its_place() {
        let request = PocRequest::decode(&header(1, 0), Length::Short).unwrap();
        let operation = Operation::Allocate(MemoryKind::Dram);
        assert_eq!(request, PocRequest { operation, device: 3, bytes: 4096, pid: 4711, buffer: 0x8000, time: 7 });
    }

    #[test]
    fn the_two_kinds_of_senders_number_buffers_differently() {
        let kind = |number, length| PocRequest::decode(&header(1, number), length).map(|request| request.operation);
        assert_eq!(kind(2, Length::Short), Ok(Operation::Allocate(MemoryKind::L1Small)));
        assert_eq!(kind(3, Length::Short), Ok(Operation::Allocate(MemoryKind::Trace)));
        assert_eq!(kind(2, Length::Long), Ok(Operation::HostMemory));
        assert_eq!(kind(3, Length::Long), Ok(Operation::Allocate(MemoryKind::L1Small)));
        assert_eq!(kind(4, Length::Long), Ok(Operation::Allocate(MemoryKind::Trace)));
        assert_eq!(kind(5, Length::Long), Err(FrameError::Buffer(5)));
    }

    #[test]
    fn what_is_no_request_is_named() {
        let decoded = |number| PocRequest::decode(&header(number, 0), Length::Long).map(|request| request.operation);
        assert_eq!(decoded(4), Err(FrameError::Answer(4)));
        assert_eq!(decoded(13), Err(FrameError::Type(13)));
        assert_eq!(decoded(0), Err(FrameError::Type(0)));
    }

    #[test]
    fn an_answer_is_as_long_as_the_question() {
        let answer = PocAnswer::Allocated { device: 1, bytes: [10, 20, 30, 40, 50, 60] };
        let (short, long) = (answer.encode(Length::Short), answer.encode(Length::Long));
        assert_eq!((short.len(), long.len()), (112, 144));
        let u64_at = |message: &[u8], at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
        assert_eq!([40, 48, 56, 64, 72].map(|at| u64_at(&short, at)), [10, 20, 30, 40, 0]);
        assert_eq!([40, 48, 56, 64, 72, 80].map(|at| u64_at(&long, at)), [10, 20, 30, 40, 50, 60]);
        let info =
            DeviceInfo { total_dram: 9, architecture: 2, devices: 8, is_available: true, ..DeviceInfo::default() };
        let short = PocAnswer::Device { device: -1, info }.encode(Length::Short);
        let u32_at = |at: usize| u32::from_le_bytes(short[at..at + 4].try_into().unwrap());
        assert_eq!((short[0], u32_at(4), u64_at(&short, 72)), (7, u32::MAX, 9));
        assert_eq!([88, 104, 108].map(u32_at), [2, 1, 8]);
        let long = PocAnswer::Device { device: 0, info }.encode(Length::Long);
        assert_eq!((u64_at(&long, 88), long[104], long[124]), (9, 2, 8));
        let oldest = answer.encode(Length::Oldest);
        assert_eq!((oldest.len(), u64_at(&oldest, 40), u64_at(&oldest, 64)), (72, 10, 40));
    }
}
