//! The worker's end of its link.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::{OutMessage, ReceivedMail, Request, SendError, SharedMemory};

/// What a claim brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// At least one request.
    Requests,
    /// The server asks the worker to leave.
    Stop,
}

/// Whether a further response may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// It may.
    Go,
    /// Nobody waits for it any more.
    Cancelled,
}

/// The worker's end. Several threads use it at once; none of them may hold the interpreter in a call that blocks.
#[derive(Debug)]
pub struct WorkerEnd {}

impl WorkerEnd {
    /// Most responses of one request that wait for its caller.
    pub const MAX_WAITING_RESPONSES: u64 = 64;
    /// Most bytes of them, unless a single response is larger.
    pub const MAX_WAITING_BYTES: u64 = 16 << 20;

    /// Maps both memory files and checks that they are what this version of alipes makes.
    ///
    /// # Errors
    ///
    /// They are not, or the system has no address space left.
    pub fn open(link: OwnedFd, requests: OwnedFd, doorbell: OwnedFd) -> io::Result<WorkerEnd> {
        let _ = (link, requests, doorbell);
        todo!()
    }

    /// The longest spin before a sleep; zero turns spinning off. Where there are at most two cores it is off from the start.
    pub fn set_spin(&self, longest: Duration) {
        let _ = longest;
        todo!()
    }

    /// Claims requests; blocks until there is one. Adds to `into` the first that waits and, where `max_rows` is not 0,
    /// those after it that may run with it while their rows fit.
    pub fn claim(&self, max_rows: u32, into: &mut Vec<Request>) -> Claimed {
        let _ = (max_rows, into);
        todo!()
    }

    /// Whether nobody waits for the request any more.
    pub fn is_cancelled(&self, lane: u32, ticket: u64) -> bool {
        let _ = (lane, ticket);
        todo!()
    }

    /// Sends a message: copies its tensors into the response arena once, and rings the doorbell if the server asked for
    /// it. Blocks while the link is full.
    ///
    /// # Errors
    ///
    /// It is larger than the link could ever carry; nothing was sent.
    pub fn send(&self, message: &OutMessage<'_>) -> Result<(), SendError> {
        let _ = message;
        todo!()
    }

    /// Blocks until a further response may be sent for a request of which so many responses and bytes were sent: until
    /// fewer than [`WorkerEnd::MAX_WAITING_RESPONSES`] and [`WorkerEnd::MAX_WAITING_BYTES`] of them wait for the caller.
    pub fn wait_credit(&self, lane: u32, ticket: u64, sent_responses: u64, sent_bytes: u64) -> Credit {
        let _ = (lane, ticket, sent_responses, sent_bytes);
        todo!()
    }

    /// The next answer to a call; waits at most this long, or for ever. Several threads may wait: each mail goes to one
    /// of them, whichever call it is for.
    pub fn next_mail(&self, timeout: Option<Duration>) -> Option<ReceivedMail> {
        let _ = timeout;
        todo!()
    }

    /// The request arena, to make views of it and to see whether an address lies in it.
    pub fn memory(&self) -> &SharedMemory {
        todo!()
    }
}
