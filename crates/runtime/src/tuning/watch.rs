//! One thread that looks at all versions that tune themselves, each once a period. Without any it ends.

use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::model::ModelVersion;

static WATCH: LazyLock<Watch> = LazyLock::new(Watch::default);

#[derive(Default)]
struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    watched: Vec<Watched>,
    running: bool,
}

struct Watched {
    model: Weak<ModelVersion>,
    period: Duration,
    due: Instant,
}

/// Has a version looked at each period until it is gone.
pub(super) fn add(model: &Arc<ModelVersion>, period: Duration) {
    let mut state = WATCH.state.lock();
    state.watched.push(Watched { model: Arc::downgrade(model), period, due: alipes_clock::now() + period });
    WATCH.changed.notify_one();
    if state.running {
        return;
    }
    let spawned = thread::Builder::new().name("alipes-tuning".into()).spawn(work);
    state.running = spawned.is_ok();
    if let Err(error) = spawned {
        // The next such version tries again; until then each keeps the setting that it has.
        eprintln!("cannot start the thread that tunes models: {error}");
    }
}

fn work() {
    while let Some(model) = next_due() {
        super::look_at(&model);
    }
}

/// Waits for the next version that is due; none once there is none left, and with it the thread's end.
fn next_due() -> Option<Arc<ModelVersion>> {
    let mut state = WATCH.state.lock();
    loop {
        state.watched.retain(|watched| watched.model.strong_count() > 0);
        let Some(first) = state.watched.iter_mut().min_by_key(|watched| watched.due) else {
            state.running = false;
            return None;
        };
        let (now, due) = (alipes_clock::now(), first.due);
        if due <= now {
            // Late by whole periods on a busy machine, it does not catch up: one look covers all of them.
            first.due = now + first.period;
            if let Some(model) = first.model.upgrade() {
                return Some(model);
            }
            continue;
        }
        WATCH.changed.wait_until(&mut state, due);
    }
}
