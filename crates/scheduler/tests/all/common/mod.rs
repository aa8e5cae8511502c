//! A request, a clock that the test moves, and instances whose threads are values.
pub mod caller;
pub mod day;
pub mod hall;
pub mod model;
pub mod stage;

use std::time::{Duration, Instant};

use alipes_scheduler::{DynamicPolicy, Work};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    pub id: usize,
    pub rows: u32,
    pub key: u64,
}

impl Work for Request {
    fn rows(&self) -> u32 {
        self.rows
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn set_deadline(&mut self, _: Option<Instant>) {
        unreachable!("no policy here has a time-out");
    }
}

pub fn request(id: usize, rows: u32) -> Request {
    Request { id, rows, key: 0 }
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub fn policy(max_batch_size: u32, preferred_batch_sizes: &[u32], max_queue_delay: Duration) -> DynamicPolicy {
    let preferred_batch_sizes = preferred_batch_sizes.to_vec();
    DynamicPolicy { max_batch_size, preferred_batch_sizes, max_queue_delay, ..DynamicPolicy::default() }
}

pub fn ids(batch: &[Request]) -> Vec<usize> {
    batch.iter().map(|request| request.id).collect()
}

/// Time zero of a test; only distances from it matter.
pub fn zero() -> Instant {
    Instant::now()
}
