//! A guard that notes when a model is done with a request.

use std::ops::Deref;
use std::sync::Arc;

use alipes_protocol::trace::{Moment, Trace};

use crate::clock::now_ns;

/// The record of a request that a model works on. However the request ends (answered, cancelled, or lost with a
/// worker), its end is noted: at the latest when this is dropped.
#[derive(Debug)]
pub struct Underway(Arc<Trace>);

impl Underway {
    /// For a request that a model accepts.
    pub fn new(trace: Arc<Trace>) -> Underway {
        Underway(trace)
    }

    /// The record, for holders that outlive the model's work.
    pub fn record(&self) -> Arc<Trace> {
        Arc::clone(&self.0)
    }
}

impl Deref for Underway {
    type Target = Trace;

    fn deref(&self) -> &Trace {
        &self.0
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.note_once(Moment::RequestEnd, now_ns());
    }
}
