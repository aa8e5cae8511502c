//! The task that frees the slots of idle sequences: one per model, asleep while no sequence is live.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use alipes_stats::turn::{Task, timed};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time;

use super::Streaming;

/// Shortest time between two looks: memory that comes back a little later does nobody harm, and ten thousand sequences
/// that end at ten thousand moments are to cost few wake-ups. Requests of a silent sequence are refused to the moment.
const REST: Duration = Duration::from_millis(50);

/// Starts the task of a model. Without any event loop, as in tests, silent sequences are freed when others need room.
pub fn start(streaming: &Streaming) {
    let context = streaming.context.upgrade();
    let reactor = Handle::try_current().ok().or_else(|| context.and_then(|context| context.reactors.pick().cloned()));
    let Some(reactor) = reactor else { return };
    if !streaming.reaping.swap(true, Ordering::Relaxed) {
        let reap = reap(Weak::clone(&streaming.itself), Arc::clone(&streaming.changed));
        reactor.spawn(timed(Task::Reaper, reap));
    }
}

async fn reap(streaming: Weak<Streaming>, changed: Arc<Notify>) {
    loop {
        let Some(next) = look(&streaming) else { return };
        match next {
            None => changed.notified().await,
            Some(moment) => {
                let moment = moment.max(alipes_clock::now() + REST);
                let _ = time::timeout_at(moment.into(), changed.notified()).await;
            }
        }
    }
}

/// Frees the slots of idle sequences and gives the moment of the next look; none once the model is gone.
fn look(streaming: &Weak<Streaming>) -> Option<Option<Instant>> {
    let streaming = streaming.upgrade()?;
    let mut gone = Vec::new();
    let next = streaming.sequences.lock().streams.reap(alipes_clock::now(), &mut gone);
    // Without the lock: the states of ten thousand sequences take a while to be given back.
    drop(gone);
    Some(next)
}
