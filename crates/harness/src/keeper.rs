//! A process that keeps a book and allocates and frees at random, without tt-metal: light enough for a thousand of them.
//!
//! ```text
//! go                    allocates and frees in bursts until the next command
//! hurry                 the same without a pause
//! boast BYTES           OK   one buffer in DRAM more, of any size
//! work PROGRAMS         OK   so many programs of a millisecond each, one after another, that have ended just now
//! launch                OK   one program more, which has not ended
//! hand SOCKET           OK   hands the book over to the service there, as the agent does
//! close                 OK   closes the file of the book, as programs do that close all that they do not know
//! stop                  OK dram=… l1=… trace=… buffers=…   what it holds, counted apart from the book
//! ```

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ledger::book::activity::{ActivitySource, DeviceRecord, Launch, monotonic};
use ledger::book::{Chips, MemoryKind, NewBuffer, Writer};
use ledger::wire::{Hello, Request, frame};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub struct Keeper {
    truth: Arc<Mutex<Truth>>,
    running: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
    /// The service that has the book.
    service: Option<UnixStream>,
}

/// The book, and beside it a plain list of what is in it.
struct Truth {
    writer: Writer,
    chip: u8,
    live: Vec<(u64, MemoryKind, u64)>,
    next_id: u64,
    random: u64,
}

impl Keeper {
    pub fn new(chip: u64, seed: u64) -> Result<Keeper> {
        let writer = Writer::create("ttmetal-harness")?;
        let chip = writer.chip(0, Some(chip)).context("no room for a chip")?;
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let truth = Truth { writer, chip, live: Vec::new(), next_id: 1, random };
        Ok(Keeper { truth: Arc::new(Mutex::new(truth)), running: None, service: None })
    }

    pub fn answer(&mut self, words: &[&str]) -> Result<String> {
        if let Some((wanted, thread)) = self.running.take() {
            wanted.store(false, Ordering::Relaxed);
            thread.thread().unpark();
            thread.join().ok().context("the thread has died")?;
        }
        match *words {
            ["go" | "hurry"] => {
                let pause = Duration::from_millis(if words == ["go"] { 300 } else { 0 });
                let wanted = Arc::new(AtomicBool::new(true));
                let (truth, go_on) = (self.truth.clone(), wanted.clone());
                let thread = thread::spawn(move || {
                    while go_on.load(Ordering::Relaxed) {
                        if let Ok(mut truth) = truth.lock() {
                            (0..50).for_each(|_| truth.step());
                        }
                        thread::park_timeout(pause);
                    }
                });
                self.running = Some((wanted, thread));
                Ok(String::new())
            }
            ["boast", bytes] => {
                self.truth()?.allocate(MemoryKind::Dram, crate::script::number("BYTES", bytes)?, 1, 0);
                Ok(String::new())
            }
            ["close"] => {
                let truth = self.truth.lock().ok().context("the thread has died")?;
                // SAFETY: the process is killed at its end, and does not close the file again.
                unsafe { rustix::io::close(truth.writer.file().as_raw_fd()) };
                Ok(String::new())
            }
            ["work", programs] => {
                self.truth()?.work(crate::script::number("PROGRAMS", programs)?);
                Ok(String::new())
            }
            ["launch"] => {
                let truth = self.truth()?;
                let operation = truth.writer.operation(b"SoftmaxDeviceOperation");
                truth.writer.launched(Launch { operation, runtime_id: Some(0xffff) }, monotonic());
                Ok(String::new())
            }
            ["hand", socket] => {
                let service = hand_over(&self.truth()?.writer, socket)?;
                self.service = Some(service);
                Ok(String::new())
            }
            ["stop"] => {
                let truth = self.truth()?;
                let sum =
                    |kind| truth.live.iter().filter(|(_, of, _)| *of == kind).map(|(.., bytes)| bytes).sum::<u64>();
                let (dram, l1, trace) = (sum(MemoryKind::Dram), sum(MemoryKind::L1), sum(MemoryKind::Trace));
                Ok(format!("dram={dram} l1={l1} trace={trace} buffers={}", truth.live.len()))
            }
            _ => bail!("unknown command {:?}", words.join(" ")),
        }
    }

    fn truth(&self) -> Result<MutexGuard<'_, Truth>> {
        self.truth.lock().ok().context("the thread has died")
    }
}

fn hand_over(book: &Writer, socket: &str) -> Result<UnixStream> {
    let service = UnixStream::connect(socket)?;
    let mut text = frame(&Request::Hello(Hello::from("ttmetal-harness")))?;
    text.extend(frame(&Request::Book { pid: std::process::id() })?);
    let files = [book.file().as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    beside.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(&service, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(service)
}

impl Truth {
    fn work(&self, programs: u64) {
        const MILLISECOND: u64 = 1_000_000;
        let (writer, chip) = (&self.writer, self.chip);
        let began = monotonic().saturating_sub(programs * MILLISECOND);
        writer.record_activity(began);
        writer.chip_opened(chip, ActivitySource::Profiler, began);
        let operation = writer.operation(b"MatmulDeviceOperation");
        for n in 0..programs {
            let (start, runtime_id) = (began + n * MILLISECOND, n as u16);
            writer.launched(Launch { operation, runtime_id: Some(runtime_id) }, start);
            // A tick is a nanosecond.
            let end = start + MILLISECOND;
            let record = DeviceRecord { chip, runtime_id, operation, start, end, cycles_per_ns: 1.0 };
            writer.records([record].into_iter(), 0, end);
        }
    }

    /// One allocation or one free.
    fn step(&mut self) {
        let number = self.next_random();
        if number % 3 == 0 && !self.live.is_empty() {
            let (id, ..) = self.live.swap_remove((number / 3) as usize % self.live.len());
            self.writer.free(id);
            return;
        }
        // Slowly growing lists would make the later processes slower than the first.
        if self.live.len() >= 300 {
            for (id, ..) in self.live.drain(..150) {
                self.writer.free(id);
            }
        }
        let (kind, banks) =
            [(MemoryKind::Dram, 12), (MemoryKind::L1, 64), (MemoryKind::Trace, 12)][(number >> 8) as usize % 3];
        let per_bank = 32 * (1 + (number >> 16) % 128);
        self.allocate(kind, per_bank, banks, number >> 32);
    }

    fn allocate(&mut self, kind: MemoryKind, per_bank: u64, banks: u32, address: u64) {
        let id = self.next_id;
        self.next_id += 1;
        self.writer.allocate(&NewBuffer {
            id,
            chips: Chips::one(self.chip),
            kind,
            logical: per_bank,
            per_bank,
            banks,
            address,
            page: 32,
            layout: 0,
            owner: 0,
            label: b"",
        });
        self.live.push((id, kind, per_bank * u64::from(banks)));
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
