//! HTTP/2 for the calls of several callers on one thread: what they send while others' answers are read leaves in one
//! write, and answers that came together are handed over together.

mod call;
#[cfg(test)]
mod fuzz;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use self::call::SharedCall;
use super::frames::{self, FrameHead};
use super::pending_call::PendingCall;
use super::{BUFFER_BYTES, UnaryConnection, broken, explained, last_call, nonsense, word};
use crate::error::ClientError;
use crate::message::Received;
use crate::socket::{Arrival, Socket};
use crate::target::Target;

/// The number of the setting that says how many calls may be under way.
const MOST_CALLS: u16 = 3;

/// Why a call is withdrawn: its caller has no use for it.
const CANCEL: u32 = 8;

/// Most bytes of all that the socket has not taken: heads of calls and their ends, and what a server is owed that asks
/// for answers and reads none. Callers by the ten thousand stay below it.
const OWED_BYTES: usize = 8 << 20;

/// A connection for callers on one thread. Each clone is a way to it; it ends with the last one.
pub struct SharedConnection<S = Socket> {
    state: Rc<RefCell<State<S>>>,
}

struct State<S> {
    connection: UnaryConnection<S>,
    /// By their numbers, which ascend.
    calls: VecDeque<SharedCall>,
    most_calls: usize,
    /// Callers that wait for another call to end, by the order in which they came.
    waiting: VecDeque<(u64, Waker)>,
    /// The place of the next caller that waits.
    next_place: u64,
    driver: Option<Waker>,
    failure: Option<ClientError>,
    is_abandoned: bool,
}

impl<S: AsyncRead + AsyncWrite + Arrival + Unpin> SharedConnection<S> {
    /// A connection over a socket that was just opened, and what has to run beside its callers.
    pub fn new(socket: S) -> (SharedConnection<S>, impl Future<Output = ()>) {
        let state = Rc::new(RefCell::new(State {
            connection: UnaryConnection::new(socket),
            calls: VecDeque::new(),
            most_calls: usize::MAX,
            waiting: VecDeque::new(),
            next_place: 0,
            driver: None,
            failure: None,
            is_abandoned: false,
        }));
        let driven = state.clone();
        let drive = poll_fn(move |cx| driven.borrow_mut().drive(cx));
        (SharedConnection { state }, drive)
    }

    /// Whether no further call can be made.
    pub fn is_spent(&self) -> bool {
        let state = self.state.borrow();
        state.failure.is_some() || state.connection.is_spent()
    }

    /// How many calls are under way.
    pub fn under_way(&self) -> usize {
        self.state.borrow().calls.len()
    }

    /// Asks and waits; a call that is dropped meanwhile is withdrawn.
    ///
    /// # Errors
    /// What the server says, and a connection that breaks.
    pub async fn ask(&self, target: &Target, method: &str, message: Bytes) -> Result<Received, ClientError> {
        let mut room = Room { state: &self.state, place: None };
        poll_fn(|cx| room.poll(cx)).await;
        let number = self.state.borrow_mut().begin(target, method, message)?;
        drop(room);
        let mut answer = Answer { state: &self.state, number: Some(number) };
        let call = poll_fn(|cx| self.state.borrow_mut().poll_end(number, cx)).await;
        answer.number = None;
        if let Some(failure) = call.failure {
            return Err(explained(target, failure));
        }
        let last = call.last.unwrap_or_else(alipes_clock::now);
        let first = call.first.unwrap_or(last);
        let sent = call.sent.unwrap_or(first);
        // The system's note of an answer may be as old as the calendar is wrong.
        Ok(Received { body: call.pending.outcome()?, sent, first: first.max(sent), last: last.max(sent) })
    }
}

impl<S> Clone for SharedConnection<S> {
    fn clone(&self) -> SharedConnection<S> {
        SharedConnection { state: self.state.clone() }
    }
}

impl<S> Drop for SharedConnection<S> {
    fn drop(&mut self) {
        // This way, and what drives the connection.
        if Rc::strong_count(&self.state) == 2
            && let Ok(mut state) = self.state.try_borrow_mut()
        {
            state.is_abandoned = true;
            state.wake_driver();
        }
    }
}

/// The room for a call that a caller waits for. One that leaves passes on what it was woken for.
struct Room<'a, S> {
    state: &'a RefCell<State<S>>,
    place: Option<u64>,
}

impl<S> Room<'_, S> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.state.borrow_mut().poll_room(&mut self.place, cx)
    }
}

impl<S> Drop for Room<'_, S> {
    fn drop(&mut self) {
        let mut state = self.state.borrow_mut();
        if let Some(place) = self.place.take() {
            state.leave(place);
        }
        state.wake_waiting();
    }
}

/// The answer that a caller waits for.
struct Answer<'a, S> {
    state: &'a RefCell<State<S>>,
    number: Option<u32>,
}

impl<S> Drop for Answer<'_, S> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.state.borrow_mut().withdraw(number);
        }
    }
}

impl<S> State<S> {
    fn poll_room(&mut self, place: &mut Option<u64>, cx: &Context<'_>) -> Poll<()> {
        if self.calls.len() < self.most_calls || self.failure.is_some() {
            place.take().into_iter().for_each(|place| self.leave(place));
            return Poll::Ready(());
        }
        match *place {
            Some(known) => {
                let index = self.waiting.binary_search_by_key(&known, |(place, _)| *place);
                self.waiting[index.expect("it stays until its caller leaves")].1.clone_from(cx.waker());
            }
            None => {
                *place = Some(self.next_place);
                self.waiting.push_back((self.next_place, cx.waker().clone()));
                self.next_place += 1;
            }
        }
        Poll::Pending
    }

    fn leave(&mut self, place: u64) {
        if let Ok(index) = self.waiting.binary_search_by_key(&place, |(place, _)| *place) {
            self.waiting.remove(index);
        }
    }

    /// Wakes as many callers as there is room for, the first ones first; each leaves when it looks.
    fn wake_waiting(&self) {
        let room = if self.failure.is_some() { usize::MAX } else { self.most_calls.saturating_sub(self.calls.len()) };
        self.waiting.iter().take(room).for_each(|(_, waker)| waker.wake_by_ref());
    }

    fn poll_end(&mut self, number: u32, cx: &Context<'_>) -> Poll<SharedCall> {
        let index = self.index(number).expect("a call stays until its caller has its answer");
        let call = &mut self.calls[index];
        if !call.is_over() {
            if !call.caller.as_ref().is_some_and(|caller| caller.will_wake(cx.waker())) {
                call.caller = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        let call = self.remove(index);
        if !call.unsent.is_empty() && call.failure.is_none() {
            // The rest will not be sent: the server must not wait for it.
            self.reset(number);
        }
        Poll::Ready(call)
    }

    fn withdraw(&mut self, number: u32) {
        if let Some(index) = self.index(number) {
            self.remove(index);
            self.reset(number);
        }
    }

    fn remove(&mut self, index: usize) -> SharedCall {
        let call = self.calls.remove(index).expect("its index was just found");
        self.wake_waiting();
        call
    }

    fn reset(&mut self, number: u32) {
        let outgoing = &mut self.connection.outgoing;
        FrameHead { length: 4, kind: frames::RST_STREAM, flags: 0, call: number }.write(outgoing);
        outgoing.put_u32(CANCEL);
        self.wake_driver();
    }

    fn index(&self, number: u32) -> Option<usize> {
        self.calls.binary_search_by_key(&number, |call| call.pending.number).ok()
    }

    fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Arrival + Unpin> State<S> {
    fn begin(&mut self, target: &Target, method: &str, message: Bytes) -> Result<u32, ClientError> {
        if let Some(failure) = &self.failure {
            return Err(explained(target, failure.clone()));
        }
        let connection = &mut self.connection;
        if connection.is_spent() {
            return Err(explained(target, ClientError::broken("the server closes it")));
        }
        let mut block = bytes::BytesMut::new();
        connection.heads.write(target, method, None, &mut block)?;
        let pending = PendingCall::new(connection.number, connection.first_window, false);
        connection.number += 2;
        connection.open(&pending, &block);
        let number = pending.number;
        let mut call = SharedCall::new(pending, message);
        call.send(connection);
        self.calls.push_back(call);
        self.wake_driver();
        Ok(number)
    }

    /// Sends and receives as much as there is.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.driver.as_ref().is_some_and(|driver| driver.will_wake(cx.waker())) {
            self.driver = Some(cx.waker().clone());
        }
        if self.is_abandoned {
            return Poll::Ready(());
        }
        loop {
            let moved = match self.write(cx) {
                Ok(()) => self.read(cx),
                Err(error) => Err(error),
            };
            match moved {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => {
                    self.fail(&error);
                    return Poll::Ready(());
                }
            }
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), ClientError> {
        let connection = &mut self.connection;
        while !connection.outgoing.is_empty() {
            match Pin::new(&mut connection.socket).poll_write(cx, &connection.outgoing) {
                Poll::Ready(Ok(0)) => return Err(broken(std::io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => connection.outgoing.advance(written),
                Poll::Ready(Err(error)) => return Err(broken(error)),
                Poll::Pending if connection.outgoing.len() > OWED_BYTES => return Err(unread()),
                Poll::Pending => return Ok(()),
            }
            if connection.outgoing.is_empty() {
                self.calls.iter_mut().for_each(|call| call.send(connection));
            }
        }
        // What is encrypted may not all have left.
        match Pin::new(&mut connection.socket).poll_flush(cx) {
            Poll::Ready(Err(error)) => Err(broken(error)),
            _ => Ok(()),
        }
    }

    /// # Returns
    /// Whether anything came.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, ClientError> {
        let connection = &mut self.connection;
        let missing = connection.missing().max(BUFFER_BYTES);
        connection.incoming.reserve(missing);
        match pin!(connection.socket.read_buf(&mut connection.incoming)).poll(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0)) => return Err(ClientError::broken("the server closed it")),
            Poll::Ready(outcome) => {
                outcome.map_err(broken)?;
            }
        }
        let now = self.connection.socket.arrived().unwrap_or_else(alipes_clock::now);
        while let Some((head, content)) = self.connection.next_frame()? {
            self.handle(head, content, now)?;
        }
        Ok(true)
    }

    fn handle(&mut self, head: FrameHead, content: Bytes, now: Instant) -> Result<(), ClientError> {
        // What comes behind the end of a call does not count, whether its caller has seen the end or not.
        let index = if head.call == 0 { None } else { self.index(head.call) };
        let index = index.filter(|index| !self.calls[*index].is_over());
        match (head.kind, index) {
            (frames::RST_STREAM, _) => self.ended_by_server(index, &content),
            (frames::GOAWAY, _) => self.go_away(&content),
            (frames::SETTINGS, _) if head.flags & frames::ACK == 0 => self.settings(head, content),
            (frames::WINDOW_UPDATE, _) => {
                let call = index.map(|index| &mut self.calls[index].pending);
                self.connection.handle(head, content, call)?;
                self.calls.iter_mut().for_each(|call| call.send(&mut self.connection));
                Ok(())
            }
            (_, Some(index)) => {
                let call = &mut self.calls[index];
                call.first.get_or_insert(now);
                self.connection.handle(head, content, Some(&mut call.pending))?;
                // Headers that go on in the next frame belong to the frame that they began in.
                if call.pending.ended {
                    call.last = Some(now);
                    call.wake();
                }
                Ok(())
            }
            (_, None) => self.connection.handle(head, content, None),
        }
    }

    fn ended_by_server(&mut self, index: Option<usize>, content: &[u8]) -> Result<(), ClientError> {
        let reason = word(content).ok_or_else(|| nonsense("an end of a call"))?;
        if let Some(index) = index {
            let text = format!("the server ended the call ({})", h2::Reason::from(reason));
            self.calls[index].fail(ClientError::broken(text));
        }
        Ok(())
    }

    fn go_away(&mut self, content: &[u8]) -> Result<(), ClientError> {
        self.connection.go_away(content, None)?;
        let last = last_call(content).unwrap_or_default();
        let reason = content.get(4..).and_then(word).unwrap_or_default();
        for call in self.calls.iter_mut().filter(|call| call.pending.number > last && !call.is_over()) {
            call.fail(ClientError::broken(format!("the server closes it ({})", h2::Reason::from(reason))));
        }
        Ok(())
    }

    fn settings(&mut self, head: FrameHead, content: Bytes) -> Result<(), ClientError> {
        let before = self.connection.first_window;
        for pair in content.chunks_exact(6) {
            if pair[..2] == MOST_CALLS.to_be_bytes() {
                self.most_calls = word(&pair[2..]).map_or(usize::MAX, |most| most.max(1) as usize);
            }
        }
        self.connection.handle(head, content, None)?;
        let more = self.connection.first_window - before;
        for call in &mut self.calls {
            call.pending.window += more;
            call.send(&mut self.connection);
        }
        self.wake_waiting();
        Ok(())
    }

    fn fail(&mut self, error: &ClientError) {
        self.failure = Some(error.clone());
        self.calls.iter_mut().filter(|call| !call.is_over()).for_each(|call| call.fail(error.clone()));
        self.wake_waiting();
    }
}

/// The error of a server that sends and reads nothing.
fn unread() -> ClientError {
    ClientError::broken(format!(
        "the server has not read the last {OWED_BYTES} bytes, and sends what has to be answered"
    ))
}
