//! Messages of the proof of concept, and a process that sends them.

use anyhow::bail;
use std::io::{BufRead, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// As instrumented builds of tt-metal send them.
pub const LENGTH: usize = 144;

/// The types of messages.
pub const ALLOCATE: u8 = 1;
pub const FREE: u8 = 2;
pub const QUERY: u8 = 3;
pub const ANSWER: u8 = 4;
pub const DUMP: u8 = 5;

/// One message in DRAM.
pub fn message(number: u8, device: i32, bytes: u64, buffer: u64) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    message[0] = number;
    message[4..8].copy_from_slice(&device.to_le_bytes());
    message[8..16].copy_from_slice(&bytes.to_le_bytes());
    message[20..24].copy_from_slice(&std::process::id().to_le_bytes());
    message[24..32].copy_from_slice(&buffer.to_le_bytes());
    if number == ALLOCATE {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
        message[32..40].copy_from_slice(&now.to_le_bytes());
    }
    message
}

/// Asks for the bytes that are allocated in DRAM of a device: everything sent before has been seen to when the answer is there.
pub fn query(stream: &mut UnixStream, device: i32) -> anyhow::Result<u64> {
    stream.write_all(&message(QUERY, device, 0, 0))?;
    let mut answer = [0; LENGTH];
    stream.read_exact(&mut answer)?;
    let (_, bytes) = answer.split_at(40);
    Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

/// Buffers that live at any time while a client sends.
const LIVE: u64 = 1000;

/// `xtask poc-client SOCKET`: a client. `allocate DEVICE BUFFERS` makes so many, and `churn EVENTS JOINED` allocates and frees, so many messages
/// with one send.
pub fn run_client(path: &str) -> anyhow::Result<()> {
    let mut stream = UnixStream::connect(path)?;
    println!("ready");
    let mut next = 0;
    for line in std::io::stdin().lock().lines() {
        match *line?.split(' ').collect::<Vec<_>>() {
            ["allocate", device, count] => {
                let (device, count) = (device.parse()?, count.parse::<u64>()?);
                // Sizes in no order.
                let sizes = (0..count).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) * 32 + 32);
                let mut all = sizes.zip(1u64..).map(|(size, n)| message(ALLOCATE, device, size, n << 20)).peekable();
                while all.peek().is_some() {
                    let some: Vec<u8> = all.by_ref().take(1000).flatten().collect();
                    stream.write_all(&some)?;
                }
                query(&mut stream, device)?;
                println!("OK");
            }
            ["churn", events, joined] => {
                let began = Instant::now();
                churn(&mut stream, &mut next, events.parse()?, joined.parse()?)?;
                query(&mut stream, 0)?;
                println!("OK ns={}", began.elapsed().as_nanos());
            }
            ref other => bail!("unknown command {other:?}"),
        }
    }
    Ok(())
}

/// A buffer comes, and the one that came some time before goes.
fn churn(stream: &mut UnixStream, next: &mut u64, events: usize, joined: usize) -> anyhow::Result<()> {
    let mut together = Vec::with_capacity(joined * LENGTH);
    for event in 0..events {
        if event % 2 == 0 {
            *next += 1;
            together.extend_from_slice(&message(ALLOCATE, 0, 4096, *next << 12));
        } else {
            // The first ones were never there.
            together.extend_from_slice(&message(FREE, 0, 0, next.wrapping_sub(LIVE) << 12));
        }
        if together.len() == joined * LENGTH || event + 1 == events {
            stream.write_all(&together)?;
            together.clear();
        }
    }
    Ok(())
}
