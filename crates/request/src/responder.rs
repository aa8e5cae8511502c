//! Answers: one responder per request, and batches of answers by network thread.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use alipes_protocol::limits::CHECKED_AT_ONCE_BYTES;
use alipes_protocol::{InferError, Origin, Parameter, Tensor};
use tokio::sync::oneshot;
use tokio::task;

use super::completion::{self, CompletionQueue};
use super::mailbox::{self, Mailbox, Responses};
use super::order::{Bound, Order, Place, Ticket};

/// What a model gives for a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The outputs that were asked for.
    pub outputs: Vec<Tensor>,
    /// Parameters that the model attached.
    pub parameters: Vec<(String, Parameter)>,
}

impl Reply {
    /// Bytes of the outputs: what a model's share of unread answers is counted in.
    pub fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.data.len() as u64).sum()
    }
}

/// What a request gets: a reply, or why there is none.
pub type Answer = Result<Reply, InferError>;

/// Observes the caller while the request is executed elsewhere.
///
/// Called on the caller's thread, so it must not block; it may be called after the last answer was given, and more than
/// once with the same news.
pub trait Observer: Send + Sync + 'static {
    /// The caller has gone: no answer is wanted any more.
    fn cancelled(&self);

    /// The caller wants the request to end, and takes its responses up to the last.
    fn cancelled_by_reader(&self) {
        self.cancelled();
    }

    /// The caller has taken so many responses with so many bytes of outputs.
    fn consumed(&self, responses: u32, bytes: u64);
}

/// Keeps the only answer to a request, for equal requests. Dropped where there is no such answer.
pub trait Keep: Send + Sync + 'static {
    /// Keeps the answer; gives the requests that waited for it, each with its reply.
    fn keep(self: Box<Self>, reply: &Reply) -> Vec<(Responder, Reply)>;
}

/// The obligation to answer one request. Dropping it before the last answer fails the request.
pub struct Responder {
    way: Way,
    home: Option<Arc<CompletionQueue>>,
    // Where the answer is to be kept for others.
    keep: Option<Box<dyn Keep>>,
    // Where the model promises to answer in the order of requests.
    place: Option<Place>,
    // Counts the request among those of its model, until it is answered.
    presence: Option<Presence>,
}

/// One of the requests that a model has taken in and not answered yet. A clone of what the model holds: the reference
/// count is the number of requests, so that a request costs no counter of its own.
pub type Presence = Arc<()>;

enum Way {
    /// The caller waits for one answer. A model that gives several is not refused before the last.
    One { sender: oneshot::Sender<Answer>, held: Option<Box<HeldAnswer>> },
    /// The caller takes any number.
    Many(mailbox::Sender),
    /// There is no caller.
    Nobody,
}

/// The answers so far to a caller that expects one.
struct HeldAnswer {
    first: Answer,
    responses: u32,
}

impl Responder {
    /// A responder for one answer to a request that was taken in on this thread, and where the answer will arrive.
    pub fn unary() -> (Responder, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        (
            Responder {
                way: Way::One { sender, held: None },
                home: completion::current(),
                keep: None,
                place: None,
                presence: None,
            },
            receiver,
        )
    }

    /// A responder for any number of answers to a request that was taken in on this thread, and where they will arrive.
    pub fn stream() -> (Responder, Responses) {
        Responder::stream_through(Mailbox::new())
    }

    /// A responder for any number of answers, and where they will arrive: through a mailbox that counts them, or is
    /// read in another way.
    pub fn stream_through(mailbox: Arc<Mailbox>) -> (Responder, Responses) {
        let (responder, caller) = Responder::into_mailbox(&mailbox, 0);
        (responder, Responses::new(mailbox, caller))
    }

    /// A responder whose answers arrive, marked with the tag, in a mailbox that several requests of a caller share.
    pub fn into_mailbox(mailbox: &Arc<Mailbox>, tag: u64) -> (Responder, mailbox::Caller) {
        let (sender, caller) = mailbox::channel(mailbox, tag);
        // Straight into the mailbox, whichever thread brings it: an answer in a completion queue would be overtaken by
        // the next one of that queue's own thread.
        (Responder { way: Way::Many(sender), home: None, keep: None, place: None, presence: None }, caller)
    }

    /// Has the answer kept for others, if it is one, and the only one.
    pub fn keep(&mut self, keep: impl Keep) {
        self.keep = Some(Box::new(keep));
    }

    /// A responder of a request that nobody made, as fills the row of a sequence that has none now.
    pub fn nobody() -> Responder {
        Responder { way: Way::Nobody, home: None, keep: None, place: None, presence: None }
    }

    /// Has the answers wait for those of all requests that have joined the order before.
    pub fn keep_order(&mut self, order: &Arc<Order>) {
        self.place = Some(order.join());
    }

    /// Counts the request among those that its model has in it, until it is answered.
    pub fn count_in(&mut self, presence: &Presence) {
        self.presence = Some(Arc::clone(presence));
    }

    /// Ends the obligation without an answer: the caller learns the end in another way.
    pub fn dismiss(self) {
        if let Way::Many(sender) = self.way {
            sender.dismiss();
        }
    }

    /// Whether the caller has withdrawn the request.
    pub fn is_cancelled(&self) -> bool {
        match &self.way {
            Way::One { sender, .. } => sender.is_closed(),
            Way::Many(sender) => sender.is_cancelled(),
            Way::Nobody => false,
        }
    }

    /// Sets the observer of the caller, in the place of the one before. A caller that has gone already is reported at
    /// once.
    pub fn observe(&mut self, observer: impl Observer) {
        match &mut self.way {
            Way::One { sender, .. } => {
                let waker = Waker::from(Arc::new(Farewell(observer)));
                // Unconstrained, since a task that has used up its budget is woken at once to go on with a new one;
                // here that would be taken for the caller's farewell.
                let closed = pin!(task::unconstrained(poll_fn(|context| sender.poll_closed(context))));
                if let Poll::Ready(()) = closed.poll(&mut Context::from_waker(&waker)) {
                    waker.wake();
                }
            }
            Way::Many(sender) => sender.observe(Arc::new(observer)),
            Way::Nobody => {}
        }
    }
}

/// What is woken when the caller of a unary request drops its end: the observer, who learns so that the caller has
/// gone.
struct Farewell<O>(O);

impl<O: Observer> Wake for Farewell<O> {
    fn wake(self: Arc<Self>) {
        self.0.cancelled();
    }
}

/// A finished answer, and the caller that it is for.
pub enum Completion {
    /// The only one.
    One(oneshot::Sender<Answer>, Answer),
    /// The last one of several, perhaps without a response, and with it the end of the obligation.
    Last(mailbox::Sender, Option<Answer>),
    /// One of several; more follow.
    Next(mailbox::Post, Answer),
}

impl Completion {
    /// Keeps the answer for others, if it is one; those who wait for it already are given.
    #[cold]
    fn keep(&self, keep: Box<dyn Keep>) -> Vec<(Responder, Reply)> {
        match self {
            Completion::One(_, Ok(reply)) | Completion::Last(_, Some(Ok(reply))) => keep.keep(reply),
            _ => Vec::new(),
        }
    }

    /// The reply, where a copy of it takes long.
    fn large_reply(&self) -> Option<&Reply> {
        match self {
            Completion::One(_, Ok(reply)) | Completion::Last(_, Some(Ok(reply))) => {
                Some(reply).filter(|reply| reply.bytes() > CHECKED_AT_ONCE_BYTES as u64)
            }
            _ => None,
        }
    }

    fn has_reader(&self) -> bool {
        match self {
            Completion::One(..) => false,
            Completion::Last(sender, _) => sender.has_reader(),
            Completion::Next(post, _) => post.has_reader(),
        }
    }

    /// Gives the answer to the waiting handler; a caller who has gone meanwhile misses nothing.
    pub fn deliver(self) {
        match self {
            Completion::One(sender, answer) => drop(sender.send(answer)),
            Completion::Last(sender, answer) => sender.finish(answer),
            Completion::Next(post, answer) => post.send(answer),
        }
    }
}

/// Gives a request its only answer at once. For one that runs alone and holds no lock; see [`AnswerBatch`] for batches.
pub fn answer_one(responder: Responder, answer: Answer) {
    let completion = match responder.way {
        Way::One { sender, held } => Completion::One(sender, only(held, Some(answer))),
        Way::Many(sender) => Completion::Last(sender, Some(answer)),
        Way::Nobody => return,
    };
    match responder.home {
        Some(home) if !home.is_here() => home.push(&mut vec![completion]),
        _ => completion.deliver(),
    }
}

/// Collects answers, so that each network thread is woken once for all of them.
#[derive(Default)]
pub struct AnswerBatch {
    away: Vec<(Arc<CompletionQueue>, Vec<Completion>)>,
    // Answers for readers, whose code may take locks that the thread which answers holds now.
    read: Vec<Completion>,
    // Answers that wait for their turn; the answers that one of them sets free may be for readers too.
    ordered: Vec<InTurn>,
}

/// An answer that waits for its turn, or the end of a place in the order.
enum InTurn {
    Answer(Ticket, Bound),
    End(Place),
}

impl AnswerBatch {
    /// Gives a request its only or last answer, at once where it was taken in on this thread.
    pub fn add(&mut self, responder: Responder, answer: Answer) {
        self.end(responder, Some(answer));
    }

    /// Ends a request without a further response.
    pub fn finish(&mut self, responder: Responder) {
        self.end(responder, None);
    }

    /// Gives a request an answer that others follow, be it only the end.
    pub fn respond(&mut self, responder: &mut Responder, answer: Answer) {
        match &mut responder.way {
            Way::One { held: Some(held), .. } => held.responses += 1,
            Way::One { held, .. } => *held = Some(Box::new(HeldAnswer { first: answer, responses: 1 })),
            Way::Many(sender) => {
                responder.keep = None;
                let completion = Completion::Next(sender.post(), answer);
                match &responder.place {
                    Some(place) => self.hold(place.ticket(), responder.home.clone(), completion),
                    None => self.dispatch(responder.home.clone(), completion),
                }
            }
            Way::Nobody => {}
        }
    }

    fn end(&mut self, responder: Responder, answer: Option<Answer>) {
        let completion = match responder.way {
            Way::One { sender, held } => Completion::One(sender, only(held, answer)),
            Way::Many(sender) => Completion::Last(sender, answer),
            Way::Nobody => return,
        };
        if let Some(keep) = responder.keep {
            match completion.large_reply() {
                Some(reply) if completion::is_network_thread() => keep_beside(keep, reply.clone()),
                _ => completion.keep(keep).into_iter().for_each(|(other, reply)| self.end(other, Some(Ok(reply)))),
            }
        }
        match responder.place {
            None => self.dispatch(responder.home, completion),
            Some(place) => {
                self.hold(place.ticket(), responder.home, completion);
                self.ordered.push(InTurn::End(place));
            }
        }
    }

    #[cold]
    fn hold(&mut self, ticket: Ticket, home: Option<Arc<CompletionQueue>>, completion: Completion) {
        self.ordered.push(InTurn::Answer(ticket, Bound { home, completion }));
    }

    fn dispatch(&mut self, home: Option<Arc<CompletionQueue>>, completion: Completion) {
        match home {
            None if completion.has_reader() => self.read.push(completion),
            Some(home) if !home.is_here() => self.batch_for(home).push(completion),
            _ => completion.deliver(),
        }
    }

    fn batch_for(&mut self, home: Arc<CompletionQueue>) -> &mut Vec<Completion> {
        let at = self.away.iter().position(|(other, _)| Arc::ptr_eq(other, &home));
        let at = at.unwrap_or_else(|| {
            self.away.push((home, Vec::new()));
            self.away.len() - 1
        });
        &mut self.away[at].1
    }

    /// Sends the answers, with one wake-up for each network thread.
    pub fn send(&mut self) {
        for (home, completions) in &mut self.away {
            if !completions.is_empty() {
                home.push(completions);
            }
        }
        self.read.drain(..).for_each(Completion::deliver);
        for one in self.ordered.drain(..) {
            match one {
                InTurn::Answer(ticket, answer) => ticket.answer(answer),
                InTurn::End(place) => drop(place),
            }
        }
    }
}

/// Has an answer kept on another thread, which copies it and answers those who wait for it.
fn keep_beside(keep: Box<dyn Keep>, reply: Reply) {
    drop(task::spawn_blocking(move || {
        let mut outgoing = AnswerBatch::default();
        keep.keep(&reply).into_iter().for_each(|(other, reply)| outgoing.end(other, Some(Ok(reply))));
        outgoing.send();
    }));
}

/// The one answer to a unary request.
fn only(held: Option<Box<HeldAnswer>>, last: Option<Answer>) -> Answer {
    match (held, last) {
        (None, Some(answer)) => answer,
        (Some(held), None) if held.responses == 1 => held.first,
        (held, last) => {
            let responses = held.map_or(0, |held| held.responses) + u32::from(last.is_some());
            let text = format!("expected a single response, got {responses}");
            Err(InferError::internal(text).at(Origin::Model))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[derive(Clone, Default)]
    struct Count(Arc<AtomicU32>);

    impl Observer for Count {
        fn cancelled(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn consumed(&self, _: u32, _: u64) {}
    }

    fn reply(value: i64) -> Reply {
        Reply { outputs: Vec::new(), parameters: vec![("n".to_owned(), Parameter::Int64(value))] }
    }

    #[test]
    fn a_response_and_an_end_are_one_answer() {
        let (mut responder, mut answer) = Responder::unary();
        let mut outgoing = AnswerBatch::default();
        outgoing.respond(&mut responder, Ok(reply(1)));
        assert!(answer.try_recv().is_err());
        outgoing.finish(responder);
        assert_eq!(answer.try_recv().unwrap(), Ok(reply(1)));
    }

    #[test]
    fn a_unary_caller_learns_the_number_of_responses() {
        for responses in [0, 2, 3] {
            let (mut responder, mut answer) = Responder::unary();
            let mut outgoing = AnswerBatch::default();
            (0..responses).for_each(|number| outgoing.respond(&mut responder, Ok(reply(number))));
            outgoing.finish(responder);
            let text = format!("expected a single response, got {responses}");
            assert_eq!(answer.try_recv().unwrap().unwrap_err().message, text);
        }
    }

    #[test]
    fn an_observer_of_a_unary_caller_learns_only_that_it_left() {
        let seen = Count::default();
        let (mut responder, answer) = Responder::unary();
        responder.observe(seen.clone());
        AnswerBatch::default().add(responder, Ok(reply(1)));
        drop(answer);
        assert_eq!(seen.0.load(Ordering::Relaxed), 0);
        let (mut responder, answer) = Responder::unary();
        responder.observe(Count::default());
        responder.observe(seen.clone());
        drop(answer);
        assert_eq!(seen.0.load(Ordering::Relaxed), 1);
        responder.observe(seen.clone());
        assert_eq!(seen.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_caller_is_present_when_its_task_has_no_budget_left() {
        let seen = Count::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let watching = seen.clone();
        let busy = async move {
            let (mut responder, answer) = Responder::unary();
            while task::coop::has_budget_remaining() {
                task::coop::consume_budget().await;
            }
            responder.observe(watching);
            task::yield_now().await;
            (responder, answer)
        };
        let _waiting = runtime.block_on(async { tokio::spawn(busy).await.unwrap() });
        assert_eq!(seen.0.load(Ordering::Relaxed), 0);
    }
}
