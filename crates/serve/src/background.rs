//! Work that takes longer than the loop may: long answers, records of exits, files of other processes.
//!
//! Jobs wait in lanes, one for each user, and each lane has one job at a time: no user keeps another waiting for long. A job
//! that does not come back, because a file of a process blocks, costs its lane, and a thread.

use super::live_processes::Key;
use super::poller::Token;
use super::view::BookMemory;
use ledger::wire::WireError;
use model::ExitRecord;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whose jobs follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Exits,
    /// What other processes hold, for the sums of clients of the proof of concept.
    Sums,
    Http,
    /// Answers to the clients of a user.
    Answers(u32),
    /// Files of the processes of a user.
    Files(Option<u32>),
}

/// What a job has made.
pub enum Outcome {
    /// The answer to a client.
    Answer(Token, Result<Vec<u8>, WireError>),
    Exit(Box<ExitRecord>),
    Books(BookMemory),
    /// The book that a process keeps, if it could be opened.
    Book(Key, Option<Arc<File>>),
    Command(Key, String),
}

type Job = Box<dyn FnOnce() -> Option<Outcome> + Send>;

pub struct Background {
    shared: Arc<Shared>,
    outcomes: Receiver<Outcome>,
    /// Can be read when there are outcomes.
    pub ready: UnixStream,
}

struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    outcomes: Mutex<Sender<Outcome>>,
    wake: UnixStream,
}

#[derive(Default)]
struct Queue {
    waiting: BTreeMap<Lane, VecDeque<Job>>,
    /// Lanes with a job that is being done.
    running: BTreeSet<Lane>,
    last: Option<Lane>,
    threads: usize,
    idle: usize,
    /// When a job was last begun or done.
    moved: Option<Instant>,
    closed: bool,
}

/// More threads are started while none of them gets on, up to so many.
const THREADS: usize = 8;
const PATIENCE: Duration = Duration::from_millis(200);

impl Background {
    pub fn start() -> io::Result<Background> {
        let (ready, wake) = UnixStream::pair()?;
        ready.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (sender, outcomes) = channel();
        let (queue, work) = (Mutex::new(Queue::default()), Condvar::new());
        let shared = Arc::new(Shared { queue, work, outcomes: Mutex::new(sender), wake });
        let background = Background { shared, outcomes, ready };
        background.grow(&mut background.shared.lock())?;
        Ok(background)
    }

    pub fn add(&self, lane: Lane, job: impl FnOnce() -> Option<Outcome> + Send + 'static) {
        let mut queue = self.shared.lock();
        queue.waiting.entry(lane).or_default().push_back(Box::new(job));
        if queue.idle > 0 {
            self.shared.work.notify_one();
        } else if queue.threads < THREADS && queue.moved.is_some_and(|moved| moved.elapsed() > PATIENCE) {
            // Where there can be no other thread, the job waits.
            let _ = self.grow(&mut queue);
        }
    }

    /// What was made since the last call.
    pub fn take(&self) -> Vec<Outcome> {
        super::poller::drain(&self.ready);
        self.outcomes.try_iter().collect()
    }

    fn grow(&self, queue: &mut Queue) -> io::Result<()> {
        let shared = self.shared.clone();
        std::thread::Builder::new().name("ttmon-answers".into()).spawn(move || shared.run())?;
        queue.threads += 1;
        queue.moved = Some(Instant::now());
        Ok(())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does jobs for ever.
    fn run(&self) {
        let mut queue = self.lock();
        while !queue.closed {
            let Some((lane, job)) = queue.next() else {
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            let outcome = job();
            if let Some(outcome) = outcome {
                let _ = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).send(outcome);
                // A pipe that is full wakes the loop just as well.
                let _ = (&self.wake).write(&[1]);
            }
            queue = self.lock();
            queue.running.remove(&lane);
            queue.moved = Some(Instant::now());
        }
    }
}

impl Queue {
    /// The next job: of the lane after that of the last one.
    fn next(&mut self) -> Option<(Lane, Job)> {
        let is_free = |(lane, _): &(&Lane, &VecDeque<Job>)| !self.running.contains(lane);
        let after = self.waiting.iter().filter(|(lane, _)| Some(**lane) > self.last).find(is_free);
        let lane = *after.or_else(|| self.waiting.iter().find(is_free))?.0;
        let jobs = self.waiting.get_mut(&lane)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.waiting.remove(&lane);
        }
        self.running.insert(lane);
        (self.last, self.moved) = (Some(lane), Some(Instant::now()));
        Some((lane, job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(background: &Background, count: usize) -> Vec<i32> {
        let (mut seen, began) = (Vec::new(), Instant::now());
        while seen.len() < count && began.elapsed() < Duration::from_secs(20) {
            seen.extend(background.take().into_iter().map(|outcome| match outcome {
                Outcome::Exit(exit) => exit.pid as i32,
                _ => -1,
            }));
            std::thread::sleep(Duration::from_millis(1));
        }
        seen
    }

    fn exit(pid: u32) -> Option<Outcome> {
        Some(Outcome::Exit(Box::new(ExitRecord::of(&model::Process::new(pid), model::Timestamp(0)))))
    }

    #[test]
    fn users_take_turns() {
        let background = Background::start().unwrap();
        let (hold, held) = channel::<()>();
        background.add(Lane::Exits, move || {
            let _ = held.recv();
            exit(0)
        });
        (1..=3).for_each(|pid| background.add(Lane::Answers(7), move || exit(pid)));
        background.add(Lane::Answers(8), || exit(10));
        drop(hold);
        assert_eq!(wait_for(&background, 5), [0, 1, 10, 2, 3]);
    }

    #[test]
    fn a_job_that_does_not_come_back_costs_its_own_lane_only() {
        let background = Background::start().unwrap();
        let (hold, held) = channel::<()>();
        background.add(Lane::Files(Some(7)), move || {
            let _ = held.recv();
            exit(1)
        });
        std::thread::sleep(2 * PATIENCE);
        background.add(Lane::Files(Some(7)), || exit(2));
        background.add(Lane::Answers(7), || exit(3));
        assert_eq!(wait_for(&background, 1), [3]);
        drop(hold);
        assert_eq!(wait_for(&background, 2), [1, 2]);
    }
}
