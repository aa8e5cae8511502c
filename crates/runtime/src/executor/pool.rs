//! Threads for instances that take their time: as many as there are busy instances, ending when idle for a while.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use alipes_stats::priority::{self, Priority};

use super::exchange::Exchange;
use super::following::Following;
use super::{Run, drive_loop};

/// How long an idle thread waits for work before it ends: long enough to bridge pauses between requests, short enough
/// that a thousand idle models own no thread.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);

/// How long a thread drives what its execution has started; what is left then goes to others. As long as a quick
/// execution may take.
const LONGEST_FOLLOWING: Duration = Duration::from_micros(300);

thread_local! {
    /// What this thread's execution has started; none on threads that are not the pool's.
    static FOLLOWING: RefCell<Option<Following<Run>>> = const { RefCell::new(None) };
}

/// What a thread of the pool does next.
enum Job {
    /// Drives an instance until it is idle.
    Run(Run),
    /// Drives instances, and what they start in turn, one after the other.
    Several(VecDeque<Run>),
    /// Does something once for an instance that is claimed.
    Once(Box<dyn FnOnce() + Send>),
}

static POOL: LazyLock<Exchange<Job>> = LazyLock::new(Exchange::default);

/// Has an instance driven by a thread of the pool. Never blocks: there are at most as many threads as instances.
pub fn drive(run: Run) {
    leave(Job::Run(run));
}

/// Has a thread of the pool do something once, for an instance that is claimed and that nobody else drives.
pub fn once(work: impl FnOnce() + Send + 'static) {
    leave(Job::Once(Box::new(work)));
}

/// Does something that may start runs, which are collected where this thread is one of the pool.
pub fn collect(act: impl FnOnce()) {
    let before = with_following(|following| following.set_open(true));
    act();
    if let Some(before) = before {
        with_following(|following| following.set_open(before));
    }
}

/// Takes a run, to be driven at the end of this thread's execution; gives it back where nothing is collected.
pub fn collected(run: Run) -> Result<(), Run> {
    FOLLOWING.with_borrow_mut(|following| match following {
        Some(following) => following.push(run),
        None => Err(run),
    })
}

/// Sees to what was collected, at the end of an execution: another thread does where this one is awaited.
pub fn see_to_following(is_awaited: impl FnOnce() -> bool) {
    if with_following(|following| following.is_left()) != Some(true) {
        return;
    }
    if is_awaited() {
        let runs = with_following(Following::end).unwrap_or_default();
        leave(Job::Several(runs));
    } else {
        drive_following(VecDeque::new());
    }
}

/// Drives runs, and what they start in turn, on this thread of the pool.
fn drive_following(runs: VecDeque<Run>) {
    let end = alipes_clock::now() + LONGEST_FOLLOWING;
    with_following(|following| following.begin(runs));
    collect(|| {
        while let Some(run) = next_following(end) {
            if let Some(waiting) = drive_loop::drive_once(run) {
                drive(waiting);
            }
        }
    });
    // Once the thread had driven for long enough.
    with_following(Following::end).into_iter().flatten().for_each(drive);
}

fn next_following(end: Instant) -> Option<Run> {
    if alipes_clock::now() > end { None } else { with_following(Following::next).flatten() }
}

fn with_following<T>(change: impl FnOnce(&mut Following<Run>) -> T) -> Option<T> {
    FOLLOWING.with_borrow_mut(|following| following.as_mut().map(change))
}

fn leave(job: Job) {
    if !POOL.leave(job) {
        return;
    }
    let spawned = thread::Builder::new().name("alipes-instance".into()).spawn(work);
    if let Err(error) = spawned {
        // Another thread of the pool comes for the run; without any, requests would wait, so say why.
        eprintln!("cannot start a thread for a busy instance: {error}");
    }
}

fn work() {
    priority::set(Priority::Compute);
    FOLLOWING.set(Some(Following::default()));
    while let Some(job) = POOL.next(alipes_clock::now() + IDLE_LIFETIME) {
        match job {
            Job::Run(run) => drive_loop::drive(&run),
            Job::Several(runs) => drive_following(runs),
            Job::Once(work) => {
                work();
                see_to_following(|| false);
            }
        }
    }
}
