//! Threads that read, so that no read can hold up the others or the output.
//!
//! A read of a device in reset can block for ten seconds, and no signal ends it. So reads are jobs: a few threads take them from a
//! queue, and when they make no progress, each job that still waits gets a thread of its own. To wake a thread costs as much as to
//! read some files: where the last round was quick, one is enough. It is the one that worked last, whose memory is in the caches.
//!
//! A job has a key, which says what is read, and a task, which is all that its thread needs for it. Its answer comes over a channel.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The threads are considered stuck when no job ends for this long: a hundred times what a device takes.
const PATIENCE: Duration = Duration::from_millis(20);

/// A round that took no longer is done by one thread the next time.
const QUICK: Duration = Duration::from_millis(5);

/// How many jobs of all pools are being done.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether a read has not come back, so that its thread holds up the end of the process.
pub fn a_read_is_stuck() -> bool {
    RUNNING.load(Relaxed) > 0
}

/// Does jobs in rounds, each job at most once a round and never twice at a time.
pub(crate) struct Pool<Key, Task, Answer> {
    shared: Arc<Shared<Key, Task, Answer>>,
    answers: Receiver<Answer>,
    /// How many threads share the work.
    usual: usize,
    /// On how many cores.
    cores: usize,
}

/// Jobs of a round that are not done when its time is over.
pub(crate) struct Late<Key, Task> {
    pub keys: HashSet<Key>,
    /// The tasks of those that were never started.
    pub tasks: Vec<Task>,
}

struct Shared<Key, Task, Answer> {
    queue: Mutex<Queue<Key, Task>>,
    progress: Condvar,
    run: Run<Key, Task, Answer>,
    answers: Sender<Answer>,
    /// How many threads wait for more work, at most.
    kept: usize,
}

type Run<Key, Task, Answer> = Box<dyn Fn(Task, &dyn Fn(Key, Task)) -> Answer + Send + Sync>;

struct Queue<Key, Task> {
    round: u64,
    asked: HashSet<Key>,
    waiting: VecDeque<(Key, Task)>,
    /// With the round that began them.
    running: HashMap<Key, u64>,
    threads: usize,
    /// The threads that wait for work, the one that worked last at the end.
    idle: Vec<Arc<Condvar>>,
    done: u64,
    /// When the round began, and whether the one before was quick.
    began: Instant,
    was_quick: bool,
    /// Whether a thread ends when it finds no more work.
    ends_early: bool,
    closed: bool,
}

impl<Key, Task, Answer> Pool<Key, Task, Answer>
where
    Key: Clone + Eq + Hash + Send + 'static,
    Task: Send + 'static,
    Answer: Send + 'static,
{
    /// A pool that does jobs with `run`, which may add more.
    pub fn new(run: impl Fn(Task, &dyn Fn(Key, Task)) -> Answer + Send + Sync + 'static) -> Pool<Key, Task, Answer> {
        let queue = Queue {
            round: 0,
            asked: HashSet::new(),
            waiting: VecDeque::new(),
            running: HashMap::new(),
            threads: 0,
            idle: Vec::new(),
            done: 0,
            began: Instant::now(),
            was_quick: false,
            ends_early: false,
            closed: false,
        };
        let (sender, answers) = mpsc::channel();
        let cores = sched_getaffinity(None).map_or(2, |cores| cores.count() as usize);
        let usual = cores.clamp(2, 4);
        let shared = Shared {
            queue: Mutex::new(queue),
            progress: Condvar::new(),
            run: Box::new(run),
            answers: sender,
            kept: usual,
        };
        Pool { shared: Arc::new(shared), answers, usual, cores }
    }

    /// Starts a thread before there is work for it, so that it is there when the work is.
    pub fn warm_up(&self) {
        self.grow(&mut self.shared.lock(), 1);
    }

    /// Begins a round with these jobs.
    pub fn begin(&self, jobs: impl IntoIterator<Item = (Key, Task)>) {
        let mut queue = self.shared.lock();
        queue.round += 1;
        queue.began = Instant::now();
        queue.asked.clear();
        jobs.into_iter().for_each(|(key, task)| queue.push(key, task));
        if queue.was_quick && queue.wake_one() {
            return;
        }
        let (threads, waiting) = (queue.threads, queue.waiting.len());
        self.grow(&mut queue, threads.max(self.usual.min(waiting)));
        queue.wake_all();
    }

    /// Adds to the round.
    pub fn add(&self, jobs: impl IntoIterator<Item = (Key, Task)>) {
        let mut queue = self.shared.lock();
        jobs.into_iter().for_each(|(key, task)| queue.push(key, task));
        if queue.threads == 0 && !queue.waiting.is_empty() {
            self.grow(&mut queue, 1);
        }
        if !queue.was_quick {
            queue.wake_all();
        } else if !queue.has_woken() {
            queue.wake_one();
        }
    }

    /// Waits until all jobs of the round are done, with those that they add, or the deadline is over. Returns those that
    /// are not: a job that is stuck since an earlier round is neither started again nor waited for.
    pub fn wait(&self, deadline: Instant) -> Late<Key, Task> {
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
                let wanted = queue.threads + queue.waiting.len().saturating_sub(queue.idle.len());
                queue.wake_all();
                self.grow(&mut queue, wanted);
            }
        }
        queue.was_quick = queue.began.elapsed() < QUICK;
        let never_started = std::mem::take(&mut queue.waiting);
        let queue = &*queue;
        let mut keys: HashSet<Key> =
            queue.asked.iter().filter(|key| queue.running.contains_key(key)).cloned().collect();
        let tasks = never_started.into_iter().map(|(key, task)| {
            keys.insert(key);
            task
        });
        Late { tasks: tasks.collect(), keys }
    }

    /// The answers that have come, also of jobs that were stuck in earlier rounds. It does not wait: a job sends its answer before it
    /// counts as done, and a receiver that waited would be woken by every one.
    pub fn answers(&self) -> impl Iterator<Item = Answer> + '_ {
        self.answers.try_iter()
    }

    /// From now on a thread ends when it finds no more work, rather than wait for another round: a process that ends would first
    /// have to end its threads.
    pub fn end_threads_early(&self) {
        self.shared.lock().ends_early = true;
    }

    /// Whether a job has not come back, so that its thread will hold up the end of the process.
    pub fn is_stuck(&self) -> bool {
        !self.shared.lock().running.is_empty()
    }

    fn grow(&self, queue: &mut Queue<Key, Task>, wanted: usize) {
        while queue.threads < wanted {
            let shared = self.shared.clone();
            // The thread that waits for them leaves its core to the last one. On an idle machine the kernel would put that one behind
            // another, which takes a fifth of a short program's time.
            let core = if queue.ends_early && queue.threads + 1 == self.cores { stay_on_this_core() } else { None };
            let thread = thread::Builder::new().name("ttmon-read".into()).stack_size(256 << 10);
            let work = move || {
                core.iter().for_each(use_cores);
                shared.work();
            };
            let started = thread.spawn(work);
            core.iter().for_each(use_cores);
            if started.is_err() {
                break;
            }
            queue.threads += 1;
        }
    }
}

/// Keeps this thread, and those that it starts, on the core where it is. Returns the cores that it could use before.
fn stay_on_this_core() -> Option<CpuSet> {
    let before = sched_getaffinity(None).ok()?;
    let mut this = CpuSet::new();
    this.set(sched_getcpu());
    sched_setaffinity(None, &this).ok()?;
    Some(before)
}

fn use_cores(cores: &CpuSet) {
    // These are cores that it could use before.
    let _ = sched_setaffinity(None, cores);
}

impl<Key, Task, Answer> Shared<Key, Task, Answer> {
    fn lock(&self) -> MutexGuard<'_, Queue<Key, Task>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Key: Clone + Eq + Hash, Task, Answer> Shared<Key, Task, Answer> {
    fn work(&self) {
        let mut queue = self.lock();
        let (mut has_worked, woken) = (false, Arc::new(Condvar::new()));
        while !queue.closed {
            let Some((key, task)) = queue.waiting.pop_front() else {
                // Those that were started for slow reads are not needed once these have come back.
                let is_spare = queue.threads - queue.running.len() > self.kept;
                if is_spare || queue.ends_early && has_worked {
                    break;
                }
                queue.idle.push(woken.clone());
                // Who wakes it takes it off the list. A thread may also wake by itself.
                let sleeps = |queue: &mut Queue<_, _>| queue.idle.iter().any(|idle| Arc::ptr_eq(idle, &woken));
                queue = woken.wait_while(queue, sleeps).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            has_worked = true;
            let round = queue.round;
            queue.running.insert(key.clone(), round);
            drop(queue);
            RUNNING.fetch_add(1, Relaxed);
            let answer = (self.run)(task, &|key, task| {
                let mut queue = self.lock();
                // It comes next: what it adds itself is then not left for the end. This thread takes it up, unless there is enough to
                // share.
                if queue.push_first(key, task) && !queue.was_quick {
                    queue.wake_one();
                }
            });
            RUNNING.fetch_sub(1, Relaxed);
            // An error means that the pool was dropped meanwhile.
            let _ = self.answers.send(answer);
            queue = self.lock();
            queue.running.remove(&key);
            queue.done += 1;
            if !queue.is_busy() {
                self.progress.notify_all();
            }
        }
        queue.threads -= 1;
    }
}

impl<Key: Clone + Eq + Hash, Task> Queue<Key, Task> {
    /// Adds a job, unless it was asked for in this round or is still running since an earlier one.
    fn push(&mut self, key: Key, task: Task) {
        if self.is_new(&key) {
            self.waiting.push_back((key, task));
        }
    }

    /// The same before all others. Returns whether it was added.
    fn push_first(&mut self, key: Key, task: Task) -> bool {
        let is_new = self.is_new(&key);
        if is_new {
            self.waiting.push_front((key, task));
        }
        is_new
    }

    fn is_new(&mut self, key: &Key) -> bool {
        self.asked.insert(key.clone()) && !self.running.contains_key(key)
    }

    /// Whether a thread looks for work, or will as soon as the kernel lets it run.
    fn has_woken(&self) -> bool {
        let stuck = self.running.values().filter(|round| **round != self.round).count();
        self.threads - self.idle.len() > stuck
    }

    /// Wakes the thread that worked last, where there is work and one waits for it. Returns whether it has woken one.
    fn wake_one(&mut self) -> bool {
        let woken = if self.waiting.is_empty() { None } else { self.idle.pop() };
        woken.inspect(|thread| thread.notify_one()).is_some()
    }

    /// Wakes all threads that wait, where there is work.
    fn wake_all(&mut self) {
        while self.wake_one() {}
    }

    fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.is_worked_on()
    }

    fn is_worked_on(&self) -> bool {
        self.running.values().any(|&round| round == self.round)
    }
}

impl<Key, Task, Answer> Drop for Pool<Key, Task, Answer> {
    fn drop(&mut self) {
        // The threads end by themselves; one that is stuck ends with the process.
        let mut queue = self.shared.lock();
        queue.closed = true;
        queue.idle.drain(..).for_each(|thread| thread.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Pool<u32, u32, u32>;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(30)
    }

    /// A pool in which the number of a job is its key, its task and its answer.
    fn pool(run: impl Fn(u32, &dyn Fn(u32)) + Send + Sync + 'static) -> Numbers {
        Pool::new(move |n: u32, add: &dyn Fn(u32, u32)| {
            run(n, &|n| add(n, n));
            n
        })
    }

    fn jobs(numbers: std::ops::Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        numbers.map(|n| (n, n))
    }

    fn round(pool: &Numbers, numbers: std::ops::Range<u32>, deadline: Instant) -> HashSet<u32> {
        pool.begin(jobs(numbers));
        pool.wait(deadline).keys
    }

    fn wait_forever() {
        loop {
            thread::park();
        }
    }

    #[test]
    fn every_job_is_done_once_even_when_added_by_another() {
        let pool = pool(|n, add| {
            if n < 100 {
                add(n + 100);
                add(5);
            }
        });
        assert_eq!(round(&pool, 0..100, soon()), HashSet::new());
        let mut all: Vec<u32> = pool.answers().collect();
        all.sort();
        assert_eq!(all, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn a_thread_that_was_started_on_this_core_may_use_all_of_them() {
        let cores = || sched_getaffinity(None).unwrap().count();
        let before = cores();
        let mut pool = Pool::new(move |_: u32, _: &dyn Fn(u32, u32)| {
            // Each takes its part.
            thread::sleep(Duration::from_millis(1));
            cores()
        });
        (pool.usual, pool.cores) = (2, 2);
        pool.end_threads_early();
        pool.begin(jobs(0..100));
        assert_eq!(cores(), before);
        pool.wait(soon());
        assert_eq!(pool.answers().collect::<Vec<_>>(), [before; 100]);
    }

    #[test]
    fn jobs_may_be_added_to_a_round_that_began_empty() {
        let pool = pool(|_, _| {});
        pool.begin([]);
        pool.add([(7, 7), (7, 7)]);
        assert_eq!(pool.wait(soon()).keys, HashSet::new());
        assert_eq!(pool.answers().collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn jobs_that_are_added_to_a_quick_round_wake_no_second_thread() {
        let pool = pool(|_, _| {});
        for _ in 0..100 {
            round(&pool, 0..32, soon());
            pool.answers().for_each(drop);
            let threads = pool.shared.lock().threads;
            while pool.shared.lock().idle.len() < threads {
                thread::yield_now();
            }
            pool.shared.lock().was_quick = true;
            pool.begin(jobs(0..8));
            pool.add(jobs(8..16));
            // The one that was woken may also have done all of it by now.
            assert!(pool.shared.lock().idle.len() + 1 >= threads);
            assert_eq!(pool.wait(soon()).keys, HashSet::new());
            assert_eq!(pool.answers().count(), 16);
        }
    }

    #[test]
    fn jobs_that_were_never_started_are_late_too_and_their_tasks_come_back() {
        let pool = pool(|_, _| wait_forever());
        pool.begin(jobs(0..100));
        let late = pool.wait(Instant::now());
        assert_eq!(late.keys, HashSet::from_iter(0..100));
        assert!(late.tasks.len() >= 96, "{:?}", late.tasks);
    }

    #[test]
    fn jobs_that_never_end_delay_no_others() {
        let pool = pool(|n, _| {
            if n % 2 == 0 {
                wait_forever();
            }
        });
        let stuck = HashSet::from_iter((0..32).step_by(2));
        assert_eq!(round(&pool, 0..32, Instant::now() + Duration::from_millis(400)), stuck);
        assert_eq!(pool.answers().count(), 16);
        // They are reported again, neither waited for nor started again.
        assert_eq!(round(&pool, 0..32, soon()), stuck);
        assert_eq!(pool.answers().count(), 16);
    }

    #[test]
    fn a_job_that_gets_stuck_after_a_quick_round_delays_no_others() {
        let pool = pool(|n, add| {
            if n == 103 {
                wait_forever();
            }
            if n < 50 {
                add(n + 50);
            }
        });
        for _ in 0..3 {
            assert_eq!(round(&pool, 0..32, soon()), HashSet::new());
            assert_eq!(pool.answers().count(), 64);
        }
        let later = Instant::now() + Duration::from_secs(2);
        assert_eq!(round(&pool, 100..132, later), HashSet::from([103]));
        assert_eq!(pool.answers().count(), 31);
        for _ in 0..3 {
            pool.begin(jobs(100..132));
            pool.add(jobs(200..210));
            assert_eq!(pool.wait(soon()).keys, HashSet::from([103]));
            assert_eq!(pool.answers().count(), 41);
        }
    }

    #[test]
    fn threads_that_were_started_for_slow_jobs_end_when_these_come_back() {
        let is_slow = Arc::new(AtomicUsize::new(1));
        let waits = is_slow.clone();
        let pool = pool(move |_, _| {
            while waits.load(Relaxed) > 0 {
                thread::sleep(Duration::from_millis(1));
            }
        });
        assert_eq!(round(&pool, 0..32, Instant::now() + Duration::from_secs(1)).len(), 32);
        assert_eq!(pool.shared.lock().threads, 32);
        is_slow.store(0, Relaxed);
        let until = soon();
        while pool.is_stuck() || pool.shared.lock().threads > pool.usual {
            assert!(Instant::now() < until, "{} threads", pool.shared.lock().threads);
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(round(&pool, 0..32, soon()), HashSet::new());
        assert_eq!(pool.answers().count(), 64);
    }

    #[test]
    fn threads_that_end_early_are_replaced_for_the_next_round() {
        let pool = pool(|n, add| {
            if n < 100 {
                add(n + 100);
            }
        });
        pool.end_threads_early();
        pool.warm_up();
        for _ in 0..3 {
            assert_eq!(round(&pool, 0..8, soon()), HashSet::new());
            assert_eq!(pool.answers().count(), 16);
        }
        while pool.shared.lock().threads > 0 {
            // One that came too late for any work waits for some.
            assert_eq!(round(&pool, 0..8, soon()), HashSet::new());
        }
    }

    #[test]
    fn the_answer_of_a_job_that_was_stuck_comes_when_it_ends() {
        let (resume, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let pool = pool(move |_, _| wait.lock().unwrap().recv().unwrap());
        assert_eq!(round(&pool, 0..1, Instant::now() + Duration::from_millis(50)), HashSet::from([0]));
        assert!(pool.is_stuck() && pool.answers().next().is_none());
        resume.send(()).unwrap();
        while pool.is_stuck() {
            thread::yield_now();
        }
        assert_eq!(pool.answers().collect::<Vec<_>>(), [0]);
    }
}
