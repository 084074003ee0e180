//! A book of some live buffers, of which a random one is freed and another allocated in its place, again and again.

use anyhow::{Context, bail};
use ledger::book::{self, Chips, MemoryKind, NewBuffer, Writer};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::BufRead;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Keeper {
    pub writer: Writer,
    chips: Chips,
}

impl Keeper {
    pub fn new(chips: u32) -> anyhow::Result<Keeper> {
        let writer = Writer::create("xtask bench")?;
        let chips = (0..chips)
            .map(|id| writer.chip(id, Some(u64::from(id) + 1)).map(Chips::one).context("no room for a chip"))
            .try_fold(Chips(0), |all, one| one.map(|one| all | one))?;
        Ok(Keeper { writer, chips })
    }

    /// On one chip, which has this number.
    pub fn on(chip: u64) -> anyhow::Result<Keeper> {
        let writer = Writer::create("xtask bench")?;
        let chips = Chips::one(writer.chip(0, Some(chip)).context("no room for a chip")?);
        Ok(Keeper { writer, chips })
    }

    fn allocate(&self, id: u64) {
        let (logical, per_bank, address) = (1 << 20, 87_424, id << 12);
        self.writer.allocate(&NewBuffer {
            id,
            chips: self.chips,
            kind: MemoryKind::Dram,
            logical,
            per_bank,
            banks: 12,
            address,
            page: 2048,
            layout: 0,
            owner: 1,
            label: b"",
        });
    }
}

/// One thread's share of the buffers.
pub struct Hand<'a> {
    keeper: &'a Keeper,
    live: Vec<u64>,
    next_id: u64,
    random: u64,
}

impl Hand<'_> {
    pub fn new(keeper: &Keeper, number: u64, live: usize) -> Hand<'_> {
        let mut hand = Hand { keeper, live: Vec::new(), next_id: number << 40 | 1, random: number + 1 };
        // As an allocator does it: ids are addresses, some way apart.
        for _ in 0..live {
            hand.next_id += 64;
            keeper.allocate(hand.next_id);
            hand.live.push(hand.next_id);
        }
        hand
    }

    /// So many times: a buffer goes and another comes.
    pub fn churn(&mut self, pairs: usize) {
        for _ in 0..pairs {
            self.next_id += 64;
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match self.live.len() {
                0 => {
                    self.keeper.allocate(self.next_id);
                    self.keeper.writer.free(self.next_id);
                }
                count => {
                    let old = &mut self.live[(self.random >> 33) as usize % count];
                    self.keeper.writer.free(*old);
                    *old = self.next_id;
                    self.keeper.allocate(self.next_id);
                }
            }
        }
    }
}

/// What this thread has had of the processor, in ns.
pub fn cpu_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// `xtask keep LIVE`: keeps a book and says where it is. Then `hammer` changes it until the next line, and `churn ROUNDS`
/// answers with the processor time of an event in each round, in ns.
pub fn keep(live: usize) -> anyhow::Result<()> {
    let keeper = Keeper::new(1)?;
    let mut hand = Hand::new(&keeper, 0, live);
    println!("/proc/{}/fd/{}", std::process::id(), keeper.writer.file().as_raw_fd());
    let mut lines = std::io::stdin().lock().lines();
    let mut line = lines.next().transpose()?;
    while let Some(command) = line {
        match *command.split(' ').collect::<Vec<_>>() {
            ["churn", rounds] => {
                let times: Vec<String> = (0..rounds.parse()?).map(|_| round(&mut hand).to_string()).collect();
                println!("{}", times.join(" "));
                line = lines.next().transpose()?;
            }
            ["hammer"] => {
                let stop = AtomicBool::new(false);
                line = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while !stop.load(Ordering::Relaxed) {
                            hand.churn(100);
                        }
                    });
                    println!("begun");
                    let line = lines.next().transpose();
                    stop.store(true, Ordering::Relaxed);
                    line
                })?;
            }
            _ => bail!("unknown command {command:?}"),
        }
    }
    Ok(())
}

fn round(hand: &mut Hand) -> f64 {
    const PAIRS: usize = 1000;
    let began = cpu_time();
    hand.churn(PAIRS);
    (cpu_time() - began) as f64 / (2 * PAIRS) as f64
}

/// `xtask copy PATH`: copies a book again and again, until it is ended from outside or the book is gone.
pub fn copy_for_ever(path: &str) -> anyhow::Result<()> {
    let file = File::open(path)?;
    loop {
        let book = book::read(book::of_file(&file))?;
        std::hint::black_box(book::table(book::of_file(&file), &book)?);
    }
}

/// `xtask churn PAIRS`: nothing but keeping a book, for a trace to look at.
pub fn churn(pairs: usize) -> anyhow::Result<()> {
    Hand::new(&Keeper::new(1)?, 0, 1000).churn(pairs);
    Ok(())
}
