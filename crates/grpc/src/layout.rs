//! Where a message that arrives in several pieces is collected.

use std::borrow::Borrow;
use std::sync::Arc;

use alipes_link::RequestArena;
use alipes_protocol::codec::proto::{first_raw_tensor, named_model};
use alipes_request::budget::Budget;
use alipes_service::Service;

/// Where to collect a message.
pub(super) enum Place {
    /// On the heap, with this byte of it on a 64-byte boundary.
    Heap {
        /// Where its first tensor starts.
        aligned_at: usize,
    },
    /// Its large tensors in memory that the model's workers see.
    Workers(Arc<RequestArena>),
}

/// Decides from the beginning of a message.
pub(super) trait Layout {
    fn of(&self, head: &[u8]) -> Place;

    /// What messages are charged to.
    fn budget(&self) -> &Arc<Budget>;
}

/// For messages without tensors.
pub(super) struct Plain(pub(super) Arc<Budget>);

impl Layout for Plain {
    fn of(&self, _: &[u8]) -> Place {
        Place::Heap { aligned_at: 0 }
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.0
    }
}

/// For inference requests, which name their model in front of everything else.
pub(super) struct Inference<S>(pub(super) S);

impl<S: Borrow<Service>> Layout for Inference<S> {
    fn of(&self, head: &[u8]) -> Place {
        // A model that cannot be found is refused once the request is complete.
        let named = named_model(head).and_then(|(name, version)| self.0.borrow().lookup(name, version).ok());
        // A model that reads the message itself gets it in one piece.
        let named = named.filter(|model| !model.is_whole());
        match named.as_ref().and_then(|model| model.body_memory()) {
            Some(arena) => Place::Workers(Arc::clone(arena)),
            None => Place::Heap { aligned_at: first_raw_tensor(head).unwrap_or(0) },
        }
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.0.borrow().budget
    }
}
