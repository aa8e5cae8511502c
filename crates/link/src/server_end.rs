//! The server's end of one worker's link.

use std::io;
use std::os::fd::BorrowedFd;

use crate::{Message, Placed, Violation};

/// Sizes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Most requests that are in the worker at once, claimed or not; at most 4096.
    pub lanes: u32,
    /// Reservation for what the worker answers: addresses, not memory.
    pub response_bytes: u64,
}

impl Default for Geometry {
    fn default() -> Self {
        Geometry { lanes: 1024, response_bytes: 8 << 30 }
    }
}

/// A request to be handed to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A lane that no request is in.
    pub lane: u32,
    /// Below 2^48, not 0, and new with each publication: a request that was revoked gets another when it is placed again.
    pub ticket: u64,
    /// Its batch size.
    pub rows: u32,
    /// Only requests with the same key are claimed together.
    pub key: u64,
    /// 0: claimed with whatever fits. Else: claimed together with all of the same group, exactly, whatever their rows
    /// and key; they are to be published together.
    pub group: u64,
    /// Offset and length of the frame, see [`Placed`].
    pub frame: (u64, u32),
}

/// The server's end. Methods that take it by `&mut` belong to one thread at a time.
#[derive(Debug)]
pub struct ServerEnd {}

impl ServerEnd {
    /// A new link, with an eventfd.
    ///
    /// # Errors
    ///
    /// The system has no descriptors or address space left, or the geometry is impossible.
    pub fn create(geometry: Geometry) -> io::Result<ServerEnd> {
        let _ = geometry;
        todo!()
    }

    /// The link's memory, for the worker.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        todo!()
    }

    /// The eventfd: readable when the worker rang after [`ServerEnd::arm`]. Not blocking.
    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        todo!()
    }

    /// Hands requests to the worker in order, all of them at once or none. `None`: the ring is full now, as it is when
    /// a busy worker has not yet passed by many that were revoked; try again after the next message.
    pub fn publish(&mut self, entries: &[Entry]) -> Option<()> {
        let _ = entries;
        todo!()
    }

    /// Wakes the worker if it sleeps; to be called after [`ServerEnd::publish`], outside of locks if possible.
    pub fn wake(&self) {
        todo!()
    }

    /// Takes a request back. True: the worker had not claimed it and never will, and the lane is free.
    pub fn revoke(&self, lane: u32, ticket: u64) -> bool {
        let _ = (lane, ticket);
        todo!()
    }

    /// Whether the worker has claimed the request and not yet ended it.
    pub fn is_claimed(&self, lane: u32, ticket: u64) -> bool {
        let _ = (lane, ticket);
        todo!()
    }

    /// Tells the worker that nobody waits for the request any more, and wakes senders that wait for credit.
    pub fn cancel(&self, lane: u32, ticket: u64) {
        let _ = (lane, ticket);
        todo!()
    }

    /// Posts an answer to a call, and wakes whoever waits for one. False: the ring is full now, try again after the
    /// next message.
    pub fn post(&mut self, mail: &Placed) -> bool {
        let _ = mail;
        todo!()
    }

    /// Asks the worker to finalize and leave: it claims nothing more.
    pub fn stop(&self) {
        todo!()
    }

    /// The next message, if there is one. Tensors of more than 64 KiB are lent from the link, smaller ones are copied.
    ///
    /// # Errors
    ///
    /// The worker wrote what it must not: it is to be killed, and nothing further is to be received.
    pub fn receive(&mut self) -> Result<Option<Message>, Violation> {
        todo!()
    }

    /// Asks the worker to ring the doorbell with its next message, and clears what it rang before. False: a message
    /// came meanwhile, receive again.
    pub fn arm(&self) -> bool {
        todo!()
    }

    /// For those who are told of callers that left, and of responses that were taken.
    pub fn handle(&self) -> LinkHandle {
        todo!()
    }
}

/// What a network thread may do without the instance's lock. Calls about requests that have ended do nothing.
#[derive(Clone, Debug)]
pub struct LinkHandle {}

impl LinkHandle {
    /// A caller took this many responses and bytes, so that the model may send more.
    pub fn consumed(&self, lane: u32, ticket: u64, responses: u32, bytes: u64) {
        let _ = (lane, ticket, responses, bytes);
        todo!()
    }

    /// As [`ServerEnd::cancel`].
    pub fn cancel(&self, lane: u32, ticket: u64) {
        let _ = (lane, ticket);
        todo!()
    }
}
