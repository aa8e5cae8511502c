//! One thread that looks at all versions that tune themselves, each once a period. Without any it ends.

use std::sync::{Arc, LazyLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::look::look_at;
use crate::model::ModelVersion;

static WATCH: LazyLock<Watch> = LazyLock::new(Watch::default);

#[derive(Default)]
struct Watch {
    list: Mutex<WatchList>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchList {
    watched: Vec<Watched>,
    running: bool,
}

struct Watched {
    model: Weak<ModelVersion>,
    period: Duration,
    due: Instant,
}

/// Begins to tune a version that is about to serve.
pub fn begin(model: &Arc<ModelVersion>) {
    if let Some(tuning) = &model.tuning {
        look_at(model);
        add(model, tuning.period());
    }
}

/// Has a version looked at each period until it is gone.
fn add(model: &Arc<ModelVersion>, period: Duration) {
    let mut list = WATCH.list.lock();
    list.watched.push(Watched { model: Arc::downgrade(model), period, due: alipes_clock::now() + period });
    WATCH.changed.notify_one();
    if list.running {
        return;
    }
    let spawned = thread::Builder::new().name("alipes-tuning".into()).spawn(work);
    list.running = spawned.is_ok();
    if let Err(error) = spawned {
        // The next such version tries again; until then each keeps the setting that it has.
        eprintln!("cannot start the thread that tunes models: {error}");
    }
}

fn work() {
    while let Some(model) = next_due() {
        look_at(&model);
    }
}

/// Waits for the next version that is due; none once there is none left, and with it the thread's end.
fn next_due() -> Option<Arc<ModelVersion>> {
    let mut list = WATCH.list.lock();
    loop {
        list.watched.retain(|watched| watched.model.strong_count() > 0);
        let Some(first) = list.watched.iter_mut().min_by_key(|watched| watched.due) else {
            list.running = false;
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
        WATCH.changed.wait_until(&mut list, due);
    }
}
