//! Answers that are kept: a request that equals an earlier one is answered without its model.
//!
//! - `key`: what makes two requests equal, and the key that stands for it.
//! - `body_key`: encoded responses by request body, for clients that send the same bytes again.
//! - `store`: the stored responses, within a bound on their bytes; the least recently used goes first.
//! - `coalescing`: equal requests in flight: a leader that is computed, and its followers.
//! - `keep`: puts a response into the store, and gives it to the followers.
//! - here: looks a request up in the store.
//!
//! What is kept is a copy, of the request as of the answer: their bytes lie in buffers that others share, in memory
//! that clients may write to, or in that of a worker. A model executes the very copy that its answer is kept under, so
//! that nobody who changes shared memory meanwhile can have a wrong answer kept for others.

mod body_key;
mod coalescing;
mod keep;
mod key;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use alipes_protocol::codec::json::EncodedResponse;
use alipes_protocol::copies;
use alipes_protocol::trace::{Moment, Side};
use alipes_request::check::Checked;
use alipes_request::responder::{AnswerBatch, Reply, Responder};
use alipes_spec::ModelSpec;
use alipes_spec::log::WARNING;
use alipes_stats::clock;
use alipes_stats::events::Event;
use bytes::Bytes;

use crate::model::{ModelVersion, Pending, PendingRequest, policy};
pub use body_key::{BodyKey, Encoded};
use coalescing::Coalescing;
pub use keep::Keep;
use key::{Key, StoredRequest};
pub use store::ResponseCache;
use store::TooLarge;

/// The cache as one version of a model uses it.
pub struct Cached {
    cache: Arc<ResponseCache>,
    /// Tells its answers from those of every other version, also of the one that had its number before a reload.
    load: u64,
    /// Leaders and their followers; none where requests have an order to keep, or limits on their time in the queue or
    /// their number, which followers would escape.
    coalescing: Option<Arc<Coalescing>>,
    /// Whether the log says already that something did not fit.
    warned: AtomicBool,
}

impl Cached {
    /// A use of the cache by a version that has just been loaded.
    pub fn new(cache: &Arc<ResponseCache>, spec: &ModelSpec) -> Cached {
        let coalescing = policy::waits_freely(&spec.scheduling).then(Arc::default);
        Cached { cache: Arc::clone(cache), load: cache.next_load(), coalescing, warned: false.into() }
    }

    /// Number of followers.
    pub fn waiting(&self) -> usize {
        self.coalescing.as_ref().map_or(0, |coalescing| coalescing.waiting())
    }

    /// Answers a request whose answer is known, or has it wait for one like it that is computed now. Any other comes
    /// back, its answer to be kept.
    pub fn answer(&self, model: &Arc<ModelVersion>, pending: Pending) -> Option<Pending> {
        let began = alipes_clock::now();
        let key = self.cache.key(self.load, &pending.checked);
        let pending = self.give(&key, model, pending, began)?;
        // What a model sent never waits for another request, which might wait for that model in turn.
        let coalescing = self.coalescing.as_ref().filter(|_| pending.chain.is_none());
        let mut pending = match coalescing {
            Some(coalescing) => coalescing.follow(&key, self.load, pending)?,
            None => pending,
        };
        let mut keep = self.keep(model, &mut pending, key.clone(), began);
        if coalescing.is_some_and(|coalescing| keep.lead(coalescing)) {
            // One like it may have ended since it was looked for.
            pending = self.give(&key, model, pending, began)?;
        }
        pending.responder.keep(keep);
        Some(pending)
    }

    /// Answers a request whose answer is known. Any other comes back, its answer to be kept; it waits for nobody.
    pub fn answer_alone(&self, model: &Arc<ModelVersion>, pending: Pending) -> Option<Pending> {
        let began = alipes_clock::now();
        let key = self.cache.key(self.load, &pending.checked);
        let mut pending = self.give(&key, model, pending, began)?;
        let keep = self.keep(model, &mut pending, key, began);
        pending.responder.keep(keep);
        Some(pending)
    }

    /// The key of a body sent to this version.
    pub fn body_key(&self, header_length: Option<usize>, body: &Bytes) -> BodyKey {
        self.cache.body_key(self.load, header_length, body)
    }

    /// The stored response to a body that came before.
    pub fn find_encoded(&self, body_key: &BodyKey) -> Option<Encoded> {
        self.cache.find_encoded(body_key)
    }

    /// Whether the body came before, so that its answer is worth keeping as it will be encoded.
    pub fn is_repeated(&self, body_key: &BodyKey) -> bool {
        self.cache.is_repeated(body_key)
    }

    /// Keeps the answer to a body as it was encoded. Gone with the version, like all its answers.
    pub fn keep_encoded(&self, body_key: BodyKey, answer: &EncodedResponse) {
        // Where it does not fit, the ordinary cache has warned of it, or answers in its place.
        let _ = self.cache.insert_encoded(body_key.copied(), Encoded::copy_of(answer));
    }

    /// Says in the log that something does not fit, once for each version: a cache that is too small goes unnoticed
    /// else.
    fn warn(&self, model: &ModelVersion, TooLarge { bytes, limit_bytes }: TooLarge) {
        let Some(events) = model.events.as_ref().filter(|_| !self.warned.swap(true, Ordering::Relaxed)) else { return };
        let text = format!(
            "model '{}' version {}: a response with its request takes {bytes} bytes, more than the {limit_bytes} of \
             the response cache. Such responses are sent and not cached: --cache-config=local,size=N makes the cache \
             larger",
            model.name, model.spec.version
        );
        events.push(Event::Notice { level: WARNING, text });
    }

    /// Gives a request its answer, where that is known; else gives the request back.
    fn give(&self, key: &Key, model: &Arc<ModelVersion>, pending: Pending, began: Instant) -> Option<Pending> {
        let Some(reply) = self.find(key.clone(), model, &pending.checked) else { return Some(pending) };
        let mut responder = record_hit(model, pending, &reply, began);
        model.take_turn(&mut responder);
        let mut outgoing = AnswerBatch::default();
        outgoing.add(responder, Ok(reply));
        outgoing.send();
        None
    }

    /// Where only some outputs are asked for, an answer with all of them will do, and is given whole. Source: Triton
    /// gives whatever outputs it has.
    fn find(&self, key: Key, model: &ModelVersion, checked: &Checked) -> Option<Reply> {
        let all = model.spec.outputs.len();
        let whole = (key.outputs.len() < all).then(|| Key { outputs: (0..all).collect(), ..key.clone() });
        [Some(key), whole].into_iter().flatten().find_map(|key| self.cache.find(&key, self.load, checked))
    }

    /// Has a request own its bytes, and says how its answer is kept. One that there is no room for is only counted.
    fn keep(&self, model: &Arc<ModelVersion>, pending: &mut Pending, key: Key, began: Instant) -> Keep {
        if let Err(error) = self.cache.check_room_for(&pending.checked) {
            return Keep::new(&self.cache, model, key, Err(error), alipes_clock::elapsed(began));
        }
        for input in &mut pending.checked.inputs {
            input.data = copy(&input.data);
        }
        let request = StoredRequest::new(self.load, &pending.checked);
        self.cache.charge(&mut pending.checked.inputs);
        Keep::new(&self.cache, model, key, Ok(request), alipes_clock::elapsed(began))
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        self.cache.forget(self.load);
    }
}

/// Records a request that is answered without the model, and returns its responder. It records first, so that
/// statistics that a client reads after its response include the request.
fn record_hit(model: &ModelVersion, pending: Pending, reply: &Reply, began: Instant) -> Responder {
    let PendingRequest { responder, arrived, trace, .. } = *pending;
    let now = alipes_clock::now();
    model.statistics.cache_hit(began.duration_since(arrived), now.duration_since(began), now.duration_since(arrived));
    if let Some(trace) = trace {
        trace.note_tensors(Side::BackendOutput, &reply.outputs);
        trace.note_response(clock::ns(now));
        trace.note(Moment::RequestEnd, clock::ns(now));
    }
    responder
}

fn copy(data: &Bytes) -> Bytes {
    copies::note(data.len());
    Bytes::copy_from_slice(data)
}
