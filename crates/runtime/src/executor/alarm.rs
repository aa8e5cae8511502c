//! One clock for the queues of all versions: it goes off where the passing of time alone changes something.
//!
//! A version has at most one alarm, and only where its queue policy has a time-out or callers have left a long queue,
//! so that what has waited too long, or in vain, leaves in time although every instance is busy. One thread waits for
//! all of them; without any it ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::model::ModelVersion;

/// How long the thread waits for a first alarm before it ends: long enough to bridge pauses between requests.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);

static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::default);

/// The address of a version, which nobody else has as long as a weak pointer to it is kept here.
type Owner = usize;

#[derive(Default)]
struct Clock {
    state: Mutex<AlarmState>,
    changed: Condvar,
}

#[derive(Default)]
struct AlarmState {
    /// Soonest first.
    alarms: BTreeMap<(Instant, Owner), Weak<ModelVersion>>,
    moments: HashMap<Owner, Instant>,
    running: bool,
}

impl AlarmState {
    /// Sets the alarm of a version, unless it goes off sooner; returns whether it is now the first of all.
    fn set(&mut self, model: &Arc<ModelVersion>, moment: Instant) -> bool {
        let owner = Arc::as_ptr(model) as Owner;
        if let Some(before) = self.moments.get(&owner).copied() {
            if before <= moment {
                return false;
            }
            self.alarms.remove(&(before, owner));
        }
        self.moments.insert(owner, moment);
        self.alarms.insert((moment, owner), Arc::downgrade(model));
        self.soonest() == Some(moment)
    }

    fn soonest(&self) -> Option<Instant> {
        self.alarms.first_key_value().map(|((moment, _), _)| *moment)
    }

    /// Takes out an alarm that goes off by now.
    fn take_due(&mut self, now: Instant) -> Option<Weak<ModelVersion>> {
        let first = self.alarms.first_entry().filter(|first| first.key().0 <= now)?;
        let ((_, owner), model) = first.remove_entry();
        self.moments.remove(&owner);
        Some(model)
    }
}

/// Has the queue of a version looked at at this moment, or sooner.
pub fn set(model: &Arc<ModelVersion>, moment: Instant) {
    let mut state = CLOCK.state.lock();
    if state.set(model, moment) {
        CLOCK.changed.notify_one();
    }
    if state.running {
        return;
    }
    let spawned = thread::Builder::new().name("alipes-alarm".into()).spawn(watch);
    state.running = spawned.is_ok();
    if let Err(error) = spawned {
        // The next alarm tries again; until then instances find what has waited too long when they ask.
        eprintln!("cannot start the thread that watches how long requests wait: {error}");
    }
}

fn watch() {
    while let Some(model) = next_due() {
        if let Some(model) = model.upgrade() {
            model.expire();
        }
    }
}

/// Waits for the next alarm; none where there has been none for a while, and with it the thread's end.
fn next_due() -> Option<Weak<ModelVersion>> {
    let mut state = CLOCK.state.lock();
    let idle_until = alipes_clock::now() + IDLE_LIFETIME;
    loop {
        let now = alipes_clock::now();
        if let Some(model) = state.take_due(now) {
            return Some(model);
        }
        let soonest = state.soonest();
        if soonest.is_none() && now >= idle_until {
            state.running = false;
            return None;
        }
        CLOCK.changed.wait_until(&mut state, soonest.unwrap_or(idle_until));
    }
}
