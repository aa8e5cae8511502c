//! The way of an answer into the store, and to those who wait for it.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::asked::{Asked, Key};
use super::flight::{Flight, Flights};
use super::{ResponseCache, book_hit, copy};
use crate::books::statistics::FailureReason;
use crate::request::responder::{self, Reply, Responder};
use crate::runtime::model::{ModelVersion, Pending};

/// Keeps the answer to a request once it is there. Dropped without one, it has those computed who waited for it.
pub struct Keep {
    cache: Arc<ResponseCache>,
    model: Weak<ModelVersion>,
    key: Key,
    asked: Asked,
    /// How long it took to find that there was no answer.
    looked: Duration,
    leading: Option<Leading>,
}

impl Keep {
    /// For the answer to this request, whose bytes are nobody else's to change.
    pub fn new(
        cache: &Arc<ResponseCache>,
        model: &Arc<ModelVersion>,
        key: Key,
        asked: Asked,
        looked: Duration,
    ) -> Keep {
        let (cache, model) = (Arc::clone(cache), Arc::downgrade(model));
        Keep { cache, model, key, asked, looked, leading: None }
    }

    /// Lets equal requests wait for this one; not where they wait for another already.
    pub fn lead(&mut self, flights: &Arc<Flights>) -> bool {
        let flight = flights.begin(&self.key, &self.asked);
        let (flights, model) = (Arc::clone(flights), Weak::clone(&self.model));
        self.leading = flight.map(|flight| Leading { flights, flight, model });
        self.leading.is_some()
    }
}

impl responder::Keep for Keep {
    fn keep(self: Box<Self>, reply: &Reply) -> Vec<(Responder, Reply)> {
        let Keep { cache, model, key, asked, looked, leading } = *self;
        // Every caller who waits holds the version.
        let Some(model) = model.upgrade() else { return Vec::new() };
        let began = Instant::now();
        let mut kept = reply.clone();
        for output in &mut kept.outputs {
            output.data = copy(&output.data);
        }
        cache.insert(key, asked, kept.clone());
        model.statistics.cache_miss(looked + began.elapsed());
        // Once it is there: whoever comes from now on finds it.
        let passengers = leading.map(|leading| leading.flights.end(&leading.flight)).unwrap_or_default();
        passengers.into_iter().filter_map(|pending| arrive(&model, pending, &kept)).collect()
    }
}

/// A request that waited, and its answer; none where its caller has gone.
fn arrive(model: &ModelVersion, pending: Pending, reply: &Reply) -> Option<(Responder, Reply)> {
    if pending.responder.is_cancelled() {
        model.statistics.failed(FailureReason::Canceled, pending.arrived.elapsed());
        pending.responder.dismiss();
        return None;
    }
    Some((book_hit(model, pending, reply, Instant::now()), reply.clone()))
}

/// Held for a request that others wait for.
struct Leading {
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    model: Weak<ModelVersion>,
}

impl Drop for Leading {
    fn drop(&mut self) {
        let passengers = self.flights.end(&self.flight);
        if !passengers.is_empty() {
            compute(Weak::clone(&self.model), passengers);
        }
    }
}

/// Has requests computed after all. On a thread of their own, since nobody knows what the one holds that lets go of the
/// request they waited for; that one failed or was withdrawn, which is rare.
fn compute(model: Weak<ModelVersion>, passengers: Vec<Pending>) {
    let submit = move || {
        let Some(model) = model.upgrade() else { return };
        passengers.into_iter().for_each(|pending| model.compute(pending));
    };
    let spawned = thread::Builder::new().name("alipes-cache".into()).spawn(submit);
    if let Err(error) = spawned {
        eprintln!("cannot start a thread for requests whose like has failed, so they fail too: {error}");
    }
}
