//! In-flight coalescing: while a request is computed (the leader), equal requests (its followers) wait for its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::key::{Key, StoredRequest};
use crate::model::Pending;

/// The leaders of a version, each with its followers.
#[derive(Default)]
pub struct Coalescing {
    by_key: Mutex<HashMap<Key, Arc<InFlight>>>,
    waiting: AtomicUsize,
}

/// A leader, and the followers that wait for its answer.
pub struct InFlight {
    key: Key,
    request: StoredRequest,
    /// None once it has ended.
    followers: Mutex<Option<Vec<Pending>>>,
}

impl Coalescing {
    /// Number of followers.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Makes a request follow a leader that is the same bit by bit; gives it back where there is none.
    pub fn follow(&self, key: &Key, load: u64, pending: Pending) -> Option<Pending> {
        let found = self.by_key.lock().get(key).map(Arc::clone);
        // Compared without the lock.
        let Some(in_flight) = found.filter(|in_flight| in_flight.request.is(load, &pending.checked)) else {
            return Some(pending);
        };
        match &mut *in_flight.followers.lock() {
            Some(followers) => {
                followers.push(pending);
                self.waiting.fetch_add(1, Ordering::Relaxed);
                None
            }
            None => Some(pending),
        }
    }

    /// Makes a request that will be computed a leader; none where its key has another leader.
    pub fn lead(&self, key: &Key, request: &StoredRequest) -> Option<Arc<InFlight>> {
        let mut coalescing = self.by_key.lock();
        if coalescing.contains_key(key) {
            return None;
        }
        let followers = Mutex::new(Some(Vec::new()));
        let in_flight = Arc::new(InFlight { key: key.clone(), request: request.clone(), followers });
        coalescing.insert(key.clone(), Arc::clone(&in_flight));
        Some(in_flight)
    }

    /// Ends a leader: no request follows it from now on. Gives its followers.
    pub fn end(&self, in_flight: &InFlight) -> Vec<Pending> {
        let followers = in_flight.followers.lock().take();
        // Once it is over: only its leader ends it, once, and under its key no other begins before.
        if let Some(followers) = followers {
            self.by_key.lock().remove(&in_flight.key);
            self.waiting.fetch_sub(followers.len(), Ordering::Relaxed);
            return followers;
        }
        Vec::new()
    }
}
