//! Answers in the order of requests, for models that promise it.
//!
//! A request takes its place in the order when it is queued, and gives it up with its last answer. Answers that are
//! early wait until the requests before theirs are done. One thread at a time sends the answers that are due, so that
//! two threads cannot reorder them, and it holds no lock while it does.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;

use super::completion::CompletionQueue;
use super::responder::Completion;

/// The order of a version's requests.
#[derive(Default)]
pub struct Order {
    line: Mutex<OrderState>,
}

#[derive(Default)]
struct OrderState {
    /// The number of the first request.
    first: u64,
    places: VecDeque<HeldAnswers>,
    /// A thread sends the answers that are due, and looks again before it stops.
    moving: bool,
}

/// The answers of one request that came too early.
#[derive(Default)]
struct HeldAnswers {
    answers: VecDeque<Bound>,
    over: bool,
}

/// An answer, and the network thread whose connection it is for.
pub struct Bound {
    /// The completion queue that the answer goes through; none where it goes straight to its mailbox.
    pub home: Option<Arc<CompletionQueue>>,
    /// The answer.
    pub completion: Completion,
}

impl Bound {
    fn go(self) {
        match self.home {
            // Through the queue even on its own thread: the answers in it came first.
            Some(home) => home.push(&mut vec![self.completion]),
            None => self.completion.deliver(),
        }
    }
}

impl OrderState {
    /// The next answer that may go.
    fn next(&mut self) -> Option<Bound> {
        loop {
            let front = self.places.front_mut()?;
            if let Some(answer) = front.answers.pop_front() {
                return Some(answer);
            }
            if !front.over {
                return None;
            }
            self.places.pop_front();
            self.first += 1;
        }
    }
}

impl Order {
    /// A place behind all earlier ones.
    pub fn join(self: &Arc<Self>) -> Place {
        let mut line = self.line.lock();
        let number = line.first + line.places.len() as u64;
        line.places.push_back(HeldAnswers::default());
        Place(Ticket { order: Arc::clone(self), number })
    }

    fn pass(&self, number: u64, answer: Option<Bound>, last: bool) {
        let mut line = self.line.lock();
        // Answers that still come for a place which was given up are dropped.
        let place = number.checked_sub(line.first).and_then(|place| usize::try_from(place).ok());
        let Some(held) = place.and_then(|place| line.places.get_mut(place)) else { return };
        held.answers.extend(answer);
        held.over |= last;
        if mem::replace(&mut line.moving, true) {
            return;
        }
        while let Some(answer) = line.next() {
            drop(line);
            answer.go();
            line = self.line.lock();
        }
        line.moving = false;
    }
}

/// A request's place in the order. Dropping it gives it up.
pub struct Place(Ticket);

impl Place {
    /// What names the place to those who answer.
    pub fn ticket(&self) -> Ticket {
        self.0.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.order.pass(self.0.number, None, true);
    }
}

/// Which place an answer belongs to.
#[derive(Clone)]
pub struct Ticket {
    order: Arc<Order>,
    number: u64,
}

impl Ticket {
    /// Has an answer go in its turn.
    pub fn answer(&self, answer: Bound) {
        self.order.pass(self.number, Some(answer), false);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::responder::{Answer, AnswerBatch, Reply, Responder};

    fn requests(order: &Arc<Order>, count: usize) -> Vec<(Option<Responder>, oneshot::Receiver<Answer>)> {
        let request = |_| {
            let (mut responder, answer) = Responder::unary();
            responder.keep_order(order);
            (Some(responder), answer)
        };
        (0..count).map(request).collect()
    }

    fn finish(responder: &mut Option<Responder>) {
        let mut outgoing = AnswerBatch::default();
        outgoing.add(responder.take().expect("it was not answered"), Ok(Reply::default()));
        outgoing.send();
    }

    fn answered(requests: &mut [(Option<Responder>, oneshot::Receiver<Answer>)]) -> Vec<bool> {
        requests.iter_mut().map(|(_, answer)| answer.try_recv().is_ok()).collect()
    }

    #[test]
    fn an_early_answer_waits_for_those_before_it() {
        let order = Arc::default();
        let mut three = requests(&order, 3);
        finish(&mut three[1].0);
        finish(&mut three[2].0);
        assert_eq!(answered(&mut three), [false; 3]);
        finish(&mut three[0].0);
        assert_eq!(answered(&mut three), [true; 3]);
        let line = order.line.lock();
        assert_eq!((line.first, line.places.len()), (3, 0));
    }

    #[test]
    fn a_request_that_is_lost_or_dismissed_holds_nobody_up() {
        let order = Arc::default();
        let mut three = requests(&order, 3);
        finish(&mut three[2].0);
        three[0].0 = None;
        three[1].0.take().expect("it was not answered").dismiss();
        assert_eq!(answered(&mut three), [false, false, true]);
    }

    #[test]
    fn answers_of_any_number_come_one_request_after_the_other() {
        let order = Arc::default();
        let mailbox = crate::mailbox::Mailbox::new();
        let requests: Vec<_> = (0..2).map(|tag| Responder::into_mailbox(&mailbox, tag)).collect();
        let (mut responders, _callers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
        responders.iter_mut().for_each(|responder| responder.keep_order(&order));
        let mut outgoing = AnswerBatch::default();
        for _ in 0..2 {
            responders.iter_mut().rev().for_each(|responder| outgoing.respond(responder, Ok(Reply::default())));
        }
        responders.into_iter().rev().for_each(|responder| outgoing.finish(responder));
        outgoing.send();
        let mut arrived = VecDeque::new();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(mailbox.poll_take(&mut context, &mut arrived).is_ready());
        assert_eq!(arrived.iter().map(|response| response.tag).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1]);
    }
}
