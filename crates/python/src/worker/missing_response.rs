//! Why a request may end without a response, and the error that its caller then gets.

use std::sync::atomic::{AtomicU8, Ordering};

use super::errors::INTERNAL;
use super::outputs::Draft;

/// Triton's number for UNSUPPORTED.
const UNSUPPORTED: u8 = 5;

/// A reason for a missing response.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum MissingReason {
    /// It took a response sender, and `execute` returned nothing for the request.
    Sender = 1,
    /// `execute` returned `None`.
    NoList = 2,
    /// `execute` returned `None` in the request's place.
    NoResponse = 4,
    /// The model wants the request to come again.
    Rescheduled = 8,
}

/// The reasons of one request.
#[derive(Default)]
pub struct MissingReasons(AtomicU8);

impl MissingReasons {
    pub fn add(&self, reason: MissingReason) {
        self.0.fetch_or(reason as u8, Ordering::Relaxed);
    }

    pub fn remove(&self, reason: MissingReason) {
        self.0.fetch_and(!(reason as u8), Ordering::Relaxed);
    }

    pub fn has(&self, reason: MissingReason) -> bool {
        self.0.load(Ordering::Relaxed) & reason as u8 != 0
    }

    /// The error that ends the request.
    pub fn error(&self, instance: &str) -> Draft {
        let (code, text) = if self.has(MissingReason::Rescheduled) {
            let text = "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, which takes a model with \
                        sequence_batching { iterative_sequence: true }";
            (UNSUPPORTED, text)
        } else if self.has(MissingReason::Sender) {
            (INTERNAL, "The response sender of the request was dropped before it sent a response.")
        } else if self.has(MissingReason::NoList) {
            (INTERNAL, "Expected a list in the execute return, found type '<class 'NoneType'>'.")
        } else {
            let text = "Expected an 'InferenceResponse' object in the execute function return list, found type \
                        '<class 'NoneType'>'.";
            (INTERNAL, text)
        };
        Draft::Error { code, text: failure(instance, text), raised: true }
    }
}

/// Triton's words around the failure of a batch.
pub fn failure(instance: &str, text: &str) -> String {
    format!("Failed to process the request(s) for model '{instance}', message: {text}")
}
