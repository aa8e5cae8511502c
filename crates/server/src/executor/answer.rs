//! The way back: one responder per request, and parcels of answers per network thread.

use std::sync::Arc;

use alipes_protocol::{InferError, Tensor};
use tokio::sync::oneshot;

use super::desk::{self, Desk};

/// What a request gets: its outputs, or why there are none.
pub type Answer = Result<Vec<Tensor>, InferError>;

/// The obligation to answer one request, once. Dropping it unanswered tells the handler so.
pub struct Responder {
    sender: oneshot::Sender<Answer>,
    home: Option<Arc<Desk>>,
}

impl Responder {
    /// A responder for a request that was taken in on this thread, and where its answer will arrive.
    pub fn new() -> (Responder, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (Responder { sender, home: desk::current() }, receiver)
    }

    /// Whether the caller has withdrawn the request.
    pub fn is_cancelled(&self) -> bool {
        self.sender.is_closed()
    }
}

/// An answer on its way.
pub struct Delivery {
    sender: oneshot::Sender<Answer>,
    answer: Answer,
}

impl Delivery {
    /// Gives the answer to the waiting handler; a caller who has gone meanwhile misses nothing.
    pub fn hand_over(self) {
        let _ = self.sender.send(self.answer);
    }
}

/// Collects the answers of a batch, so that each network thread is woken once.
#[derive(Default)]
pub struct Parcels {
    away: Vec<(Arc<Desk>, Vec<Delivery>)>,
}

impl Parcels {
    /// Answers a request, at once where it was taken in on this thread.
    pub fn add(&mut self, responder: Responder, answer: Answer) {
        let delivery = Delivery { sender: responder.sender, answer };
        match responder.home {
            Some(desk) if !desk.is_here() => self.parcel_for(desk).push(delivery),
            _ => delivery.hand_over(),
        }
    }

    fn parcel_for(&mut self, desk: Arc<Desk>) -> &mut Vec<Delivery> {
        let at = self.away.iter().position(|(other, _)| Arc::ptr_eq(other, &desk));
        let at = at.unwrap_or_else(|| {
            self.away.push((desk, Vec::new()));
            self.away.len() - 1
        });
        &mut self.away[at].1
    }

    /// Sends the parcels off.
    pub fn send(&mut self) {
        for (desk, deliveries) in &mut self.away {
            if !deliveries.is_empty() {
                desk.deliver(deliveries);
            }
        }
    }
}
