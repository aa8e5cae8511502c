//! Requests between network threads, the queue, instances and a drain, in every interleaving of the threads.
//!
//! A model checker chooses the order, many times over. What it plays is the server's own: the queue, how instances are
//! driven (`drive_loop`), where they sleep (`park`), and how threads of the pool find runs (`exchange`). Only the lines
//! that join these are written again here, since the server's also execute models.

#[path = "../../src/executor/drive_loop.rs"]
mod drive_loop;
#[path = "../../src/executor/exchange.rs"]
mod exchange;
mod lock;
#[path = "../../src/executor/park.rs"]
mod park;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use alipes_scheduler::{
    Aftermath, DynamicPolicy, Effect, ModelQueue, Next, Priorities, Queue, QueuePolicy, Scheduler, TimeoutAction, Work,
};
use drive_loop::{Claimed, Step};
use exchange::Exchange;
use lock::Mutex;
use park::Parker;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::sync::{Arc, Condvar};
use shuttle::thread;

/// Orders that each test plays.
const PLAYS: usize = 2000;

/// Threads whose order is changed in few places find what many changes hide.
const CHANGES: usize = 3;

/// No test waits that long: who sleeps until then has to be woken.
const FOREVER: Duration = Duration::from_secs(3600);

struct Job {
    number: usize,
    deadline: Option<Instant>,
}

impl Work for Job {
    fn rows(&self) -> u32 {
        1
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }
}

/// A version of a model, as far as requests are handed over in it.
struct Version {
    queue: Mutex<ModelQueue<Job>>,
    slots: Vec<Slot>,
    pool: Exchange<Run>,
    threads: AtomicUsize,
    /// Times that a batch comes back yet, as from a process that ends before it has begun with it.
    returns: AtomicUsize,
    ends: shuttle::sync::Mutex<Vec<usize>>,
    ended: Condvar,
}

#[derive(Default)]
struct Slot {
    parker: Parker,
    executes: AtomicBool,
}

struct Run {
    version: Arc<Version>,
    instance: usize,
}

thread_local! {
    /// Runs that this network thread drives itself, at the end of its turn. The checker's threads share the thread that
    /// it runs on, so they are told apart by their numbers.
    static RUN_QUEUES: RefCell<Vec<(thread::ThreadId, Run)>> = const { RefCell::new(Vec::new()) };
}

impl Version {
    fn new(scheduler: Scheduler<Job>, instances: usize, slots: usize) -> Arc<Version> {
        Arc::new(Version {
            queue: Mutex::new(ModelQueue::new(scheduler, instances)),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            pool: Exchange::default(),
            threads: AtomicUsize::new(0),
            returns: AtomicUsize::new(0),
            ends: shuttle::sync::Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Takes a request in; false where it is refused.
    fn submit(self: &Arc<Self>, number: usize, inline: bool) -> bool {
        let submitted = self.with_queue(|queue, now| queue.submit(now, Job { number, deadline: None }).ok());
        if let Some(effect) = submitted {
            self.carry_out(effect, inline);
        }
        submitted.is_some()
    }

    /// Changes the queue, and sees to what it leaves behind.
    fn with_queue<T>(self: &Arc<Self>, change: impl FnOnce(&mut ModelQueue<Job>, Instant) -> T) -> T {
        let mut queue = self.queue.lock();
        let outcome = change(&mut queue, lock::now());
        let aftermath = queue.aftermath(lock::now());
        drop(queue);
        let Some(Aftermath { refused, alarm, .. }) = aftermath else { return outcome };
        if let Some(moment) = alarm {
            self.set_alarm(moment);
        }
        refused.into_iter().for_each(|refused| self.end(refused.work.number));
        outcome
    }

    fn set_alarm(self: &Arc<Self>, moment: Instant) {
        self.spawn(move |version| {
            Parker::default().park_until(moment);
            let effect = version.with_queue(|queue, now| queue.expire(now));
            version.carry_out(effect, false);
        });
    }

    /// Starts a thread that `close` waits for.
    fn spawn(self: &Arc<Self>, work: impl FnOnce(&Arc<Version>) + Send + 'static) {
        let version = Arc::clone(self);
        version.threads.fetch_add(1, Ordering::SeqCst);
        thread::spawn(move || {
            work(&version);
            version.threads.fetch_sub(1, Ordering::SeqCst);
        });
    }

    fn carry_out(self: &Arc<Self>, effect: Effect, inline: bool) {
        match effect {
            Effect::None => {}
            Effect::Start(instance) if inline => {
                let run = Run { version: Arc::clone(self), instance };
                RUN_QUEUES.with_borrow_mut(|queues| queues.push((thread::current().id(), run)));
            }
            Effect::Start(instance) => self.have_driven(Run { version: Arc::clone(self), instance }),
            Effect::Wake(instance) => self.slots[instance].parker.unpark(),
        }
    }

    fn have_driven(self: &Arc<Self>, run: Run) {
        if self.pool.leave(run) {
            self.spawn(|version| {
                while let Some(run) = version.pool.next(lock::now() + FOREVER) {
                    drive_loop::drive(&run);
                }
            });
        }
    }

    /// Runs something that never stood in the queue, where an instance is free.
    fn run_beside(self: &Arc<Self>, number: usize, inline: bool) -> bool {
        let Some(instance) = self.queue.lock().claim() else { return false };
        self.execute(instance, || self.end(number));
        let effect = self.with_queue(|queue, now| queue.finish(now, instance));
        self.carry_out(effect, inline);
        true
    }

    fn execute(&self, instance: usize, work: impl FnOnce()) {
        let executes = &self.slots[instance].executes;
        assert!(!executes.swap(true, Ordering::SeqCst), "an instance executes one batch at a time");
        work();
        executes.store(false, Ordering::SeqCst);
    }

    /// The end of a network thread's turn: what it has started itself, it drives.
    fn serve_run_queue(self: &Arc<Self>) {
        while let Some(run) = take_run() {
            if let Some(waiting) = drive_loop::drive_once(run) {
                self.have_driven(waiting);
            }
        }
    }

    fn end(&self, number: usize) {
        self.ends.lock().unwrap().push(number);
        self.ended.notify_all();
    }

    /// Waits until so many requests have ended: one that is lost is waited for forever, which the checker tells.
    fn assert_ended(&self, mut numbers: Vec<usize>) {
        let mut ends = self.ends.lock().unwrap();
        while ends.len() < numbers.len() {
            ends = self.ended.wait(ends).unwrap();
        }
        let mut seen = ends.clone();
        seen.sort_unstable();
        numbers.sort_unstable();
        assert_eq!(seen, numbers, "each request ends once");
    }

    /// Waits until the drain is over.
    fn assert_comes_to_rest(&self) {
        while !self.queue.lock().is_quiet() {
            thread::yield_now();
        }
    }

    fn is_to_return(&self) -> bool {
        let left = self.returns.load(Ordering::SeqCst);
        left > 0 && self.returns.compare_exchange(left, left - 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn drain(self: &Arc<Self>) {
        let effect = self.with_queue(|queue, now| queue.stop(now));
        self.carry_out(effect, false);
    }

    /// Lets the threads of the pool go, as they do when nothing comes for a while.
    fn close(&self) {
        lock::rouse();
        while self.threads.load(Ordering::SeqCst) > 0 {
            thread::yield_now();
        }
    }
}

fn take_run() -> Option<Run> {
    let me = thread::current().id();
    RUN_QUEUES.with_borrow_mut(|queues| {
        let place = queues.iter().position(|(owner, _)| *owner == me)?;
        Some(queues.remove(place).1)
    })
}

impl Claimed for Run {
    fn step(&self) -> Step {
        let Run { version, instance } = self;
        let mut batch = Vec::new();
        let (next, effect) = version.with_queue(|queue, now| queue.next(now, *instance, &mut batch));
        version.carry_out(effect, false);
        match next {
            Next::Take if version.is_to_return() => {
                let effect = version.with_queue(|queue, now| queue.put_back(now, &mut batch.into_iter()));
                version.carry_out(effect, false);
                Step::Again
            }
            Next::Take => {
                version.execute(*instance, || batch.drain(..).for_each(|job| version.end(job.number)));
                Step::Again
            }
            Next::WaitUntil(until) => Step::Wait(until),
            Next::Idle => Step::Idle,
        }
    }

    fn park(&self, until: Instant) {
        self.version.slots[self.instance].parker.park_until(until);
    }

    fn release(&self) {
        let effect = self.version.with_queue(|queue, now| queue.finish(now, self.instance));
        self.version.carry_out(effect, false);
    }
}

fn pairs(delay: Duration) -> DynamicPolicy {
    let (max_batch_size, preferred_batch_sizes) = (2, vec![2]);
    DynamicPolicy { max_batch_size, preferred_batch_sizes, max_queue_delay: delay, ..DynamicPolicy::default() }
}

/// Plays a test in many orders: random ones, and those that differ from a fixed one in few places.
fn check(restless: bool, play: impl Fn() -> Arc<Version> + Send + Sync + Copy + 'static) {
    let play = move || {
        lock::begin(restless);
        play().close();
    };
    shuttle::check_random(play, PLAYS);
    shuttle::check_pct(play, PLAYS, CHANGES);
}

/// Network threads that submit so many requests each, and drive what they start themselves where `inline` says so.
fn submit_from(version: &Arc<Version>, threads: usize, each: usize, inline: fn(usize) -> bool) -> Vec<usize> {
    let network = |number: usize| {
        let version = Arc::clone(version);
        thread::spawn(move || {
            let mut accepted = Vec::new();
            for request in 0..each {
                let id = number * each + request;
                if version.submit(id, inline(number)) {
                    accepted.push(id);
                }
                version.serve_run_queue();
            }
            accepted
        })
    };
    let network: Vec<_> = (0..threads).map(network).collect();
    network.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn requests_that_run_alone_are_all_run() {
    check(false, || {
        let version = Version::new(Scheduler::direct(), 2, 2);
        let accepted = submit_from(&version, 3, 2, |number| number > 0);
        version.assert_ended(accepted);
        version.assert_comes_to_rest();
        version
    });
}

#[test]
fn a_request_that_completes_a_batch_has_it_run_before_any_delay_ends() {
    check(false, || {
        let version = Version::new(Scheduler::dynamic(pairs(FOREVER)), 2, 2);
        let accepted = submit_from(&version, 2, 2, |number| number == 1);
        assert_eq!(accepted.len(), 4);
        version.assert_ended(accepted);
        version
    });
}

#[test]
fn a_drain_lets_go_what_waits_and_takes_nothing_in_after_it() {
    for restless in [false, true] {
        check(restless, || {
            let version = Version::new(Scheduler::dynamic(pairs(FOREVER)), 2, 2);
            let draining = Arc::clone(&version);
            let drain = thread::spawn(move || draining.drain());
            let accepted = submit_from(&version, 2, 2, |number| number == 1);
            drain.join().unwrap();
            assert!(!version.submit(99, false), "it is stopped");
            version.assert_ended(accepted);
            version.assert_comes_to_rest();
            version
        });
    }
}

#[test]
fn sleeps_that_end_by_themselves_run_each_batch_once() {
    check(true, || {
        let version = Version::new(Scheduler::dynamic(pairs(Duration::from_millis(1))), 2, 2);
        let accepted = submit_from(&version, 2, 3, |number| number == 1);
        version.drain();
        version.assert_ended(accepted);
        version.assert_comes_to_rest();
        version
    });
}

#[test]
fn instances_that_come_and_go_leave_no_request_behind() {
    for restless in [false, true] {
        check(restless, || {
            let version = Version::new(Scheduler::dynamic(pairs(FOREVER)), 2, 4);
            let changing = Arc::clone(&version);
            let change = thread::spawn(move || {
                for instances in [&[1][..], &[1, 2, 3], &[3]] {
                    // A number whose instance has not gone yet is nobody's to give: what stays is a choice of those.
                    let mut queue = changing.queue.lock();
                    let allowed: Vec<usize> =
                        instances.iter().copied().filter(|&number| number < 2 || queue.is_free(number)).collect();
                    let instances = if allowed.is_empty() { &[1][..] } else { &allowed };
                    let effect = queue.rearrange(lock::now(), instances);
                    drop(queue);
                    changing.carry_out(effect, false);
                }
            });
            let accepted = submit_from(&version, 2, 2, |number| number == 1);
            change.join().unwrap();
            version.drain();
            version.assert_ended(accepted);
            version.assert_comes_to_rest();
            version
        });
    }
}

/// As an ensemble does that takes its requests through all of its models at once.
#[test]
fn an_instance_that_others_claim_meanwhile_leaves_no_request_behind() {
    for restless in [false, true] {
        check(restless, move || {
            let scheduler =
                if restless { Scheduler::dynamic(pairs(Duration::from_millis(1))) } else { Scheduler::direct() };
            let version = Version::new(scheduler, 2, 2);
            let claiming = Arc::clone(&version);
            let others = thread::spawn(move || {
                let ran = [90, 91].into_iter().filter(|&number| {
                    let ran = claiming.run_beside(number, number == 91);
                    claiming.serve_run_queue();
                    ran
                });
                ran.collect::<Vec<_>>()
            });
            let mut accepted = submit_from(&version, 2, 2, |number| number == 1);
            accepted.extend(others.join().unwrap());
            version.drain();
            version.assert_ended(accepted);
            version.assert_comes_to_rest();
            assert!(!version.run_beside(99, false), "it is stopped");
            version
        });
    }
}

/// Two batches that claim the same instances: each runs with all or without any.
#[test]
fn a_run_that_finds_one_instance_busy_releases_the_others() {
    check(false, || {
        let first = Version::new(Scheduler::direct(), 1, 1);
        let second = Version::new(Scheduler::direct(), 1, 1);
        let pair = |first: &Arc<Version>, second: &Arc<Version>, number: usize| {
            let (first, second) = (Arc::clone(first), Arc::clone(second));
            thread::spawn(move || {
                let Some(one) = first.queue.lock().claim() else { return };
                let both = second.queue.lock().claim();
                if let Some(other) = both {
                    first.execute(one, || second.execute(other, || second.end(number)));
                    let effect = second.with_queue(|queue, now| queue.finish(now, other));
                    second.carry_out(effect, false);
                }
                let effect = first.with_queue(|queue, now| queue.finish(now, one));
                first.carry_out(effect, false);
            })
        };
        let pairs = [pair(&first, &second, 90), pair(&first, &second, 91)];
        let accepted = submit_from(&first, 2, 1, |number| number == 1);
        pairs.into_iter().for_each(|pair| pair.join().unwrap());
        first.assert_ended(accepted);
        first.assert_comes_to_rest();
        second.assert_comes_to_rest();
        second.close();
        first
    });
}

#[test]
fn requests_that_are_withdrawn_meanwhile_end_once_too() {
    check(true, || {
        let version = Version::new(Scheduler::dynamic(pairs(FOREVER)), 1, 1);
        let leaving = Arc::clone(&version);
        let withdraw = thread::spawn(move || {
            for _ in 0..2 {
                let mut removed = Vec::new();
                let effect = leaving.queue.lock().cancel(lock::now(), &mut |job| job.number % 2 == 0, &mut removed);
                leaving.carry_out(effect, false);
                removed.into_iter().for_each(|job| leaving.end(job.number));
            }
        });
        let accepted = submit_from(&version, 2, 2, |number| number == 1);
        withdraw.join().unwrap();
        version.drain();
        version.assert_ended(accepted);
        version.assert_comes_to_rest();
        version
    });
}

#[test]
fn requests_that_come_back_run_in_the_end() {
    for restless in [false, true] {
        check(restless, || {
            let version = Version::new(Scheduler::dynamic(pairs(FOREVER)), 2, 2);
            version.returns.store(3, Ordering::SeqCst);
            let accepted = submit_from(&version, 2, 2, |number| number == 1);
            version.drain();
            version.assert_ended(accepted);
            version.assert_comes_to_rest();
            version
        });
    }
}

#[test]
fn requests_that_wait_too_long_end_once_whichever_thread_notices() {
    for timeout_action in [TimeoutAction::Reject, TimeoutAction::Delay] {
        check(true, move || {
            let default_timeout = Duration::from_millis(1);
            let default_policy = QueuePolicy { timeout_action, default_timeout, ..QueuePolicy::default() };
            let priorities = Priorities { default_policy, ..Priorities::default() };
            let policy = DynamicPolicy { priorities, ..pairs(Duration::from_millis(2)) };
            let version = Version::new(Scheduler::dynamic(policy), 1, 1);
            let accepted = submit_from(&version, 2, 3, |number| number == 1);
            version.drain();
            version.assert_ended(accepted);
            version.assert_comes_to_rest();
            version
        });
    }
}

/// The checker finds what it is there for: here the thread that wakes a sleeper looks first whether there is one.
#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_up_that_comes_before_the_sleep_and_is_forgotten_is_found() {
    shuttle::check_random(
        || {
            lock::begin(false);
            let (parker, sleeps) = (Arc::new(Parker::default()), Arc::new(AtomicBool::new(false)));
            let (sleeper, begun) = (Arc::clone(&parker), Arc::clone(&sleeps));
            let sleeper = thread::spawn(move || {
                begun.store(true, Ordering::SeqCst);
                sleeper.park_until(lock::now() + FOREVER);
            });
            if sleeps.load(Ordering::SeqCst) {
                parker.unpark();
            }
            sleeper.join().unwrap();
        },
        PLAYS,
    );
}
