//! The calls that a client has open, and how far each has come: what tells an honest reset from a flood.

use std::collections::VecDeque;

use alipes_protocol::limits::GRPC_MAX_CONCURRENT_CALLS;

/// Calls that have ended and are kept between those that have not, at least.
const MIN_ENDED: usize = 64;

/// The open calls of one connection, by their streams, whose numbers only grow.
#[derive(Default)]
pub struct OpenCalls {
    calls: VecDeque<OpenCall>,
    open: usize,
}

#[derive(Clone, Copy, Debug)]
struct OpenCall {
    stream: u32,
    /// The turn of the connection in which its head was read.
    turn: u32,
    request_is_whole: bool,
    is_answered: bool,
    has_ended: bool,
}

/// What a client's reset ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetCall {
    /// A call that was answered in part, or whose whole request the server had its turn to execute.
    Served,
    /// A call that the server could not serve: its request was not whole, or its reset came with it.
    Unserved,
    /// No call that is open: the reset crossed with the end of the answer, or is made up.
    Unknown,
}

/// A call that the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedCall {
    /// Whether the client had sent its whole request.
    pub request_is_whole: bool,
    /// Whether the client was sent a response.
    pub is_answered: bool,
}

impl OpenCalls {
    /// How many calls are open.
    pub fn count(&self) -> usize {
        self.open
    }

    /// Begins a call; false where the client has more open than any may have.
    #[inline]
    pub fn begin(&mut self, stream: u32, turn: u32, request_is_whole: bool) -> bool {
        if self.open >= GRPC_MAX_CONCURRENT_CALLS as usize {
            return false;
        }
        self.calls.push_back(OpenCall { stream, turn, request_is_whole, is_answered: false, has_ended: false });
        self.open += 1;
        true
    }

    /// Whether a call is open.
    #[inline]
    pub fn contains(&mut self, stream: u32) -> bool {
        self.find(stream).is_some()
    }

    /// Notes that the client has sent its whole request.
    #[inline]
    pub fn complete_request(&mut self, stream: u32) {
        if let Some(call) = self.find(stream) {
            call.request_is_whole = true;
        }
    }

    /// Notes that a response begins.
    #[inline]
    pub fn answer(&mut self, stream: u32) {
        if let Some(call) = self.find(stream) {
            call.is_answered = true;
        }
    }

    /// Ends a call for the server; none where it is not open.
    #[inline]
    pub fn end(&mut self, stream: u32) -> Option<EndedCall> {
        let call = self.remove(stream)?;
        Some(EndedCall { request_is_whole: call.request_is_whole, is_answered: call.is_answered })
    }

    /// Ends a call for its client, whose reset is read in this turn.
    pub fn reset(&mut self, stream: u32, turn: u32) -> ResetCall {
        match self.remove(stream) {
            None => ResetCall::Unknown,
            Some(call) if call.is_answered || (call.request_is_whole && call.turn != turn) => ResetCall::Served,
            Some(_) => ResetCall::Unserved,
        }
    }

    #[inline]
    fn find(&mut self, stream: u32) -> Option<&mut OpenCall> {
        let index = self.calls.binary_search_by_key(&stream, |call| call.stream).ok()?;
        self.calls.get_mut(index).filter(|call| !call.has_ended)
    }

    #[inline]
    fn remove(&mut self, stream: u32) -> Option<OpenCall> {
        let call = self.find(stream)?;
        call.has_ended = true;
        let removed = *call;
        self.open -= 1;
        while self.calls.front().is_some_and(|call| call.has_ended) {
            self.calls.pop_front();
        }
        // Behind a call that stays open for hours, others come and go.
        if self.calls.len() > 2 * self.open + MIN_ENDED {
            self.calls.retain(|call| !call.has_ended);
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_differ_by_how_far_their_calls_have_come() {
        let mut calls = OpenCalls::default();
        for stream in [1, 3, 5, 7, 9] {
            assert!(calls.begin(stream, 1, stream > 5));
        }
        calls.complete_request(3);
        calls.answer(5);
        calls.end(9);
        let reset = [(1, 2), (3, 2), (5, 1), (7, 1), (9, 2), (1, 2), (11, 2)];
        let ends: Vec<ResetCall> = reset.into_iter().map(|(stream, turn)| calls.reset(stream, turn)).collect();
        use ResetCall::{Served, Unknown, Unserved};
        assert_eq!(ends, [Unserved, Served, Served, Unserved, Unknown, Unknown, Unknown]);
        assert_eq!(calls.count(), 0);
    }

    #[test]
    fn a_call_that_the_server_ends_says_how_far_it_came() {
        let mut calls = OpenCalls::default();
        calls.begin(1, 1, false);
        calls.begin(3, 1, true);
        calls.answer(3);
        assert_eq!(calls.end(1), Some(EndedCall { request_is_whole: false, is_answered: false }));
        assert_eq!(calls.end(3), Some(EndedCall { request_is_whole: true, is_answered: true }));
        assert_eq!(calls.end(3), None);
    }

    #[test]
    fn calls_that_come_and_go_behind_an_open_one_take_no_room() {
        let mut calls = OpenCalls::default();
        calls.begin(1, 0, false);
        for stream in (3..200_001).step_by(2) {
            assert!(calls.begin(stream, 0, true));
            assert!(calls.end(stream).is_some());
            assert!(calls.calls.len() <= 2 + MIN_ENDED + 1);
        }
        assert!(calls.contains(1) && !calls.contains(3));
    }

    #[test]
    fn no_more_calls_are_tracked_than_a_client_may_have_open() {
        let mut calls = OpenCalls::default();
        let begun = (1..).step_by(2).take_while(|&stream| calls.begin(stream, 0, true)).count();
        assert_eq!(begun, GRPC_MAX_CONCURRENT_CALLS as usize);
        calls.end(1);
        assert!(calls.begin(100_001, 0, true));
    }
}
