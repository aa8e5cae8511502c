//! Threads for instances that take their time: as many as there are busy instances, ending when idle for a while.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{Run, Step};
use crate::priority::{self, Priority};

/// How long an idle thread waits for work before it ends: long enough to bridge pauses between requests, short enough
/// that a thousand idle models own no thread.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);

static POOL: LazyLock<Pool> = LazyLock::new(Pool::default);

#[derive(Default)]
struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    runs: Vec<Run>,
    idle_threads: usize,
}

/// Has an instance driven by a thread of the pool. Never blocks: there are at most as many threads as instances.
pub fn drive(run: Run) {
    let mut state = POOL.state.lock();
    state.runs.push(run);
    if state.runs.len() <= state.idle_threads {
        drop(state);
        POOL.work.notify_one();
        return;
    }
    drop(state);
    let spawned = thread::Builder::new().name("alipes-instance".into()).spawn(work);
    if let Err(error) = spawned {
        // Another thread of the pool comes for the run; without any, requests would wait, so say why.
        eprintln!("cannot start a thread for a busy instance: {error}");
    }
}

fn work() {
    priority::set(Priority::Engine);
    while let Some(run) = next_run() {
        finish(&run);
    }
}

fn next_run() -> Option<Run> {
    let mut state = POOL.state.lock();
    let deadline = Instant::now() + IDLE_LIFETIME;
    loop {
        if let Some(run) = state.runs.pop() {
            return Some(run);
        }
        state.idle_threads += 1;
        let timed_out = POOL.work.wait_until(&mut state, deadline).timed_out();
        state.idle_threads -= 1;
        if timed_out && state.runs.is_empty() {
            return None;
        }
    }
}

/// Drives the instance until it is idle.
fn finish(run: &Run) {
    loop {
        match run.step() {
            Step::Again => {}
            Step::Wait(until) => run.model.sleep(run.instance, until),
            Step::Idle => return,
        }
    }
}
