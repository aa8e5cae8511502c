//! Threads for instances that take their time: as many as there are busy instances, ending when idle for a while.

use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use alipes_stats::priority::{self, Priority};

use super::exchange::Exchange;
use super::{Run, drive_loop};

/// How long an idle thread waits for work before it ends: long enough to bridge pauses between requests, short enough
/// that a thousand idle models own no thread.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);

/// What a thread of the pool does next.
enum Job {
    /// Drives an instance until it is idle.
    Run(Run),
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
    while let Some(job) = POOL.next(alipes_clock::now() + IDLE_LIFETIME) {
        match job {
            Job::Run(run) => drive_loop::drive(&run),
            Job::Once(work) => work(),
        }
    }
}
