//! Threads that read, so that no read can hold up the others or the output.
//!
//! A read of a device in reset can block for ten seconds, beyond the reach of any signal. So reads are jobs: a few threads
//! take them from a queue, and when they stop getting through it, each job that still waits gets a thread of its own. To wake
//! a thread costs as much as to read some files: where the last round was quick, one is enough.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The queue's threads are taken to be stuck when nothing ends for so long: a hundred times what a device takes.
const PATIENCE: Duration = Duration::from_millis(20);

/// A round that took no longer is not worth sharing out.
const QUICK: Duration = Duration::from_millis(5);

/// Does jobs in rounds, each job at most once a round and never twice at a time.
pub(crate) struct Pool<Job> {
    shared: Arc<Shared<Job>>,
    /// How many threads share out the work. To ask the system takes the time of ten reads, so it is asked once.
    usual: usize,
}

struct Shared<Job> {
    queue: Mutex<Queue<Job>>,
    work: Condvar,
    progress: Condvar,
    run: Run<Job>,
}

type Run<Job> = Box<dyn Fn(&Job, &dyn Fn(Job)) + Send + Sync>;

struct Queue<Job> {
    round: u64,
    asked: HashSet<Job>,
    waiting: VecDeque<Job>,
    /// With the round that began them.
    running: HashMap<Job, u64>,
    threads: usize,
    idle: usize,
    done: u64,
    /// When the round began, and whether the one before was quick.
    began: Instant,
    was_quick: bool,
    closed: bool,
}

impl<Job: Clone + Eq + Hash + Send + 'static> Pool<Job> {
    /// A pool that does jobs with `run`, which may add more.
    pub fn new(run: impl Fn(&Job, &dyn Fn(Job)) + Send + Sync + 'static) -> Pool<Job> {
        let queue = Queue {
            round: 0,
            asked: HashSet::new(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            threads: 0,
            idle: 0,
            done: 0,
            began: Instant::now(),
            was_quick: false,
            closed: false,
        };
        let (work, progress) = (Condvar::new(), Condvar::new());
        let usual = thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
        Pool { usual, shared: Arc::new(Shared { queue: Mutex::new(queue), work, progress, run: Box::new(run) }) }
    }

    /// Starts a thread before there is work for it, so that it is there when the work is.
    pub fn warm_up(&self) {
        self.grow(&mut self.shared.lock(), 1);
    }

    /// Begins a round with these jobs.
    pub fn begin(&self, jobs: impl IntoIterator<Item = Job>) {
        let mut queue = self.shared.lock();
        queue.round += 1;
        queue.began = Instant::now();
        queue.asked.clear();
        jobs.into_iter().for_each(|job| queue.push(job));
        if queue.was_quick && queue.idle > 0 {
            self.shared.work.notify_one();
            return;
        }
        let (threads, waiting) = (queue.threads, queue.waiting.len());
        self.grow(&mut queue, threads.max(self.usual.min(waiting)));
        self.shared.work.notify_all();
    }

    /// Adds to the round.
    pub fn add(&self, jobs: impl IntoIterator<Item = Job>) {
        let mut queue = self.shared.lock();
        jobs.into_iter().for_each(|job| queue.push(job));
        if queue.threads == 0 && !queue.waiting.is_empty() {
            self.grow(&mut queue, 1);
        }
        if !queue.was_quick {
            self.shared.work.notify_all();
        } else if !queue.waiting.is_empty() && !queue.is_worked_on() {
            self.shared.work.notify_one();
        }
    }

    /// Waits until all jobs of the round are done, with those that they add, or the deadline is over. Returns those that
    /// are not: a job that is stuck since an earlier round is neither begun again nor waited for.
    pub fn wait(&self, deadline: Instant) -> HashSet<Job> {
        let mut queue = self.shared.lock();
        while queue.is_busy() {
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            let done = queue.done;
            let waited = self.shared.progress.wait_timeout(queue, PATIENCE.min(deadline - now));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if queue.done == done {
                self.shared.work.notify_all();
                let wanted = queue.threads + queue.waiting.len().saturating_sub(queue.idle);
                self.grow(&mut queue, wanted);
            }
        }
        queue.was_quick = queue.began.elapsed() < QUICK;
        let never_begun = std::mem::take(&mut queue.waiting);
        let queue = &*queue;
        let stuck = queue.asked.iter().filter(|job| queue.running.contains_key(job)).cloned();
        stuck.chain(never_begun).collect()
    }

    /// Whether a job has not come back, so that its thread will hold up the end of the process.
    pub fn is_stuck(&self) -> bool {
        !self.shared.lock().running.is_empty()
    }

    fn grow(&self, queue: &mut Queue<Job>, wanted: usize) {
        while queue.threads < wanted {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("ttmon-read".into()).stack_size(256 << 10);
            if thread.spawn(move || shared.work()).is_err() {
                break;
            }
            queue.threads += 1;
        }
    }
}

impl<Job> Shared<Job> {
    fn lock(&self) -> MutexGuard<'_, Queue<Job>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Job: Clone + Eq + Hash> Shared<Job> {
    fn work(&self) {
        let mut queue = self.lock();
        while !queue.closed {
            let Some(job) = queue.waiting.pop_front() else {
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            let round = queue.round;
            queue.running.insert(job.clone(), round);
            drop(queue);
            (self.run)(&job, &|more| {
                let mut queue = self.lock();
                queue.push(more);
                // This thread takes it up itself, unless there is enough to share.
                if !queue.was_quick {
                    self.work.notify_one();
                }
            });
            queue = self.lock();
            queue.running.remove(&job);
            queue.done += 1;
            if !queue.is_busy() {
                self.progress.notify_all();
            }
        }
    }
}

impl<Job: Clone + Eq + Hash> Queue<Job> {
    fn push(&mut self, job: Job) {
        if self.asked.insert(job.clone()) && !self.running.contains_key(&job) {
            self.waiting.push_back(job);
        }
    }

    fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.is_worked_on()
    }

    fn is_worked_on(&self) -> bool {
        self.running.values().any(|&round| round == self.round)
    }
}

impl<Job> Drop for Pool<Job> {
    fn drop(&mut self) {
        // The threads end by themselves; one that is stuck ends with the process.
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    fn round(pool: &Pool<u32>, jobs: std::ops::Range<u32>, deadline: Instant) -> HashSet<u32> {
        pool.begin(jobs);
        pool.wait(deadline)
    }

    #[test]
    fn every_job_is_done_once_even_when_added_by_another() {
        let (send, done) = mpsc::channel();
        let pool = Pool::new(move |&n: &u32, add: &dyn Fn(u32)| {
            if n < 100 {
                add(n + 100);
                add(5);
            }
            send.send(n).unwrap();
        });
        assert_eq!(round(&pool, 0..100, soon()), HashSet::new());
        let mut all: Vec<u32> = done.try_iter().collect();
        all.sort();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn jobs_may_be_added_to_a_round_that_began_empty() {
        let (send, done) = mpsc::channel();
        let pool = Pool::new(move |&n: &u32, _: &dyn Fn(u32)| send.send(n).unwrap());
        pool.begin([]);
        pool.add([7, 7]);
        assert_eq!(pool.wait(soon()), HashSet::new());
        assert_eq!(done.try_iter().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn jobs_that_were_never_begun_are_late_too() {
        let pool = Pool::new(|_: &u32, _: &dyn Fn(u32)| {
            loop {
                thread::park();
            }
        });
        assert_eq!(round(&pool, 0..100, Instant::now()), HashSet::from_iter(0..100));
    }

    #[test]
    fn jobs_that_never_end_hold_up_nobody() {
        let (send, done) = mpsc::channel();
        let pool = Pool::new(move |&n: &u32, _: &dyn Fn(u32)| {
            if n % 2 == 0 {
                loop {
                    thread::park();
                }
            }
            send.send(n).unwrap();
        });
        let stuck = HashSet::from_iter((0..32).step_by(2));
        assert_eq!(round(&pool, 0..32, Instant::now() + Duration::from_millis(400)), stuck);
        assert_eq!(done.try_iter().count(), 16);
        // They are reported again, neither waited for nor begun again.
        assert_eq!(round(&pool, 0..32, soon()), stuck);
        assert_eq!(done.try_iter().count(), 16);
    }

    #[test]
    fn a_job_that_gets_stuck_after_a_quick_round_holds_up_nobody() {
        let (send, done) = mpsc::channel();
        let pool = Pool::new(move |&n: &u32, add: &dyn Fn(u32)| {
            if n == 103 {
                loop {
                    thread::park();
                }
            }
            if n < 50 {
                add(n + 50);
            }
            send.send(n).unwrap();
        });
        for _ in 0..3 {
            assert_eq!(round(&pool, 0..32, soon()), HashSet::new());
            assert_eq!(done.try_iter().count(), 64);
        }
        let later = Instant::now() + Duration::from_secs(2);
        assert_eq!(round(&pool, 100..132, later), HashSet::from([103]));
        assert_eq!(done.try_iter().count(), 31);
        for _ in 0..3 {
            pool.begin(100..132);
            pool.add(200..210);
            assert_eq!(pool.wait(soon()), HashSet::from([103]));
            assert_eq!(done.try_iter().count(), 41);
        }
    }
}
