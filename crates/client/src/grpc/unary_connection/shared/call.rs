//! One of the calls that are under way on a shared connection.

use std::task::Waker;
use std::time::Instant;

use bytes::Bytes;

use super::super::UnaryConnection;
use super::super::frames::{self, FrameHead};
use super::super::pending_call::PendingCall;
use crate::error::ClientError;

/// Most bytes that are copied to be sent before the socket has taken them.
pub const UNSENT_BYTES: usize = 1 << 20;

/// A call, and who waits for its end.
pub struct SharedCall {
    pub pending: PendingCall,
    pub unsent: Bytes,
    pub sent: Option<Instant>,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    pub failure: Option<ClientError>,
    pub caller: Option<Waker>,
}

impl SharedCall {
    /// A call of which nothing was sent but its head.
    pub fn new(pending: PendingCall, message: Bytes) -> SharedCall {
        SharedCall { pending, unsent: message, sent: None, first: None, last: None, failure: None, caller: None }
    }

    /// Puts as much of its message into what is sent as the server has left room for.
    pub fn send<S>(&mut self, connection: &mut UnaryConnection<S>) {
        while !self.unsent.is_empty() && !self.is_over() {
            let room = connection.window.min(self.pending.window).min(connection.frame as i64);
            let free = UNSENT_BYTES.saturating_sub(connection.outgoing.len());
            let length = self.unsent.len().min(usize::try_from(room).unwrap_or(0)).min(free);
            if length == 0 {
                return;
            }
            let part = self.unsent.split_to(length);
            (connection.window, self.pending.window) =
                (connection.window - length as i64, self.pending.window - length as i64);
            let flags = if self.unsent.is_empty() { frames::END_STREAM } else { 0 };
            FrameHead { length, kind: frames::DATA, flags, call: self.pending.number }.write(&mut connection.outgoing);
            connection.outgoing.extend_from_slice(&part);
            if self.unsent.is_empty() {
                self.sent = Some(alipes_clock::now());
            }
        }
    }

    /// Whether nothing of it is to come or to be sent any more.
    pub fn is_over(&self) -> bool {
        self.pending.ended || self.failure.is_some()
    }

    /// Ends it with an error.
    pub fn fail(&mut self, error: ClientError) {
        self.failure = Some(error);
        self.wake();
    }

    /// Wakes its caller, who will look.
    pub fn wake(&mut self) {
        if let Some(caller) = self.caller.take() {
            caller.wake();
        }
    }
}
