//! The blocks of dispatch telemetry, as tt-metal lays them out (`dispatch_telemetry_types.hpp`, version 1).
//!
//! Numbers are little-endian. A dispatch core has 248 bytes. These are the ones that count:
//!
//! | offset | type | |
//! |---|---|---|
//! | 0 | u32 | version, 1 |
//! | 4 | u32 | signature `DISP`; 0 until the device is open |
//! | 16 | u32 | programs; goes on with 0 after the largest number |
//! | 24 | u64 | timestamp in ticks, written by the kernel in every loop |
//! | 40 | u64 | ticks in which any core worked, up to the last time that all were idle |
//! | 48 | u64 | when the work that runs now began, or 0 |
//!
//! A prefetch core has 20 bytes, which begin with the version and the signature `PREF`.

use super::Unknown;

/// The most that may be read at once: Wormhole's driver takes the DMA engine from 32 bytes on.
pub const LONGEST_READ: usize = 28;

/// Which kind of core a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryCore {
    /// Counts work.
    Dispatch,
    /// Fetches commands from the host.
    Prefetch,
}

/// The part of a block that identifies it: version and signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head;

/// The part of a dispatch core's block that has the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedWork {
    /// Ticks of finished work.
    pub finished: u64,
    /// When the work that runs now began; 0 when there is none.
    pub start: u64,
}

/// The part of a dispatch core's block that has the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Programs so far.
    pub programs: u32,
    /// The time in ticks.
    pub ticks: u64,
}

const VERSION: u32 = 1;

impl Head {
    /// Where it is in a block.
    pub const OFFSET: u64 = 0;

    /// Checks that this is the block of such a core.
    pub fn check(bytes: [u8; 8], core: TelemetryCore) -> Result<Head, Unknown> {
        let [version, signature] = [word(&bytes, 0), word(&bytes, 4)];
        let expected = match core {
            TelemetryCore::Dispatch => u32::from_be_bytes(*b"DISP"),
            TelemetryCore::Prefetch => u32::from_be_bytes(*b"PREF"),
        };
        match (version, signature) {
            (u32::MAX, u32::MAX) => Err(Unknown::AllOnes),
            (VERSION, signature) if signature == expected => Ok(Head),
            (version, signature) if signature == expected => Err(Unknown::Version(version)),
            _ => Err(Unknown::NoSignature),
        }
    }
}

impl CountedWork {
    /// Where it is in a block.
    pub const OFFSET: u64 = 40;

    /// Decodes it.
    pub fn decode(bytes: [u8; 16]) -> Result<CountedWork, Unknown> {
        Ok(CountedWork { finished: counter(&bytes, 0)?, start: counter(&bytes, 8)? })
    }

    /// All ticks of work up to now, finished or not.
    ///
    /// A start counts as soon as it is written, whether workers have reported or not: tt-metal's own reader waits for that,
    /// and so loses what ran before.
    pub fn until(&self, now: Now) -> u64 {
        let running = if self.start == 0 { 0 } else { now.ticks.saturating_sub(self.start) };
        self.finished.saturating_add(running)
    }
}

impl Now {
    /// Where it is in a block.
    pub const OFFSET: u64 = 16;

    /// Decodes it.
    pub fn decode(bytes: [u8; 16]) -> Result<Now, Unknown> {
        Ok(Now { programs: word(&bytes, 0), ticks: counter(&bytes, 8)? })
    }
}

/// What a process says about its dispatch cores: the control block, packed.
///
/// | offset | type | |
/// |---|---|---|
/// | 0 | u32 | version, 1 |
/// | 4 | u32 | signature `SMC_` |
/// | 8 | u8 | flags; bit 0: slow dispatch |
/// | 9 | u32 | address of the blocks in L1 |
/// | 13 | u8 | number of command queues, up to 3 |
/// | 14 | 3 × 12 | cores of each queue |
/// | 50 | u16 | number of worker cores; 0.79 and later |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// Address of the blocks in L1.
    pub address: u32,
    /// The queues that have cores.
    pub queues: [Option<QueueCores>; QUEUES],
    /// Absent before 0.79.
    pub workers: Option<u16>,
}

/// Command queues that a control block has room for.
pub const QUEUES: usize = 3;

/// Bytes of a control block in all releases.
pub const CONTROL_BYTES: usize = 50;

/// The cores of a command queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueCores {
    /// Fetches commands.
    pub prefetch: CoreAt,
    /// Counts the work.
    pub dispatch: CoreAt,
}

/// The translated coordinates of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreAt {
    /// Column.
    pub x: u16,
    /// Row.
    pub y: u16,
}

/// Bytes of the cores of one queue.
pub const QUEUE_BYTES: usize = 12;

impl QueueCores {
    /// Decodes the cores of a queue: prefetch, dispatch, and the subordinate, which shares the dispatch core's block.
    pub fn decode(bytes: [u8; QUEUE_BYTES]) -> Option<QueueCores> {
        Some(QueueCores { prefetch: CoreAt::decode(word(&bytes, 0))?, dispatch: CoreAt::decode(word(&bytes, 4))? })
    }
}

impl CoreAt {
    /// More than any grid has.
    const END: u32 = 64;

    fn decode(packed: u32) -> Option<CoreAt> {
        let (x, y) = (packed >> 16, packed & 0xFFFF);
        (x < CoreAt::END && y < CoreAt::END).then_some(CoreAt { x: x as u16, y: y as u16 })
    }
}

impl Control {
    /// Decodes a control block of 50 bytes, or of 52 as in 0.79 and later.
    pub fn decode(bytes: &[u8]) -> Result<Control, Unknown> {
        let block: &[u8; CONTROL_BYTES] = bytes.first_chunk().ok_or(Unknown::Control)?;
        match (word(block, 0), word(block, 4)) {
            (u32::MAX, u32::MAX) => return Err(Unknown::AllOnes),
            (version, signature) if signature == u32::from_be_bytes(*b"SMC_") && version != VERSION => {
                return Err(Unknown::Version(version));
            }
            (_, signature) if signature != u32::from_be_bytes(*b"SMC_") => return Err(Unknown::NoSignature),
            _ => {}
        }
        if block[8] & 1 != 0 {
            return Err(Unknown::SlowDispatch);
        }
        let (address, count) = (word(block, 9), usize::from(block[13]));
        if count > QUEUES || address == 0 || address == u32::MAX {
            return Err(Unknown::Control);
        }
        let mut queues = [None; QUEUES];
        for (queue, bytes) in queues.iter_mut().zip(block[14..].chunks_exact(QUEUE_BYTES)).take(count) {
            *queue = bytes.try_into().ok().and_then(QueueCores::decode);
        }
        let workers = match bytes.get(CONTROL_BYTES..CONTROL_BYTES + 2) {
            Some(&[low, high]) => Some(u16::from_le_bytes([low, high])).filter(|count| (1..=1024).contains(count)),
            _ => None,
        };
        Ok(Control { address, queues, workers })
    }
}

/// A number of four bytes; 0 where there are not that many.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u32::from_le_bytes)
}

/// A number of eight bytes. No counter of ticks gets as far as all-ones.
fn counter(bytes: &[u8], at: usize) -> Result<u64, Unknown> {
    let value = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().map_or(0, u64::from_le_bytes);
    if value == u64::MAX { Err(Unknown::AllOnes) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The beginning of recorded blocks, Wormhole and Blackhole.
    const DISPATCH: [u8; 8] = [1, 0, 0, 0, 0x50, 0x53, 0x49, 0x44];
    const PREFETCH: [u8; 8] = [1, 0, 0, 0, 0x46, 0x45, 0x52, 0x50];

    #[test]
    fn a_block_is_known_by_its_version_and_signature() {
        use TelemetryCore::{Dispatch, Prefetch};
        assert_eq!(Head::check(DISPATCH, Dispatch), Ok(Head));
        assert_eq!(Head::check(PREFETCH, Prefetch), Ok(Head));
        assert_eq!(Head::check(PREFETCH, Dispatch), Err(Unknown::NoSignature));
        assert_eq!(Head::check([0; 8], Dispatch), Err(Unknown::NoSignature), "before the device is open");
        assert_eq!(Head::check([0xFF; 8], Dispatch), Err(Unknown::AllOnes));
        let mut newer = DISPATCH;
        newer[0] = 2;
        assert_eq!(Head::check(newer, Dispatch), Err(Unknown::Version(2)));
    }

    #[test]
    fn a_counter_of_all_ones_is_no_counter() {
        let mut bytes = [0; 16];
        assert_eq!(CountedWork::decode(bytes), Ok(CountedWork { finished: 0, start: 0 }));
        bytes[8..].fill(0xFF);
        assert_eq!(CountedWork::decode(bytes), Err(Unknown::AllOnes));
        assert_eq!(Now::decode([0xFF; 16]), Err(Unknown::AllOnes));
        let now = [3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0];
        assert_eq!(Now::decode(now), Ok(Now { programs: 3, ticks: 0x0201 }));
    }

    #[test]
    fn running_work_counts_from_its_start() {
        let until = |finished, start, now| CountedWork { finished, start }.until(Now { programs: 0, ticks: now });
        assert_eq!(until(500, 0, 9_000), 500);
        assert_eq!(until(500, 8_000, 9_000), 1_500);
        assert_eq!(until(500, 9_100, 9_000), 500, "the start was written after the time was read");
    }

    /// The control block that 0.81.1 writes for a Wormhole, as far as it goes.
    fn control() -> Vec<u8> {
        let mut bytes = vec![1, 0, 0, 0, 0x5F, 0x43, 0x4D, 0x53, 0, 0x80, 0xA1, 1, 0, 1];
        for packed in [18 << 16 | 27, 19 << 16 | 27, u32::MAX, u32::MAX, u32::MAX, u32::MAX, 0, 0, 0] {
            bytes.extend(u32::to_le_bytes(packed));
        }
        bytes.extend([72, 0]);
        bytes
    }

    #[test]
    fn a_control_block_names_address_and_cores() {
        let cores = QueueCores { prefetch: CoreAt { x: 18, y: 27 }, dispatch: CoreAt { x: 19, y: 27 } };
        let expected = Control { address: 0x1A180, queues: [Some(cores), None, None], workers: Some(72) };
        assert_eq!(Control::decode(&control()), Ok(expected));
        assert_eq!(Control::decode(&control()[..50]), Ok(Control { workers: None, ..expected }), "before 0.79");
    }

    #[test]
    fn a_control_block_that_is_not_plausible_is_refused() {
        let changed = |at: usize, to: u8| {
            let mut bytes = control();
            bytes[at] = to;
            Control::decode(&bytes)
        };
        assert_eq!(Control::decode(&control()[..49]), Err(Unknown::Control));
        assert_eq!(Control::decode(&[0; 52]), Err(Unknown::NoSignature), "invalidated");
        assert_eq!(Control::decode(&[0xFF; 52]), Err(Unknown::AllOnes));
        assert_eq!(changed(0, 2), Err(Unknown::Version(2)));
        assert_eq!(changed(8, 1), Err(Unknown::SlowDispatch));
        assert_eq!(changed(13, 4), Err(Unknown::Control));
        assert_eq!(changed(50, 0).unwrap().workers, None, "not written");
        assert_eq!(changed(51, 0xFF).unwrap().workers, None, "not written");
        assert_eq!(changed(20, 200).unwrap().queues, [None; 3], "no grid is that large");
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_a_panic(bytes: Vec<u8>, head: [u8; 8], work: [u8; 16], cores: [u8; 12], now: u64) {
            let _ = Control::decode(&bytes);
            let _ = QueueCores::decode(cores);
            let _ = Head::check(head, TelemetryCore::Dispatch);
            let _ = Head::check(head, TelemetryCore::Prefetch);
            let _ = Now::decode(work);
            if let Ok(work) = CountedWork::decode(work) {
                let until = work.until(Now { programs: 0, ticks: now });
                prop_assert!(until >= work.finished);
            }
        }

        #[test]
        fn what_a_changed_control_block_says_is_plausible(changes: Vec<(u8, u8)>) {
            let mut bytes = control();
            for (at, to) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = to;
            }
            if let Ok(control) = Control::decode(&bytes) {
                prop_assert!(control.address != 0);
                prop_assert!(control.queues.iter().flatten().all(|cores| cores.dispatch.x < 64 && cores.dispatch.y < 64));
            }
        }
    }
}
