//! The service's own socket: questions, and a process that hands its book over.

use crate::book::keeper::{Hand, Keeper};
use anyhow::{Context, bail};
use ledger::book::{Chips, MemoryKind, NewBuffer};
use ledger::wire::{Hello, Request, frame};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{BufRead, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection.
pub struct Native {
    stream: UnixStream,
    answer: Vec<u8>,
}

impl Native {
    pub fn connect(path: &Path) -> anyhow::Result<Native> {
        let mut native = Native { stream: UnixStream::connect(path)?, answer: vec![0; 32 << 20] };
        native.ask(&Request::Hello(Hello::from("xtask bench")))?;
        Ok(native)
    }

    /// Sends a request and returns the reply, and the milliseconds until its last byte arrived.
    pub fn ask(&mut self, request: &Request) -> anyhow::Result<(&[u8], f64)> {
        let question = frame(request)?;
        let began = Instant::now();
        self.stream.write_all(&question)?;
        self.hear()?;
        let time = began.elapsed().as_secs_f64() * 1000.0;
        Ok((&self.answer, time))
    }

    /// The next answer.
    pub fn hear(&mut self) -> anyhow::Result<()> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        self.answer.resize(u32::from_le_bytes(length) as usize, 0);
        Ok(self.stream.read_exact(&mut self.answer)?)
    }

    /// Hands over the book of this process, and waits until it was taken.
    fn hand_over(&mut self, book: &impl AsFd) -> anyhow::Result<()> {
        let text = frame(&Request::Book { pid: std::process::id() })?;
        let files = [book.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !beside.push(SendAncillaryMessage::ScmRights(&files)) {
            bail!("no room for a file");
        }
        sendmsg(&self.stream, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL)?;
        let (answer, _) = self.ask(&Request::Devices {})?;
        if !answer.starts_with(br#"{"devices""#) {
            bail!("the service said {}", String::from_utf8_lossy(answer));
        }
        Ok(())
    }
}

/// `xtask hold SOCKET CHIP BUFFERS`: hands over a book of so many. `pace EVENTS SECONDS` makes so many a second, and says how many it
/// has made.
pub fn hold(path: &str, chip: u64, live: u64) -> anyhow::Result<()> {
    let keeper = Keeper::on(chip)?;
    // Sizes in no order.
    for id in 1..=live {
        let per_bank = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50) * 32 + 32;
        keeper.writer.allocate(&NewBuffer {
            id: id << 20,
            chips: Chips::one(0),
            kind: MemoryKind::Dram,
            logical: per_bank * 12 - 16,
            per_bank,
            banks: 12,
            address: id << 14,
            page: 2048,
            layout: 0,
            owner: 1,
            label: b"",
        });
    }
    Native::connect(Path::new(path))?.hand_over(keeper.writer.file())?;
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (rate, seconds) = line.strip_prefix("pace ").and_then(|words| words.split_once(' ')).context("pace")?;
        println!("OK {}", pace(&keeper, rate.parse()?, Duration::from_secs(seconds.parse()?)));
    }
    Ok(())
}

/// Allocates and frees, a few at a time.
fn pace(keeper: &Keeper, rate: u64, time: Duration) -> u64 {
    const PAUSE: Duration = Duration::from_millis(5);
    let mut hand = Hand::new(keeper, 1, 1000);
    let (began, mut events) = (Instant::now(), 0);
    loop {
        let elapsed = began.elapsed();
        if elapsed >= time {
            return events;
        }
        let due = (elapsed.as_secs_f64() * rate as f64) as u64;
        // Whoever is late catches up, but not for ever.
        let pairs = (due.saturating_sub(events) / 2).min(rate / 10);
        hand.churn(pairs as usize);
        events += 2 * pairs;
        std::thread::sleep(PAUSE);
    }
}
