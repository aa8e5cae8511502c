//! Answers that are kept: a request that equals an earlier one is answered without its model.
//!
//! - `asked`: what makes two requests equal, and the key that stands for it.
//! - `posted`: answers as they left, under the bodies that asked for them; for those who ask again in the same words.
//! - `store`: what is kept, within a bound on its bytes; what was not asked for longest goes first.
//! - here: the way of a request past the store, and of an answer into it.
//!
//! What is kept is a copy, of the request as of the answer: their bytes lie in buffers that others share, in memory that
//! clients may write to, or in that of a worker. A model executes the very copy that its answer is kept under, so that
//! nobody who changes shared memory meanwhile can have a wrong answer kept for others.

mod asked;
mod posted;
mod store;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use alipes_protocol::codec::json::EncodedResponse;
use alipes_protocol::copies;
use alipes_protocol::trace::{Moment, Side};
use bytes::Bytes;

use crate::executor::answer::{Parcels, Reply};
use crate::model::check::Checked;
use crate::model::{ModelVersion, Pending};
use crate::workers::clock;
use asked::{Asked, Key};
pub use posted::{Encoded, Posted};
pub use store::{ResponseCache, Usage};

/// The cache as one version of a model uses it.
pub struct Cached {
    cache: Arc<ResponseCache>,
    /// Tells its answers from those of every other version, also of the one that had its number before a reload.
    load: u64,
}

impl Cached {
    /// A use of the cache by a version that has just been loaded.
    pub fn new(cache: &Arc<ResponseCache>) -> Cached {
        Cached { cache: Arc::clone(cache), load: cache.next_load() }
    }

    /// Answers a request whose answer is known. Any other comes back, its answer to be kept.
    pub fn answer(&self, model: &Arc<ModelVersion>, pending: Pending) -> Option<Pending> {
        let began = Instant::now();
        let key = self.cache.key(self.load, &pending.checked);
        match self.find(key.clone(), model, &pending.checked) {
            Some(reply) => {
                hit(model, pending, reply, began);
                None
            }
            None => Some(self.missed(model, pending, key, began)),
        }
    }

    /// A body that was posted to this version.
    pub fn posted(&self, header_length: Option<usize>, body: &Bytes) -> Posted {
        self.cache.posted(self.load, header_length, body)
    }

    /// The answer to a body that was posted before.
    pub fn find_encoded(&self, posted: &Posted) -> Option<Encoded> {
        self.cache.find_encoded(posted)
    }

    /// Whether the body came before, so that its answer is worth keeping as it will be encoded.
    pub fn is_repeated(&self, posted: &Posted) -> bool {
        self.cache.is_repeated(posted)
    }

    /// Keeps the answer to a body as it was encoded. Gone with the version, like all its answers.
    pub fn keep_encoded(&self, posted: Posted, answer: &EncodedResponse) {
        self.cache.insert_encoded(posted.copied(), Encoded::copy_of(answer));
    }

    /// Where only some outputs are asked for, an answer with all of them will do, and is given whole. Source: Triton
    /// gives whatever outputs it has.
    fn find(&self, key: Key, model: &ModelVersion, checked: &Checked) -> Option<Reply> {
        let all = model.spec.outputs.len();
        let whole = (key.outputs.len() < all).then(|| Key { outputs: (0..all).collect(), ..key.clone() });
        [Some(key), whole].into_iter().flatten().find_map(|key| self.cache.find(&key, self.load, checked))
    }

    fn missed(&self, model: &Arc<ModelVersion>, mut pending: Pending, key: Key, began: Instant) -> Pending {
        if self.cache.has_room_for(&pending.checked) {
            for input in &mut pending.checked.inputs {
                input.data = copy(&input.data);
            }
            pending.responder.keep(Keep {
                cache: Arc::clone(&self.cache),
                model: Arc::downgrade(model),
                key,
                asked: Asked::new(self.load, &pending.checked),
                looked: began.elapsed(),
            });
        }
        pending
    }
}

impl Drop for Cached {
    fn drop(&mut self) {
        self.cache.forget(self.load);
    }
}

fn hit(model: &ModelVersion, pending: Pending, reply: Reply, began: Instant) {
    let Pending { mut responder, arrived, trace, .. } = pending;
    model.take_turn(&mut responder);
    let now = Instant::now();
    // Booked before the answer leaves: who asks for statistics after it finds it in them.
    model.statistics.cache_hit(began.duration_since(arrived), now.duration_since(began), now.duration_since(arrived));
    if let Some(trace) = trace {
        trace.note_tensors(Side::BackendOutput, &reply.outputs);
        trace.note(Moment::InferResponseComplete, clock::ns(now));
        trace.note(Moment::RequestEnd, clock::ns(now));
    }
    let mut parcels = Parcels::default();
    parcels.add(responder, Ok(reply));
    parcels.send();
}

/// Keeps the answer to a request once it is there.
pub struct Keep {
    cache: Arc<ResponseCache>,
    model: Weak<ModelVersion>,
    key: Key,
    asked: Asked,
    /// How long it took to find that there was no answer.
    looked: Duration,
}

impl Keep {
    /// Keeps this answer, the only one to its request.
    pub fn keep(self, reply: &Reply) {
        let Some(model) = self.model.upgrade() else { return };
        let began = Instant::now();
        let mut kept = reply.clone();
        for output in &mut kept.outputs {
            output.data = copy(&output.data);
        }
        self.cache.insert(self.key, self.asked, kept);
        model.statistics.cache_miss(self.looked + began.elapsed());
    }
}

fn copy(data: &Bytes) -> Bytes {
    copies::note(data.len());
    Bytes::copy_from_slice(data)
}
