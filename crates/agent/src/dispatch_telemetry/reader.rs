//! The thread that reads: one per process, twice a second, while there is a device to read from.

use super::functions::{Addresses, DispatchFunctions};
use super::watched::{Visit, Watched, WatchedChip, WatchedQueue};
use crate::book::ProcessBook;
use crate::device::Member;
use crate::metal::Metal;
use ledger::book::activity::{ActivitySource, DispatchSample, NoRecords, monotonic};
use ledger::book::{CHIPS, Writer};
use ledger::dispatch_telemetry::Unknown;
use ledger::dispatch_telemetry::block::{CoreAt, Head, QUEUES, QueueCores, TelemetryCore};
use ledger::dispatch_telemetry::formula::{TelemetrySample, TelemetryWindow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

/// Time between two samples. The book's windows are of two of them.
const PERIOD: Duration = Duration::from_millis(500);

/// Bytes of stack: reading takes little, an exception of tt-metal's with its message more.
const STACK: usize = 512 * 1024;

/// Starts the thread, unless there is one.
pub fn start(watched: &'static Watched, functions: &'static DispatchFunctions) {
    if !watched.claim_thread() {
        return;
    }
    prepare();
    let run = move || _ = catch_unwind(AssertUnwindSafe(|| run(watched, functions)));
    let builder = std::thread::Builder::new().name("ttmon-reads".into()).stack_size(STACK);
    // A thread has the mask of the one that starts it: no signal of the program ever arrives here.
    let spawned = without_signals(|| builder.spawn(run));
    if spawned.is_err() {
        watched.has_no_thread();
    }
}

/// What is to be done at the end of the process, and when it forks. Registered once a device is open: so it comes before tt-metal
/// takes down what it had before.
fn prepare() {
    extern "C" fn at_exit() {
        if let Some(watched) = Watched::current() {
            watched.leave_all(Duration::from_secs(1));
        }
    }
    extern "C" fn before_fork() {
        if let Some(watched) = Watched::current() {
            watched.fork_begins();
        }
    }
    extern "C" fn after_fork() {
        if let Some(watched) = Watched::current() {
            watched.forked();
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay, as this library is never unloaded.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(Some(before_fork), Some(after_fork), None);
        }
    });
}

fn without_signals<T>(what: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are there to be written to, and the first one is put back.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = what();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        result
    }
}

fn run(watched: &Watched, functions: &DispatchFunctions) {
    let mut chips: [ChipReader; CHIPS] = std::array::from_fn(|_| ChipReader::default());
    let mut due = Instant::now() + PERIOD;
    loop {
        let bell = watched.bell();
        if watched.may_end() {
            return;
        }
        let now = Instant::now();
        if now < due {
            watched.sleep(bell, due - now);
            continue;
        }
        due = now + PERIOD;
        for visit in watched.visits() {
            if let Some(chip) = chips.get_mut(visit.slot) {
                chip.look(watched, functions, &visit);
            }
        }
    }
}

/// Enters something of a chip in the book, and answers its number there. Only with `make` a book is made for that.
pub fn enter(member: &Member, make: bool, what: impl Fn(&Writer, u8)) -> Option<u8> {
    let make = || make.then(Metal::get).flatten().and_then(ProcessBook::open);
    let book = ProcessBook::current().or_else(make)?;
    book.write(|writer| {
        writer.record_activity(monotonic());
        let chip = writer.chip(member.device_id, member.unique_id)?;
        what(writer, chip);
        Some(chip)
    })?
}

/// What is known of a device between two looks at it.
#[derive(Default)]
struct ChipReader {
    generation: u64,
    queues: [QueueReader; QUEUES],
    /// Nothing is read any more.
    is_over: bool,
    /// Whether the book has samples without a gap up to the last look.
    is_recording: bool,
    /// Looks in a row at which the counters changed during every read.
    torn: u32,
    /// Since the device was opened.
    totals: DispatchTotals,
}

#[derive(Default, Clone, Copy)]
struct QueueReader {
    /// Where its block is, once that is known.
    address: Option<u64>,
    last: Option<TelemetrySample>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct DispatchTotals {
    busy: u64,
    ticks: u64,
    programs: u64,
}

/// From one sample to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Advance {
    /// The totals of the first sample.
    before: DispatchTotals,
    /// Its time, and that of the second one.
    from: u64,
    now: u64,
}

/// Why a look has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Miss {
    Unknown(Unknown),
    /// The device has begun to close, or the process is forking.
    Closing,
    /// The read threw an exception.
    Threw,
}

impl From<Unknown> for Miss {
    fn from(unknown: Unknown) -> Miss {
        Miss::Unknown(unknown)
    }
}

/// Looks in a row after which torn counters are unknown. Fewer are only late: the counters are totals.
const TORN_LOOKS: u32 = 3;

impl ChipReader {
    fn look(&mut self, watched: &Watched, functions: &DispatchFunctions, visit: &Visit) {
        if self.generation != visit.generation {
            *self = ChipReader { generation: visit.generation, ..ChipReader::default() };
        }
        if self.is_over {
            return;
        }
        let read = |core: CoreAt, address: u64, into: &mut [u8]| {
            let chip = &visit.chip;
            // SAFETY: the device is open, so its cluster is, too. Only chips on PCIe are watched.
            let read = || unsafe { functions.read(chip.cluster, chip.member.device_id, core, address, into) };
            match watched.while_open(visit, read) {
                Some(true) => Ok(()),
                Some(false) => Err(Miss::Threw),
                None => Err(Miss::Closing),
            }
        };
        // A reason alone makes no book.
        let publish = |is_value: bool, what: &dyn Fn(&Writer, u8)| {
            let chip = watched.while_open(visit, || enter(&visit.chip.member, is_value, what)).flatten();
            chip.into_iter().for_each(|chip| watched.is_in_book(visit, chip));
        };
        match self.sample(&visit.chip, read, monotonic) {
            Ok(None) | Err(Miss::Closing) => {}
            Ok(Some(Advance { before, from, now })) => {
                let begins = !self.is_recording;
                (self.torn, self.is_recording) = (0, true);
                let totals = self.totals;
                publish(true, &|writer, chip| {
                    if begins {
                        writer.chip_opened(chip, ActivitySource::DispatchTelemetry, from);
                        writer.dispatch_sampled(chip, before.at(from));
                    }
                    writer.dispatch_sampled(chip, totals.at(now));
                });
            }
            Err(Miss::Unknown(Unknown::Torn)) if self.torn + 1 < TORN_LOOKS => self.torn += 1,
            Err(miss) => {
                // A chip that does not answer, or of which tt-metal reports an error, is left alone.
                self.is_over = matches!(miss, Miss::Threw | Miss::Unknown(Unknown::AllOnes));
                self.is_recording = false;
                publish(false, &|writer, chip| writer.dispatch_unknown(chip, reason(miss)));
            }
        }
    }

    /// Takes a sample of all queues, and adds what happened since the one before. `None` at the first sample.
    fn sample(
        &mut self,
        chip: &WatchedChip,
        mut read: impl FnMut(CoreAt, u64, &mut [u8]) -> Result<(), Miss>,
        mut clock: impl FnMut() -> u64,
    ) -> Result<Option<Advance>, Miss> {
        let mut queues = self.queues;
        for (queue, watched) in queues.iter_mut().zip(chip.queues) {
            let Some(WatchedQueue { cores, addresses }) = watched else { continue };
            let address = match queue.address {
                Some(address) => address,
                None => *queue.address.insert(find(cores, &addresses, &mut read)?),
            };
            let sample = TelemetrySample::read(|at, into| read(cores.dispatch, address + at, into), &mut clock)?;
            queue.last = Some(sample);
        }
        // All of them could be read.
        let before = std::mem::replace(&mut self.queues, queues);
        let mut busiest: Option<(TelemetryWindow, u64, u64)> = None;
        let mut programs = 0;
        for (before, after) in before.iter().zip(&queues) {
            let Some(after) = after.last else { continue };
            let Some(before) = before.last else { return Ok(None) };
            let window = TelemetryWindow::between(&before, &after)?;
            programs += u64::from(window.programs);
            // Programs of two queues may overlap: the chip was at least as busy as with the busier one.
            if busiest.is_none_or(|(busiest, ..)| busiest.ratio() < window.ratio()) {
                busiest = Some((window, before.at_ns, after.at_ns));
            }
        }
        let totals = self.totals;
        Ok(busiest.map(|(window, from, now)| {
            self.totals.busy += window.busy_ticks();
            self.totals.ticks += window.ticks;
            self.totals.programs += programs;
            Advance { before: totals, from, now }
        }))
    }
}

impl DispatchTotals {
    fn at(self, time: u64) -> DispatchSample {
        DispatchSample { busy_ticks: self.busy, tick: self.ticks, time, programs: self.programs }
    }
}

/// Where the block of a queue is: where both of its cores have a signature.
fn find(
    cores: QueueCores,
    addresses: &Addresses,
    read: &mut impl FnMut(CoreAt, u64, &mut [u8]) -> Result<(), Miss>,
) -> Result<u64, Miss> {
    let mut miss = Unknown::NoSignature;
    for address in addresses.iter().flatten().copied().map(u64::from) {
        let mut check = |core, kind| {
            let mut head = [0; 8];
            read(core, address + Head::OFFSET, &mut head)?;
            Ok::<_, Miss>(Head::check(head, kind)?)
        };
        let dispatch = check(cores.dispatch, TelemetryCore::Dispatch);
        match dispatch.and_then(|_| check(cores.prefetch, TelemetryCore::Prefetch)) {
            Ok(Head) => return Ok(address),
            Err(Miss::Unknown(unknown @ (Unknown::NoSignature | Unknown::Version(_)))) => miss = unknown,
            Err(other) => return Err(other),
        }
    }
    Err(miss.into())
}

fn reason(miss: Miss) -> NoRecords {
    match miss {
        Miss::Threw => NoRecords::Refused,
        Miss::Unknown(Unknown::AllOnes) => NoRecords::AllOnes,
        Miss::Unknown(Unknown::Torn) => NoRecords::Torn,
        Miss::Unknown(Unknown::Still) => NoRecords::ClockStopped,
        Miss::Unknown(Unknown::SlowDispatch) => NoRecords::SlowDispatch,
        Miss::Unknown(Unknown::NoSignature | Unknown::Version(_) | Unknown::Control) => NoRecords::NoTelemetry,
        Miss::Unknown(Unknown::Backwards | Unknown::Jumped | Unknown::Short) | Miss::Closing => NoRecords::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::NonNull;

    const MS: u64 = 1_000_000;

    /// Two queues, of which the first has a dispatch core at (2, 0), the second at (2, 1).
    fn chip(queues: usize) -> WatchedChip {
        let cores = |y| QueueCores { prefetch: CoreAt { x: 1, y }, dispatch: CoreAt { x: 2, y } };
        // The second queue has a block of its own; before it there is something else.
        let addresses = [[Some(0x100), None, None], [Some(0x700), Some(0x300), Some(0x200)]];
        let queue = |i: usize| WatchedQueue { cores: cores(i as u16), addresses: addresses[i] };
        WatchedChip {
            member: Member::default(),
            cluster: NonNull::dangling(),
            queues: std::array::from_fn(|i| (i < queues).then(|| queue(i))),
        }
    }

    /// What a dispatch core counts.
    #[derive(Clone, Copy, Default)]
    struct Counts {
        programs: u32,
        ticks: u64,
        work: u64,
    }

    /// Reads from two queues. Answers also how many reads there were.
    fn look(
        reader: &mut ChipReader,
        queues: &[Counts],
        at: u64,
        torn: Option<u16>,
    ) -> (Result<Option<Advance>, Miss>, u64) {
        let mut reads = 0;
        let read = |core: CoreAt, address: u64, into: &mut [u8]| {
            reads += 1;
            let mut block = [0u8; 64];
            let base = [0x100, 0x200][usize::from(core.y)];
            if (base..base + 64).contains(&address) {
                let Counts { programs, ticks, work } = queues[usize::from(core.y)];
                block[0] = 1;
                block[4..8].copy_from_slice(if core.x == 1 { b"FERP" } else { b"PSID" });
                block[16..20].copy_from_slice(&programs.to_le_bytes());
                block[24..32].copy_from_slice(&ticks.to_le_bytes());
                let work = if torn == Some(core.y) { reads } else { work };
                block[40..48].copy_from_slice(&work.to_le_bytes());
                let from = (address - base) as usize;
                into.copy_from_slice(&block[from..from + into.len()]);
            }
            Ok(())
        };
        let result = reader.sample(&chip(queues.len()), read, || at);
        (result, reads)
    }

    /// From the beginning.
    fn advance(from: u64, now: u64) -> Option<Advance> {
        Some(Advance { before: DispatchTotals::default(), from, now })
    }

    #[test]
    fn of_two_queues_the_busier_one_counts_and_the_programs_of_both() {
        let mut reader = ChipReader::default();
        let counts = |programs, ticks, work| Counts { programs, ticks, work };
        let first = [counts(u32::MAX, 1_000, 100), counts(5, 1_000, 0)];
        // Heads of both queues; for the second one also at the two addresses before.
        assert_eq!(look(&mut reader, &first, 0, None), (Ok(None), 2 + 3 + 2 + 2 + 3));
        let second = [counts(1, 2_000, 300), counts(6, 2_010, 700)];
        let (result, reads) = look(&mut reader, &second, 500 * MS, None);
        assert_eq!((result, reads), (Ok(advance(0, 500 * MS)), 6));
        assert_eq!(reader.totals, DispatchTotals { busy: 700, ticks: 1_010, programs: 3 });
    }

    #[test]
    fn a_look_that_fails_in_one_queue_loses_nothing_of_the_other() {
        let mut reader = ChipReader::default();
        let counts = |ticks, work| Counts { programs: 0, ticks, work };
        assert_eq!(look(&mut reader, &[counts(0, 0), counts(0, 0)], 0, None).0, Ok(None));
        let torn = look(&mut reader, &[counts(1_000, 800), counts(1_000, 0)], 500 * MS, Some(1)).0;
        assert_eq!(torn, Err(Miss::Unknown(Unknown::Torn)));
        let later = look(&mut reader, &[counts(2_000, 900), counts(2_000, 0)], 1_000 * MS, None).0;
        assert_eq!(later, Ok(advance(0, 1_000 * MS)));
        assert_eq!(reader.totals, DispatchTotals { busy: 900, ticks: 2_000, programs: 0 });
    }

    #[test]
    fn a_clock_that_stands_still_is_unknown_and_its_work_is_not_counted_later() {
        let mut reader = ChipReader::default();
        let mut at = |at, ticks, work| look(&mut reader, &[Counts { programs: 0, ticks, work }], at, None).0;
        assert_eq!(at(0, 1_000, 10), Ok(None));
        assert_eq!(at(500 * MS, 1_000, 10), Err(Miss::Unknown(Unknown::Still)));
        assert_eq!(at(1_000 * MS, 900, 5), Err(Miss::Unknown(Unknown::Backwards)));
        assert_eq!(at(1_500 * MS, 1_900, 505), Ok(advance(1_000 * MS, 1_500 * MS)));
        assert_eq!(reader.totals, DispatchTotals { busy: 500, ticks: 1_000, programs: 0 });
    }

    #[test]
    fn every_miss_has_a_reason() {
        assert_eq!(reason(Miss::Threw), NoRecords::Refused);
        assert_eq!(reason(Unknown::Still.into()), NoRecords::ClockStopped);
        assert_eq!(reason(Unknown::Version(7).into()), NoRecords::NoTelemetry);
    }
}
