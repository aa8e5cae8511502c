//! Visits to the sequences of a model whose states are kept beside its instances.

use std::sync::Arc;

use alipes_protocol::{Code, CorrelationId, InferError, SequenceInfo};
use alipes_request::check::{Checked, RequestContext, Terms};
use alipes_request::responder::Responder;
use bytes::Bytes;
use smallvec::SmallVec;

use super::{ModelVersion, PendingRequest};
use crate::sequences::{Sequences, Visit};

/// No request has it: visits share batches with visits alone.
const KEY: u64 = u64::MAX;

/// Longest wait of a visit for a slot, in microseconds. A slot whose sequence has just had its last answer is free a
/// moment later; where other sequences hold all slots, a client that puts a state had better try another server.
const SLOT_WAIT_US: u64 = 5_000_000;

impl PendingRequest {
    /// What it came for, where it is a visit.
    pub fn visit(&self) -> Option<&Visit> {
        self.checked.context.as_ref().and_then(|context| context.visit.as_ref())
    }

    /// Whether it executes nothing.
    pub fn is_visit(&self) -> bool {
        self.visit().is_some()
    }
}

impl ModelVersion {
    /// The sequences whose states can be visited.
    pub fn visited(&self) -> Option<&Sequences> {
        let sequences = self.sequences.as_ref().filter(|sequences| !sequences.states.is_empty())?;
        self.driver.local_instances().map(|_| sequences)
    }

    /// Has a visit take its turn in a live sequence, behind the requests that came before; a state that is put begins
    /// the sequence, where it is not live. Gives what was taken.
    ///
    /// # Errors
    ///
    /// `NotFound` where the sequence is not live, `Unavailable` where it has no slot.
    pub async fn visit(self: &Arc<Self>, id: CorrelationId, visit: Visit) -> Result<Bytes, InferError> {
        let begins = matches!(visit, Visit::Put(_)).then(|| (id.clone(), visit.clone()));
        match self.send_visit(id, visit, false).await {
            Err(error) if error.code == Code::NotFound => match begins {
                Some((id, visit)) => self.send_visit(id, visit, true).await,
                None => Err(error),
            },
            outcome => outcome,
        }
    }

    async fn send_visit(self: &Arc<Self>, id: CorrelationId, visit: Visit, start: bool) -> Result<Bytes, InferError> {
        let end = visit == Visit::End;
        // One that is there already waits with those of its sequence, however long that takes.
        let timeout_us = if start { SLOT_WAIT_US } else { 0 };
        let sequence = SequenceInfo { correlation_id: id, start, end };
        let context = RequestContext { sequence, visit: Some(visit), ..RequestContext::default() };
        let checked = Checked {
            inputs: SmallVec::new(),
            outputs: SmallVec::new(),
            rows: 1,
            key: KEY,
            terms: Terms { timeout_us, ..Terms::default() },
            is_call: false,
            context: Some(Box::new(context)),
        };
        let (responder, answer) = Responder::unary();
        let arrived = alipes_clock::now();
        let pending = PendingRequest::alone(checked, arrived, responder);
        self.schedule(pending).map_err(|(error, responder)| {
            responder.dismiss();
            error
        })?;
        let lost = |_| Err(InferError::internal(format!("model '{}' dropped the visit without an answer", self.name)));
        let reply = answer.await.unwrap_or_else(lost)?;
        Ok(reply.outputs.into_iter().next().map(|output| output.data).unwrap_or_default())
    }
}
