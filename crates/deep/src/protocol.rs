//! What the monitor and its reader say to each other: one packet each way, in little endian.
//!
//! Both sides decode without panics and within limits. Neither allocates to encode.

use crate::problem::Problem;
use crate::table::{MAX_ENTRIES, RawTable};
use crate::walk::Walked;
use model::{Arch, DeepUnavailable, TelemetryTag};
use std::time::Duration;

/// The longest packet.
pub const LONGEST: usize = 4096;
/// The longest path of a list of holders.
pub const LONGEST_PATH: usize = 512;

const READ: u8 = 1;
const FORBIDDEN_CALL: u8 = 2;
const TABLE: u8 = 1;
const REFUSED: u8 = 2;
/// Bytes before the path, the entries or the text.
const REQUEST_HEAD: usize = 8;
const ANSWER_HEAD: usize = 32;

/// What the reader is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask<'a> {
    /// The table of a device.
    Read {
        /// Its number.
        number: u32,
        /// Its generation.
        arch: Arch,
        /// The driver's list of who holds it.
        pids: Option<&'a [u8]>,
    },
    /// To do what it may not: tests see that this ends it.
    ForbiddenCall,
}

impl<'a> Ask<'a> {
    /// Writes it, and says how long it is. A path that is too long is none.
    pub fn encode(&self, into: &mut [u8; LONGEST]) -> usize {
        match *self {
            Ask::ForbiddenCall => {
                into[0] = FORBIDDEN_CALL;
                1
            }
            Ask::Read { number, arch, pids } => {
                let path = pids.unwrap_or_default();
                let path = &path[..path.len().min(LONGEST_PATH)];
                (into[0], into[1]) = (READ, arch as u8);
                into[2..4].copy_from_slice(&(path.len() as u16).to_le_bytes());
                into[4..8].copy_from_slice(&number.to_le_bytes());
                into[REQUEST_HEAD..][..path.len()].copy_from_slice(path);
                REQUEST_HEAD + path.len()
            }
        }
    }

    /// Reads one.
    pub fn decode(packet: &'a [u8]) -> Option<Ask<'a>> {
        if packet == [FORBIDDEN_CALL] {
            return Some(Ask::ForbiddenCall);
        }
        let (head, path) = packet.split_first_chunk::<REQUEST_HEAD>()?;
        let arch = *Arch::ALL.get(usize::from(head[1]))?;
        let length = usize::from(u16_at(head, 2)?);
        let is_path = path.len() == length && length <= LONGEST_PATH && !path.contains(&0);
        let pids = (!path.is_empty()).then_some(path);
        (head[0] == READ && is_path).then_some(Ask::Read { number: u32_at(head, 4)?, arch, pids })
    }
}

/// What goes with every answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Whether the node was opened for this answer.
    pub opened: bool,
    /// Whether the kernel filters the reader's system calls.
    pub filtered: bool,
    /// How often the reader has opened a node.
    pub opens: u32,
    /// From the first look at the holders until the node was closed.
    pub took: Duration,
}

/// The answer of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it took.
    pub effort: Effort,
    /// The table and how it was read, or why there is none.
    pub outcome: Result<(RawTable, Walked), (DeepUnavailable, i32, String)>,
}

/// Writes an answer, and says how long it is.
pub fn encode_answer(
    effort: Effort,
    outcome: Result<(Arch, Walked, &[TelemetryTag]), Problem>,
    into: &mut [u8; LONGEST],
) -> usize {
    into[..ANSWER_HEAD].fill(0);
    into[2] = u8::from(effort.opened) | u8::from(effort.filtered) << 1;
    into[4..8].copy_from_slice(&effort.opens.to_le_bytes());
    into[8..16].copy_from_slice(&(effort.took.as_micros() as u64).to_le_bytes());
    match outcome {
        Ok((arch, walked, entries)) => {
            let entries = &entries[..entries.len().min(MAX_ENTRIES as usize)];
            (into[0], into[1]) = (TABLE, arch as u8);
            into[16..20].copy_from_slice(&walked.version.to_le_bytes());
            into[20..24].copy_from_slice(&walked.reads.to_le_bytes());
            into[24..28].copy_from_slice(&walked.pending.to_le_bytes());
            into[28..30].copy_from_slice(&(entries.len() as u16).to_le_bytes());
            for (entry, place) in entries.iter().zip(into[ANSWER_HEAD..].chunks_exact_mut(6)) {
                place[..2].copy_from_slice(&entry.tag.to_le_bytes());
                place[2..].copy_from_slice(&entry.value.to_le_bytes());
            }
            ANSWER_HEAD + 6 * entries.len()
        }
        Err(problem) => {
            (into[0], into[1]) = (REFUSED, problem.why as u8);
            into[16..20].copy_from_slice(&problem.errno.to_le_bytes());
            into[20..24].copy_from_slice(&problem.word.to_le_bytes());
            into[28..30].copy_from_slice(&(problem.what.len() as u16).to_le_bytes());
            into[ANSWER_HEAD..][..problem.what.len()].copy_from_slice(problem.what.as_bytes());
            ANSWER_HEAD + problem.what.len()
        }
    }
}

impl Answer {
    /// Reads one.
    pub fn decode(packet: &[u8]) -> Option<Answer> {
        let (head, rest) = packet.split_first_chunk::<ANSWER_HEAD>()?;
        let took = Duration::from_micros(u64::from_le_bytes(*head[8..].first_chunk()?));
        let (opened, filtered) = (head[2] & 1 != 0, head[2] & 2 != 0);
        let effort = Effort { opened, filtered, opens: u32_at(head, 4)?, took };
        let count = usize::from(u16_at(head, 28)?);
        let outcome = match head[0] {
            TABLE if count <= MAX_ENTRIES as usize && rest.len() == 6 * count => {
                let arch = *Arch::ALL.get(usize::from(head[1]))?;
                let version = u32_at(head, 16)?;
                let entry = |place| Some(TelemetryTag { tag: u16_at(place, 0)?, value: u32_at(place, 2)? });
                let entries = rest.chunks_exact(6).map(entry).collect::<Option<_>>()?;
                let walked = Walked { version, reads: u32_at(head, 20)?, pending: u32_at(head, 24)? };
                Ok((RawTable { arch, version, entries }, walked))
            }
            REFUSED if rest.len() == count => {
                let why = *DeepUnavailable::ALL.get(usize::from(head[1]))?;
                let mut what = std::str::from_utf8(rest).ok()?.to_owned();
                match u32_at(head, 20)? {
                    0 => {}
                    word => what = format!("{what} ({word:#x})"),
                }
                Err((why, u32_at(head, 16)? as i32, what))
            }
            _ => return None,
        };
        Some(Answer { effort, outcome })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_asked_arrives((number, is_wormhole) in any::<(u32, bool)>(), path in vec(1_u8.., 0..LONGEST_PATH)) {
            let arch = if is_wormhole { Arch::Wormhole } else { Arch::Blackhole };
            let ask = Ask::Read { number, arch, pids: (!path.is_empty()).then_some(&path) };
            let mut packet = [0; LONGEST];
            let length = ask.encode(&mut packet);
            prop_assert_eq!(Ask::decode(&packet[..length]), Some(ask));
            prop_assert_eq!(Ask::decode(&packet[..length - 1]), None);
        }

        #[test]
        fn what_is_answered_arrives(
            (version, reads, pending, opens, micros) in any::<(u32, u32, u32, u32, u32)>(),
            (opened, filtered, why) in any::<(bool, bool, usize)>(),
            entries in vec((1_u16.., any::<u32>()), 0..256),
        ) {
            let effort = Effort { opened, filtered, opens, took: Duration::from_micros(micros.into()) };
            let walked = Walked { version, reads, pending };
            let entries: Vec<TelemetryTag> = entries.iter().map(|&(tag, value)| TelemetryTag { tag, value }).collect();
            let mut packet = [0; LONGEST];
            let length = encode_answer(effort, Ok((Arch::Blackhole, walked, &entries)), &mut packet);
            let table = RawTable { arch: Arch::Blackhole, version, entries };
            prop_assert_eq!(Answer::decode(&packet[..length]), Some(Answer { effort, outcome: Ok((table, walked)) }));
            prop_assert_eq!(Answer::decode(&packet[..length - 1]), None);
            let why = DeepUnavailable::ALL[why % DeepUnavailable::ALL.len()];
            let length = encode_answer(effort, Err(Problem { why, what: "open", errno: 11, word: 0 }), &mut packet);
            let outcome = Err((why, 11, "open".to_owned()));
            prop_assert_eq!(Answer::decode(&packet[..length]), Some(Answer { effort, outcome }));
        }

        #[test]
        fn any_packet_is_decoded_or_refused(packet in vec(prop_oneof![0_u8..3, any::<u8>()], 0..200)) {
            let _ = Ask::decode(&packet);
            let _ = Answer::decode(&packet);
        }
    }
}
