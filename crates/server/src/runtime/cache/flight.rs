//! Equal requests that come while the first of them is computed: they wait for its answer.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::asked::{Asked, Key};
use crate::runtime::model::Pending;

/// The requests of a version that are computed now, each with those who wait for the same.
#[derive(Default)]
pub struct Flights {
    by_key: Mutex<HashMap<Key, Arc<Flight>>>,
    waiting: AtomicUsize,
}

/// A request that is computed, and who waits for its answer.
pub struct Flight {
    key: Key,
    asked: Asked,
    /// None once it has ended.
    passengers: Mutex<Option<Vec<Pending>>>,
}

impl Flights {
    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Has a request wait for one that is the same bit by bit; it comes back where there is none now.
    pub fn board(&self, key: &Key, load: u64, pending: Pending) -> Option<Pending> {
        let found = self.by_key.lock().get(key).map(Arc::clone);
        // Compared without the lock.
        let Some(flight) = found.filter(|flight| flight.asked.is(load, &pending.checked)) else { return Some(pending) };
        match &mut *flight.passengers.lock() {
            Some(passengers) => {
                passengers.push(pending);
                self.waiting.fetch_add(1, Ordering::Relaxed);
                None
            }
            None => Some(pending),
        }
    }

    /// Lets others wait for a request that will be computed; none where some wait for another under its key.
    pub fn begin(&self, key: &Key, asked: &Asked) -> Option<Arc<Flight>> {
        let mut flights = self.by_key.lock();
        if flights.contains_key(key) {
            return None;
        }
        let passengers = Mutex::new(Some(Vec::new()));
        let flight = Arc::new(Flight { key: key.clone(), asked: asked.clone(), passengers });
        flights.insert(key.clone(), Arc::clone(&flight));
        Some(flight)
    }

    /// Ends a flight, which is there until then. Nobody waits for it from now on; those who did are the caller's to see to.
    pub fn end(&self, flight: &Flight) -> Vec<Pending> {
        let passengers = flight.passengers.lock().take();
        // Once it is over: only its leader ends it, once, and under its key no other begins before.
        if let Some(passengers) = passengers {
            self.by_key.lock().remove(&flight.key);
            self.waiting.fetch_sub(passengers.len(), Ordering::Relaxed);
            return passengers;
        }
        Vec::new()
    }
}
