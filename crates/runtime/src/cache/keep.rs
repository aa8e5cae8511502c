//! The way of an answer into the store, and to those who wait for it.

use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use alipes_request::responder::{self, Reply, Responder};
use alipes_stats::statistics::FailureReason;

use super::coalescing::{Coalescing, InFlight};
use super::key::{Key, StoredRequest};
use super::store::TooLarge;
use super::{ResponseCache, copy, record_hit};
use crate::model::{ModelVersion, Pending};

/// Keeps the answer to a request once it is there. Dropped without one, it has those computed who waited for it.
pub struct Keep {
    cache: Arc<ResponseCache>,
    model: Weak<ModelVersion>,
    key: Key,
    /// None where the request alone is too large.
    request: Result<StoredRequest, TooLarge>,
    /// How long it took to find that there was no answer.
    looked: Duration,
    leader: Option<Leader>,
}

impl Keep {
    /// For the answer to this request, whose bytes are nobody else's to change; one that does not fit is only counted.
    pub fn new(
        cache: &Arc<ResponseCache>,
        model: &Arc<ModelVersion>,
        key: Key,
        request: Result<StoredRequest, TooLarge>,
        looked: Duration,
    ) -> Keep {
        let (cache, model) = (Arc::clone(cache), Arc::downgrade(model));
        Keep { cache, model, key, request, looked, leader: None }
    }

    /// Lets equal requests wait for this one; not where they wait for another already.
    pub fn lead(&mut self, coalescing: &Arc<Coalescing>) -> bool {
        let in_flight = self.request.as_ref().ok().and_then(|request| coalescing.lead(&self.key, request));
        let (coalescing, model) = (Arc::clone(coalescing), Weak::clone(&self.model));
        self.leader = in_flight.map(|in_flight| Leader { coalescing, in_flight, model });
        self.leader.is_some()
    }
}

impl responder::Keep for Keep {
    fn keep(self: Box<Self>, reply: &Reply) -> Vec<(Responder, Reply)> {
        let Keep { cache, model, key, request, looked, leader } = *self;
        // Every caller who waits holds the version.
        let Some(model) = model.upgrade() else { return Vec::new() };
        let began = alipes_clock::now();
        let mut cached = reply.clone();
        let inserted = request.and_then(|request| {
            for output in &mut cached.outputs {
                output.data = copy(&output.data);
            }
            cache.insert(key, request, cached.clone())
        });
        // A response that does not fit is missed as well. Source: Triton.
        model.statistics.cache_miss(looked + alipes_clock::elapsed(began));
        if let (Err(error), Some(cache)) = (inserted, &model.cache) {
            cache.warn(&model, error);
        }
        // Only now, with the response in the cache: an equal request that no longer finds a leader finds the response
        // there.
        let followers = leader.map(|leader| leader.coalescing.end(&leader.in_flight)).unwrap_or_default();
        followers.into_iter().filter_map(|pending| arrive(&model, pending, &cached)).collect()
    }
}

/// A request that waited, and its answer; none where its caller has gone.
fn arrive(model: &ModelVersion, pending: Pending, reply: &Reply) -> Option<(Responder, Reply)> {
    if pending.responder.is_cancelled() {
        model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(pending.arrived));
        pending.responder.dismiss();
        return None;
    }
    Some((record_hit(model, pending, reply, alipes_clock::now()), reply.clone()))
}

/// Held for a leader; its followers are computed when it is dropped without an answer.
struct Leader {
    coalescing: Arc<Coalescing>,
    in_flight: Arc<InFlight>,
    model: Weak<ModelVersion>,
}

impl Drop for Leader {
    fn drop(&mut self) {
        let followers = self.coalescing.end(&self.in_flight);
        if !followers.is_empty() {
            compute(Weak::clone(&self.model), followers);
        }
    }
}

/// Has requests computed after all. On a thread of their own, since nobody knows what the one holds that lets go of the
/// request they waited for; that one failed or was withdrawn, which is rare.
fn compute(model: Weak<ModelVersion>, followers: Vec<Pending>) {
    let submit = move || {
        let Some(model) = model.upgrade() else { return };
        followers.into_iter().for_each(|pending| model.compute(pending));
    };
    let spawned = thread::Builder::new().name("alipes-cache".into()).spawn(submit);
    if let Err(error) = spawned {
        eprintln!("cannot start a thread for requests whose like has failed, so they fail too: {error}");
    }
}
