//! Where the answers of requests with any number of responses arrive: one queue for all requests of a caller.
//!
//! A stream of a hundred requests with a hundred responses each has one mailbox: what has come since its owner last
//! looked is taken in one go, and the owner is woken once for it.

use std::collections::VecDeque;
use std::future;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

use alipes_protocol::{Code, InferError, Origin};
use parking_lot::Mutex;

use super::responder::{Answer, Observer};
use crate::budget::{Budget, count_answer};

/// One response as it arrives, or the end of a request's responses.
#[derive(Debug, PartialEq)]
pub struct Response {
    /// The request that it belongs to, as the mailbox's owner marked it.
    pub tag: u64,
    /// The response; `None` where the last one was not known to be the last when it was given.
    pub answer: Option<Answer>,
    /// No more will come for this request.
    pub last: bool,
}

/// Takes responses as they arrive, on the thread that brings them.
pub trait Reader: Send + Sync + 'static {
    /// One more response.
    fn take(&self, response: Response);
}

/// Responses that have arrived, and who waits for them.
#[derive(Default)]
pub struct Mailbox {
    state: Mutex<State>,
    reader: Option<Arc<dyn Reader>>,
    /// Counts what arrives among the bytes in flight, until it is sent.
    budget: Option<Arc<Budget>>,
}

#[derive(Default)]
struct State {
    arrived: VecDeque<Response>,
    waker: Option<Waker>,
}

impl Mailbox {
    /// An empty one.
    pub fn new() -> Arc<Mailbox> {
        Arc::default()
    }

    /// One whose reader takes each response at once, so that nothing waits in it and nobody has to be woken.
    pub fn read_by(reader: Arc<dyn Reader>) -> Arc<Mailbox> {
        Arc::new(Mailbox { reader: Some(reader), ..Mailbox::default() })
    }

    /// One for a caller outside: responses wait until it reads them, and take memory until then.
    pub fn counted(budget: Arc<Budget>) -> Arc<Mailbox> {
        Arc::new(Mailbox { budget: Some(budget), ..Mailbox::default() })
    }

    /// Whether somebody takes each response at once.
    pub fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    /// Takes everything that has arrived, in its order, or has the task woken when something does.
    pub fn poll_take(&self, context: &mut Context<'_>, into: &mut VecDeque<Response>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.arrived.is_empty() {
            match &mut state.waker {
                Some(waker) => waker.clone_from(context.waker()),
                waker => *waker = Some(context.waker().clone()),
            }
            return Poll::Pending;
        }
        if into.is_empty() {
            mem::swap(&mut state.arrived, into);
        } else {
            into.append(&mut state.arrived);
        }
        Poll::Ready(())
    }

    fn put(&self, channel: &Channel, mut answer: Option<Answer>, last: bool) {
        if let (Some(budget), Some(Ok(reply))) = (&self.budget, &mut answer)
            && let Err(error) = count_answer(budget, &mut reply.outputs)
        {
            answer = Some(Err(error));
        }
        let mut state = self.state.lock();
        // Nothing follows the last response, whatever order the threads of a careless model choose: the owner may have
        // given the tag to another request since.
        if channel.ended.swap(last, Ordering::Relaxed) {
            channel.ended.store(true, Ordering::Relaxed);
            return;
        }
        let response = Response { tag: channel.tag, answer, last };
        if let Some(reader) = &self.reader {
            drop(state);
            return reader.take(response);
        }
        state.arrived.push_back(response);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The state that the sender and the caller of one request share.
struct Channel {
    mailbox: Arc<Mailbox>,
    tag: u64,
    /// The last response was given. Changed under the mailbox's lock only.
    ended: AtomicBool,
    state: Mutex<ChannelState>,
}

#[derive(Default)]
struct ChannelState {
    cancelled: bool,
    /// It was cancelled, and its caller takes responses up to the last.
    read_on: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl Channel {
    fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.state.lock().observer.clone()
    }
}

/// The sender and the caller of one request, joined by a mailbox.
pub(super) fn channel(mailbox: &Arc<Mailbox>, tag: u64) -> (Sender, Caller) {
    let channel =
        Arc::new(Channel { mailbox: Arc::clone(mailbox), tag, ended: AtomicBool::new(false), state: Mutex::default() });
    (Sender(Some(Arc::clone(&channel))), Caller(channel))
}

/// The model's end. Dropping it before the end fails the request as lost.
// None once it has ended.
pub struct Sender(Option<Arc<Channel>>);

impl Sender {
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|channel| channel.state.lock().cancelled)
    }

    pub(super) fn observe(&self, observer: Arc<dyn Observer>) {
        let Some(channel) = &self.0 else { return };
        let mut state = channel.state.lock();
        if state.cancelled && !state.read_on {
            drop(state);
            return observer.cancelled();
        }
        let late = state.cancelled.then(|| Arc::clone(&observer));
        let before = state.observer.replace(observer);
        drop(state);
        drop(before);
        if let Some(observer) = late {
            observer.cancelled_by_reader();
        }
    }

    /// A way for one response that is not the last.
    pub(super) fn post(&self) -> Post {
        Post(self.0.clone())
    }

    pub(super) fn has_reader(&self) -> bool {
        self.0.as_ref().is_some_and(|channel| channel.mailbox.has_reader())
    }

    pub(super) fn finish(mut self, answer: Option<Answer>) {
        self.end(answer);
    }

    pub(super) fn dismiss(mut self) {
        let read_on = self.0.as_ref().is_some_and(|channel| channel.state.lock().read_on);
        if read_on {
            return self.end(Some(Err(cancelled())));
        }
        self.0 = None;
    }

    fn end(&mut self, answer: Option<Answer>) {
        let Some(channel) = self.0.take() else { return };
        let observer = channel.state.lock().observer.take();
        drop(observer);
        channel.mailbox.put(&channel, answer, true);
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end(Some(Err(if self.is_cancelled() { cancelled() } else { lost() })));
        }
    }
}

/// The error of a request that ends because it was cancelled. Its caller, if it still reads, gets it as the last one.
fn cancelled() -> InferError {
    InferError::new(Code::Cancelled, "the request was cancelled").at(Origin::Model)
}

/// The error of a request that ends without its last answer.
pub fn lost() -> InferError {
    InferError::internal("the model dropped the request without an answer").at(Origin::Model)
}

/// A way for one response.
pub struct Post(Option<Arc<Channel>>);

impl Post {
    pub(super) fn has_reader(&self) -> bool {
        self.0.as_ref().is_some_and(|channel| channel.mailbox.has_reader())
    }

    pub(super) fn send(self, answer: Answer) {
        if let Some(channel) = self.0 {
            channel.mailbox.put(&channel, Some(answer), false);
        }
    }
}

/// The caller's end of one request. Dropping it withdraws the request.
pub struct Caller(Arc<Channel>);

impl Caller {
    /// Reports that the caller has taken responses, so that the model may give more.
    pub fn consumed(&self, responses: u32, bytes: u64) {
        if let Some(observer) = self.0.observer() {
            observer.consumed(responses, bytes);
        }
    }

    /// Has the request end soon. Its responses still arrive, and a last one.
    pub fn cancel(&self) {
        let mut state = self.0.state.lock();
        (state.cancelled, state.read_on) = (true, true);
        let observer = state.observer.clone();
        drop(state);
        if let Some(observer) = observer {
            observer.cancelled_by_reader();
        }
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        (state.cancelled, state.read_on) = (true, false);
        let observer = state.observer.take();
        drop(state);
        if let Some(observer) = observer {
            observer.cancelled();
        }
    }
}

/// The responses to one request, in their order. Dropping it withdraws the request.
pub struct Responses {
    mailbox: Arc<Mailbox>,
    caller: Caller,
    arrived: VecDeque<Response>,
    ended: bool,
}

impl Responses {
    pub(super) fn new(mailbox: Arc<Mailbox>, caller: Caller) -> Responses {
        Responses { mailbox, caller, arrived: VecDeque::new(), ended: false }
    }

    /// The next response; none after the last. What is given counts as taken, so the model may give more.
    pub async fn next(&mut self) -> Option<Response> {
        future::poll_fn(|context| self.poll_next(context)).await
    }

    /// Polls for the next response; none after the last. What is given counts as taken, so the model may give more.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Response>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.arrived.is_empty() {
            ready!(self.mailbox.poll_take(context, &mut self.arrived));
        }
        let Some(response) = self.arrived.pop_front() else { return Poll::Ready(None) };
        self.ended = response.last;
        if let Some(answer) = &response.answer {
            self.caller.consumed(1, answer.as_ref().map_or(0, |reply| reply.bytes()));
        }
        Poll::Ready(Some(response))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use alipes_protocol::{Datatype, Tensor};
    use bytes::Bytes;

    use super::*;
    use crate::responder::{AnswerBatch, Reply, Responder};

    #[derive(Clone, Default)]
    struct Seen(Arc<SeenCounts>);

    #[derive(Default)]
    struct SeenCounts {
        cancelled: AtomicU64,
        responses: AtomicU64,
        bytes: AtomicU64,
    }

    impl Observer for Seen {
        fn cancelled(&self) {
            self.0.cancelled.fetch_add(1, Ordering::Relaxed);
        }

        fn consumed(&self, responses: u32, bytes: u64) {
            self.0.responses.fetch_add(responses.into(), Ordering::Relaxed);
            self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    impl Seen {
        fn counts(&self) -> (u64, u64, u64) {
            let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
            (count(&self.0.cancelled), count(&self.0.responses), count(&self.0.bytes))
        }
    }

    fn reply(bytes: usize) -> Answer {
        let shape = [1].into_iter().collect();
        let data = Bytes::from(vec![7; bytes]);
        let output = Tensor { name: "Y".into(), datatype: Datatype::Uint8, shape, data };
        Ok(Reply { outputs: vec![output], parameters: Vec::new() })
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    /// Takes what has arrived: tags, whether there was an answer, whether it was the last.
    fn take(mailbox: &Mailbox) -> Vec<(u64, bool, bool)> {
        let mut arrived = VecDeque::new();
        block_on(future::poll_fn(|context| mailbox.poll_take(context, &mut arrived)));
        arrived.into_iter().map(|response| (response.tag, response.answer.is_some(), response.last)).collect()
    }

    #[test]
    fn responses_arrive_in_order_and_count_until_read() {
        let (mut responder, mut responses) = Responder::stream();
        let seen = Seen::default();
        responder.observe(seen.clone());
        let mut outgoing = AnswerBatch::default();
        outgoing.respond(&mut responder, reply(3));
        outgoing.respond(&mut responder, Err(InferError::internal("no")));
        assert_eq!(seen.counts(), (0, 0, 0));
        block_on(async {
            let first = responses.next().await.unwrap();
            assert_eq!((first.answer, first.last), (Some(reply(3)), false));
            assert_eq!(seen.counts(), (0, 1, 3));
            assert!(responses.next().await.unwrap().answer.unwrap().is_err());
            assert_eq!(seen.counts(), (0, 2, 3));
            outgoing.finish(responder);
            assert_eq!(responses.next().await, Some(Response { tag: 0, answer: None, last: true }));
            assert_eq!(responses.next().await, None);
        });
        drop(responses);
        assert_eq!(seen.counts().0, 0);
    }

    #[test]
    fn tags_distinguish_requests_of_one_mailbox() {
        let mailbox = Mailbox::new();
        let (mut one, _caller) = Responder::into_mailbox(&mailbox, 1);
        let (two, _other) = Responder::into_mailbox(&mailbox, 2);
        let mut outgoing = AnswerBatch::default();
        outgoing.respond(&mut one, reply(1));
        outgoing.add(two, reply(1));
        outgoing.add(one, reply(1));
        assert_eq!(take(&mailbox), [(1, true, false), (2, true, true), (1, true, true)]);
    }

    #[test]
    fn responses_count_while_they_wait() {
        let budget = Budget::new(1);
        let mailbox = Mailbox::counted(Arc::clone(&budget));
        let (responder, _caller) = Responder::into_mailbox(&mailbox, 1);
        AnswerBatch::default().add(responder, reply(10_000));
        assert_eq!(budget.used(), 10_000);
        let mut arrived = VecDeque::new();
        block_on(future::poll_fn(|context| mailbox.poll_take(context, &mut arrived)));
        assert_eq!(budget.used(), 10_000);
        drop(arrived);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_caller_that_cancels_and_reads_on_gets_an_end() {
        let errors = |mailbox: &Mailbox| {
            let mut arrived = VecDeque::new();
            block_on(future::poll_fn(|context| mailbox.poll_take(context, &mut arrived)));
            let code = |answer: Option<Answer>| answer.and_then(Result::err).map(|error| error.code);
            arrived.into_iter().map(|response| (code(response.answer), response.last)).collect::<Vec<_>>()
        };
        let mailbox = Mailbox::new();
        let (dismissed, caller) = Responder::into_mailbox(&mailbox, 1);
        caller.cancel();
        assert!(dismissed.is_cancelled());
        dismissed.dismiss();
        let (dropped, caller) = Responder::into_mailbox(&mailbox, 2);
        caller.cancel();
        drop(dropped);
        let (mut answered, caller) = Responder::into_mailbox(&mailbox, 3);
        let seen = Seen::default();
        answered.observe(seen.clone());
        caller.cancel();
        caller.consumed(1, 2);
        assert_eq!(seen.counts(), (1, 1, 2));
        AnswerBatch::default().add(answered, reply(1));
        assert_eq!(errors(&mailbox), [(Some(Code::Cancelled), true), (Some(Code::Cancelled), true), (None, true)]);
    }

    #[test]
    fn nothing_follows_the_last_response() {
        let mailbox = Mailbox::new();
        let (responder, _caller) = channel(&mailbox, 1);
        let late = responder.post();
        responder.finish(None);
        late.send(reply(1));
        assert_eq!(take(&mailbox), [(1, false, true)]);
        assert!(mailbox.state.lock().arrived.is_empty());
    }

    #[test]
    fn an_observer_learns_at_once_that_the_caller_goes_or_has_gone() {
        let seen = Seen::default();
        let (mut responder, responses) = Responder::stream();
        responder.observe(seen.clone());
        assert!(!responder.is_cancelled());
        drop(responses);
        assert!(responder.is_cancelled());
        assert_eq!(seen.counts().0, 1);
        responder.observe(seen.clone());
        assert_eq!(seen.counts().0, 2);
    }

    #[test]
    fn a_lost_request_fails_and_a_dismissed_one_does_not() {
        let mailbox = Mailbox::new();
        let (dismissed, _caller) = Responder::into_mailbox(&mailbox, 1);
        let (lost, _other) = Responder::into_mailbox(&mailbox, 2);
        dismissed.dismiss();
        drop(lost);
        assert_eq!(take(&mailbox), [(2, true, true)]);
    }
}
