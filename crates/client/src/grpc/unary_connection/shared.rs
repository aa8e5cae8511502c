//! HTTP/2 for the calls of several callers on one thread: what they send while others' answers are read leaves in one
//! write, and answers that came together are handed over together.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncReadExt, AsyncWrite};

use super::frames::{self, FrameHead};
use super::pending_call::PendingCall;
use super::{BUFFER_BYTES, UnaryConnection, broken, explained, nonsense, word};
use crate::error::ClientError;
use crate::message::Received;
use crate::socket::Socket;
use crate::target::Target;

/// The number of the setting that says how many calls may be under way.
const MOST_CALLS: u16 = 3;

/// Why a call is withdrawn: its caller has no use for it.
const CANCEL: u32 = 8;

/// Most bytes that are copied to be sent before the socket has taken them.
const UNSENT_BYTES: usize = 1 << 20;

/// A connection for callers on one thread. Each clone is a way to it; it ends with the last one.
pub struct SharedConnection {
    state: Rc<RefCell<State>>,
}

struct State {
    connection: UnaryConnection<Socket>,
    /// By their numbers, which ascend.
    calls: VecDeque<SharedCall>,
    most_calls: usize,
    /// Callers that wait for another call to end.
    waiting: VecDeque<Waker>,
    driver: Option<Waker>,
    failure: Option<ClientError>,
    is_abandoned: bool,
}

struct SharedCall {
    pending: PendingCall,
    unsent: Bytes,
    sent: Option<Instant>,
    first: Option<Instant>,
    failure: Option<ClientError>,
    caller: Option<Waker>,
}

impl SharedConnection {
    /// A connection over a socket that was just opened, and what has to run beside its callers.
    pub fn new(socket: Socket) -> (SharedConnection, impl Future<Output = ()>) {
        let state = Rc::new(RefCell::new(State {
            connection: UnaryConnection::new(socket),
            calls: VecDeque::new(),
            most_calls: usize::MAX,
            waiting: VecDeque::new(),
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
        poll_fn(|cx| self.state.borrow_mut().poll_room(cx)).await;
        let number = self.state.borrow_mut().begin(target, method, message)?;
        let mut answer = Answer { state: &self.state, number: Some(number) };
        let call = poll_fn(|cx| self.state.borrow_mut().poll_end(number, cx)).await;
        answer.number = None;
        if let Some(failure) = call.failure {
            return Err(explained(target, failure));
        }
        let first = call.first.unwrap_or_else(alipes_clock::now);
        Ok(Received { body: call.pending.outcome()?, sent: call.sent.unwrap_or(first), first })
    }
}

impl Clone for SharedConnection {
    fn clone(&self) -> SharedConnection {
        SharedConnection { state: self.state.clone() }
    }
}

impl Drop for SharedConnection {
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

/// The answer that a caller waits for.
struct Answer<'a> {
    state: &'a RefCell<State>,
    number: Option<u32>,
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.state.borrow_mut().withdraw(number);
        }
    }
}

impl State {
    fn poll_room(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.calls.len() < self.most_calls || self.failure.is_some() {
            return Poll::Ready(());
        }
        self.waiting.push_back(cx.waker().clone());
        Poll::Pending
    }

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
        let mut call = SharedCall { pending, unsent: message, sent: None, first: None, failure: None, caller: None };
        call.send(connection);
        self.calls.push_back(call);
        self.wake_driver();
        Ok(number)
    }

    fn poll_end(&mut self, number: u32, cx: &Context<'_>) -> Poll<SharedCall> {
        let index = self.index(number).expect("a call stays until its caller has its answer");
        let call = &mut self.calls[index];
        if !call.pending.ended && call.failure.is_none() {
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
        if let Some(waiting) = self.waiting.pop_front() {
            waiting.wake();
        }
        self.calls.remove(index).expect("its index was just found")
    }

    fn reset(&mut self, number: u32) {
        let outgoing = &mut self.connection.outgoing;
        FrameHead { length: 4, kind: frames::RESET, flags: 0, call: number }.write(outgoing);
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
        let now = alipes_clock::now();
        while let Some((head, content)) = self.connection.next_frame()? {
            self.handle(head, content, now)?;
        }
        Ok(true)
    }

    fn handle(&mut self, head: FrameHead, content: Bytes, now: Instant) -> Result<(), ClientError> {
        let index = if head.call == 0 { None } else { self.index(head.call) };
        match (head.kind, index) {
            (frames::RESET, _) => self.ended_by_server(index, &content),
            (frames::GOODBYE, _) => self.goodbye(&content),
            (frames::SETTINGS, _) if head.flags & frames::ACK == 0 => self.settings(head, content),
            (frames::WINDOW, _) => {
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

    fn goodbye(&mut self, content: &[u8]) -> Result<(), ClientError> {
        self.connection.goodbye(content, None)?;
        let last = word(content).unwrap_or_default();
        let reason = content.get(4..).and_then(word).unwrap_or_default();
        for call in self.calls.iter_mut().filter(|call| call.pending.number > last) {
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
        Ok(())
    }

    fn fail(&mut self, error: &ClientError) {
        self.failure = Some(error.clone());
        self.calls.iter_mut().filter(|call| !call.pending.ended).for_each(|call| call.fail(error.clone()));
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl SharedCall {
    /// Puts as much of its message into what is sent as the server has left room for.
    fn send(&mut self, connection: &mut UnaryConnection<Socket>) {
        while !self.unsent.is_empty() && self.failure.is_none() && !self.pending.ended {
            let room = connection.window.min(self.pending.window).min(connection.frame as i64);
            let free = UNSENT_BYTES.saturating_sub(connection.outgoing.len());
            let length = self.unsent.len().min(usize::try_from(room).unwrap_or(0)).min(free);
            if length == 0 {
                return;
            }
            let part = self.unsent.split_to(length);
            (connection.window, self.pending.window) =
                (connection.window - length as i64, self.pending.window - length as i64);
            let flags = if self.unsent.is_empty() { frames::LAST } else { 0 };
            FrameHead { length, kind: frames::DATA, flags, call: self.pending.number }.write(&mut connection.outgoing);
            connection.outgoing.extend_from_slice(&part);
            if self.unsent.is_empty() {
                self.sent = Some(alipes_clock::now());
            }
        }
    }

    fn fail(&mut self, error: ClientError) {
        self.failure = Some(error);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(caller) = self.caller.take() {
            caller.wake();
        }
    }
}
