//! A turn of a sequence that executes nothing: its states are looked at, or changed, between two of its requests.

use alipes_protocol::{Datatype, Tensor};
use alipes_request::responder::{AnswerBatch, Reply};
use alipes_scheduler::Work;
use bytes::Bytes;

use super::rows::Rows;
use super::{Sequences, StateTensor, Visit, slot};
use crate::model::Pending;

impl Rows {
    /// Does what a visit came for.
    pub fn receive(&mut self, sequences: &Sequences, pending: &Pending, visit: &Visit) -> Reply {
        let (states, slot) = (&sequences.states, slot(pending.slot_id()));
        match visit {
            Visit::Take => {
                let tensors: Vec<&StateTensor> =
                    (0..states.list.len()).map(|state| self.states.get(states, slot, state)).collect();
                return answer(states.to_bytes(&tensors));
            }
            Visit::Put(tensors) => {
                for (state, tensor) in tensors.iter().enumerate() {
                    self.states.set(states, slot, state, tensor.clone());
                }
            }
            Visit::End => self.states.clear(slot),
        }
        Reply::default()
    }
}

/// Takes the visits out of a batch and answers them; what is left is executed.
#[cold]
pub fn receive_all(sequences: &Sequences, rows: &mut Rows, batch: &mut Vec<Pending>, outgoing: &mut AnswerBatch) {
    let (visits, requests) = batch.drain(..).partition::<Vec<_>, _>(|pending| pending.is_visit());
    batch.extend(requests);
    for pending in visits {
        let Some(visit) = pending.visit() else { continue };
        let reply = rows.receive(sequences, &pending, visit);
        outgoing.add(pending.responder, Ok(reply));
    }
}

fn answer(bytes: Bytes) -> Reply {
    let shape = [bytes.len() as i64][..].into();
    Reply {
        outputs: vec![Tensor { name: "state".into(), datatype: Datatype::Uint8, shape, data: bytes }],
        ..Reply::default()
    }
}
