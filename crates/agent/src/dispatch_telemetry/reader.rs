//! The thread that reads: one per process, twice a second, while there is a device to read from.

use super::functions::{Addresses, DispatchFunctions};
use super::watched::{Visit, Watched};
use crate::book::ProcessBook;
use ledger::book::CHIPS;
use ledger::book::activity::{ActivitySource, DispatchSample, NoRecords, monotonic};
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
    totals: Totals,
}

#[derive(Default, Clone, Copy)]
struct QueueReader {
    /// Where its block is, once that is known.
    address: Option<u64>,
    last: Option<TelemetrySample>,
}

#[derive(Default, Clone, Copy)]
struct Totals {
    busy: u64,
    ticks: u64,
    programs: u64,
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
            let read = || unsafe { functions.read(chip.cluster, chip.device_id, core, address, into) };
            match watched.while_open(visit, read) {
                Some(true) => Ok(()),
                Some(false) => Err(Miss::Threw),
                None => Err(Miss::Closing),
            }
        };
        let publish = |publish: &dyn Fn(&ledger::book::Writer, u8)| {
            let publish =
                || _ = ProcessBook::current().map(|book| book.write(|writer| publish(writer, visit.chip.chip)));
            watched.while_open(visit, publish);
        };
        match self.sample(visit, read) {
            Ok(None) | Err(Miss::Closing) => {}
            Ok(Some((before, from, now))) => {
                let begins = !self.is_recording;
                (self.torn, self.is_recording) = (0, true);
                let totals = self.totals;
                publish(&|writer, chip| {
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
                publish(&|writer, chip| writer.dispatch_unknown(chip, reason(miss)));
            }
        }
    }

    /// Takes a sample of all queues, and adds what happened since the one before. Answers with the totals up to that, and with both
    /// times; with nothing at the first sample.
    fn sample(
        &mut self,
        visit: &Visit,
        mut read: impl FnMut(CoreAt, u64, &mut [u8]) -> Result<(), Miss>,
    ) -> Result<Option<(Totals, u64, u64)>, Miss> {
        let mut queues = self.queues;
        for ((queue, cores), addresses) in queues.iter_mut().zip(visit.chip.queues).zip(&visit.chip.addresses) {
            let Some(cores) = cores else { continue };
            let address = match queue.address {
                Some(address) => address,
                None => *queue.address.insert(find(cores, addresses, &mut read)?),
            };
            let sample = TelemetrySample::read(|at, into| read(cores.dispatch, address + at, into), monotonic)?;
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
            (totals, from, now)
        }))
    }
}

impl Totals {
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
