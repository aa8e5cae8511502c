//! Who frees the slots of sequences that have gone silent: one task a model, asleep while no sequence is live.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time;

use super::Streaming;
use crate::model::{Drivers, ModelVersion};

/// Shortest time between two looks: memory that comes back a little later does nobody harm, and ten thousand sequences
/// that end at ten thousand moments are to cost few wake-ups. Requests of a silent sequence are refused to the moment.
const REST: Duration = Duration::from_millis(50);

/// Starts the task of a model. Without any event loop, as in tests, silent sequences are freed when others need room.
pub fn start(streaming: &Streaming, model: &Arc<ModelVersion>) {
    let service = streaming.service.upgrade();
    let reactor = Handle::try_current().ok().or_else(|| service.and_then(|service| service.reactors.pick().cloned()));
    let Some(reactor) = reactor else { return };
    if !streaming.reaping.swap(true, Ordering::Relaxed) {
        reactor.spawn(reap(Arc::downgrade(model), Arc::clone(&streaming.changed)));
    }
}

async fn reap(model: Weak<ModelVersion>, changed: Arc<Notify>) {
    loop {
        let Some(next) = look(&model) else { return };
        match next {
            None => changed.notified().await,
            Some(moment) => {
                let moment = moment.max(Instant::now() + REST);
                let _ = time::timeout_at(moment.into(), changed.notified()).await;
            }
        }
    }
}

/// Frees what is to be freed; tells when to look again. None where the model has gone.
fn look(model: &Weak<ModelVersion>) -> Option<Option<Instant>> {
    let model = model.upgrade()?;
    let Drivers::Streaming(streaming) = &model.drivers else { return None };
    let mut gone = Vec::new();
    let next = streaming.sequences.lock().streams.reap(Instant::now(), &mut gone);
    // Without the lock: the states of ten thousand sequences take a while to be given back.
    drop(gone);
    Some(next)
}
