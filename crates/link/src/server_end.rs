//! The server's end of one worker's link.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytes::Bytes;
use rustix::event::{EventfdFlags, eventfd};

use crate::entry::Entry;
use crate::frame;
use crate::frame::MAX_FRAME_BYTES;
use crate::layout::Geometry;
use crate::layout::{ANSWER_ENTRIES, Header, Layout, Link, MAIL_ENTRIES, Room, Stop};
use crate::lender::Responses;
use crate::link_handle::LinkHandle;
use crate::message::{Message, Violation};
use crate::request_arena::Placed;
use crate::request_slots::RequestSlots;
use crate::rings::{Consumer, Producer, Ring, of_message_word};

/// The server's end. Methods that take it by `&mut` belong to one thread at a time.
#[derive(Debug)]
pub struct ServerEnd {
    slots: Arc<RequestSlots>,
    requests: Producer<1>,
    mail: Producer<2>,
    answers: Consumer<2>,
    responses: Arc<Responses>,
    doorbell: OwnedFd,
    /// What the worker did, once it has done something: nothing is received any more.
    violation: Option<Violation>,
}

impl ServerEnd {
    /// A new link, with an eventfd.
    ///
    /// # Errors
    ///
    /// The system has no descriptors or address space left, or the geometry is impossible.
    pub fn create(geometry: Geometry) -> io::Result<ServerEnd> {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let link = Link::create(geometry, GENERATION.fetch_add(1, Ordering::Relaxed))?;
        let (memory, layout) = (&link.memory, &link.layout);
        let entries = Layout::request_entries(geometry);
        let requests = Ring::new(memory, offset_of!(Header, requests) as u64, layout.requests, entries).producer();
        let mail = Ring::new(memory, offset_of!(Header, mail) as u64, layout.mail, MAIL_ENTRIES).producer();
        let answers = Ring::new(memory, offset_of!(Header, answers) as u64, layout.answers, ANSWER_ENTRIES).consumer();
        let responses = Arc::new(Responses::new(&link));
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let slots = Arc::new(RequestSlots::new(link));
        Ok(ServerEnd { slots, requests, mail, answers, responses, doorbell, violation: None })
    }

    /// The link's memory, for the worker.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.link().memory.fd()
    }

    /// The eventfd, written to when the worker rings after [`ServerEnd::arm`]. Not blocking. Nobody reads it, which
    /// would be a system call more for each ring: it is for those who watch for the event (`EPOLLET`) rather than the
    /// level.
    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// A number that no other link of this process has.
    pub fn generation(&self) -> u64 {
        self.link().generation()
    }

    fn link(&self) -> &Link {
        &self.slots.link
    }

    /// Hands requests to the worker in order, all of them at once or none. `None`: the ring is full now, as it is when
    /// a busy worker has not yet passed by many that were revoked; the doorbell rings when it has.
    ///
    /// # Panics
    ///
    /// If a slot does not exist or holds a request.
    #[must_use]
    pub fn publish(&mut self, entries: &[Entry]) -> Option<()> {
        if !self.has_room(entries.len() as u64) {
            return None;
        }
        self.slots.occupy(entries);
        let words = entries.iter().map(|entry| [entry.ticket << 16 | u64::from(entry.slot)]);
        let pushed = self.requests.push_all(words);
        debug_assert_eq!(pushed, Ok(true), "there was room a moment ago");
        Some(())
    }

    /// Whether so many requests fit the ring; if not, the worker is asked to tell when they may.
    fn has_room(&mut self, wanted: u64) -> bool {
        let mut look = || match self.requests.room(wanted) {
            Ok(room) => room >= wanted,
            Err(broken) => {
                self.violation = Some(broken.into());
                false
            }
        };
        if look() {
            return true;
        }
        self.slots.link.header().room.0.store(Room::Wanted as u32, Ordering::Relaxed);
        // With the fence of the worker: either it sees the wish, or we see that it has moved on.
        fence(Ordering::SeqCst);
        look()
    }

    /// Wakes the worker if it sleeps; to be called after [`ServerEnd::publish`], outside of locks: it may run in this
    /// thread's place from then on, and its messages would find the lock held.
    pub fn wake(&self) {
        self.slots.wake();
    }

    /// Takes a request back. True: the worker had not claimed it and never will, and the slot is free.
    #[must_use]
    pub fn revoke(&self, slot: u32, ticket: u64) -> bool {
        self.slots.revoke(slot, ticket)
    }

    /// Whether the worker has claimed the request and not yet ended it.
    pub fn is_claimed(&self, slot: u32, ticket: u64) -> bool {
        self.slots.is_claimed(slot, ticket)
    }

    /// Tells the worker that the caller wants the request to end, and takes its responses up to the last.
    pub fn cancel(&self, slot: u32, ticket: u64) {
        self.slots.cancel(slot, ticket);
    }

    /// Tells the worker that nobody waits for the request any more, and wakes senders that wait for credit.
    pub fn caller_left(&self, slot: u32, ticket: u64) {
        self.slots.caller_left(slot, ticket);
    }

    /// Posts an answer to a call. False: the ring is full now, try again after the next message.
    #[must_use]
    pub fn post(&mut self, mail: &Placed) -> bool {
        self.mail.push([mail.offset, mail.len.into()]).unwrap_or_else(|broken| {
            self.violation = Some(broken.into());
            false
        })
    }

    /// Whether the worker has taken everything off its ring, what was revoked included.
    pub fn is_caught_up(&mut self) -> bool {
        match self.requests.is_consumed() {
            Ok(consumed) => consumed,
            Err(broken) => {
                self.violation = Some(broken.into());
                false
            }
        }
    }

    /// Wakes the worker's thread that waits for the answer to a call; to be called after [`ServerEnd::post`], outside
    /// of locks.
    pub fn wake_caller(&self) {
        self.slots.wake_caller();
    }

    /// Asks the worker to finalize and leave: it claims nothing more.
    pub fn stop(&self) {
        let header = self.link().header();
        header.stop.end(Stop::Asked);
        header.request_bell.ring();
        header.check_bell.ring();
    }

    /// Asks whether the model is ready; [`Message::Checked`] answers with this number. Numbers grow from 1, and a later
    /// question takes the place of one that the worker has not seen yet.
    pub fn ask(&self, number: u64) {
        let header = self.link().header();
        header.check.0.store(number, Ordering::Release);
        header.check_bell.ring();
    }

    /// Says whether verbose lines of the model are wanted.
    pub fn set_verbose(&self, verbose: bool) {
        self.link().header().verbose.0.store(verbose.into(), Ordering::Relaxed);
    }

    /// The next message, if there is one. Tensors of more than 64 KiB are lent from the link, smaller ones are copied.
    ///
    /// # Errors
    ///
    /// The worker wrote what it must not: it is to be killed, and nothing further is to be received.
    pub fn receive(&mut self) -> Result<Option<Message>, Violation> {
        if let Some(violation) = &self.violation {
            return Err(violation.clone());
        }
        let received = self.next_message();
        if let Err(violation) = &received {
            self.violation = Some(violation.clone());
        }
        received
    }

    /// Bytes that are copied and looked at to receive the next message, as the worker claims; 0 where there is none.
    pub fn next_bytes(&mut self) -> u64 {
        let next = self.answers.peek().ok().flatten();
        next.map_or(0, |[_, word]| {
            let (frame, private) = of_message_word(word);
            frame + private
        })
    }

    fn next_message(&mut self) -> Result<Option<Message>, Violation> {
        if self.responses.is_overrun() {
            return Err(Violation::new("the worker had more slots lent than there are"));
        }
        let Some([offset, word]) = self.answers.peek()? else {
            return Ok(None);
        };
        let (len, _) = of_message_word(word);
        let frame = self.copy(offset, len)?;
        self.answers.advance();
        // Rings the bell of those who wait for room as well, here too for the entry that has become free.
        self.responses.give_back(offset);
        let message = frame::message::read(&frame, &self.responses)?;
        self.settle(&message)?;
        Ok(Some(message))
    }

    /// A private copy of a frame.
    fn copy(&self, offset: u64, len: u64) -> Result<Bytes, Violation> {
        if len > MAX_FRAME_BYTES {
            return Err(Violation::new(format!("a message of {len} bytes, expected at most {MAX_FRAME_BYTES}")));
        }
        self.responses.copy(offset, len).ok_or_else(|| {
            let limit = self.link().layout.geometry.response_bytes;
            Violation::new(format!("a message of {len} bytes at {offset}, expected within {limit} bytes"))
        })
    }

    /// Answers are for requests in the worker's hands, and end them once.
    fn settle(&self, message: &Message) -> Result<(), Violation> {
        match message {
            Message::Answers { answers, .. } => self.slots.settle(answers),
            Message::Answer(answer) => self.slots.settle(std::slice::from_ref(answer)),
            _ => Ok(()),
        }
    }

    /// Asks the worker to ring the doorbell with its next message. False: a message came meanwhile, or room after a
    /// refused [`ServerEnd::publish`]: receive, and publish, again. After a violation there is nothing to receive any
    /// more, whatever lies in the ring.
    pub fn arm(&self) -> bool {
        if self.violation.is_some() {
            return true;
        }
        let header = self.link().header();
        let armed = &header.armed.0;
        if armed.load(Ordering::Relaxed) == 0 {
            // It rang, or is about to; in the second case the doorbell is heard once in vain.
            armed.store(1, Ordering::Relaxed);
        }
        // With the fence of the worker: either it sees that we are to be rung for, or we see its message.
        fence(Ordering::SeqCst);
        let quiet = self.answers.is_empty() && !header.room.turn(Room::Made, Room::Quiet);
        if !quiet {
            armed.store(0, Ordering::Relaxed);
        }
        quiet
    }

    #[cfg(test)]
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.link().memory.resident_bytes()
    }

    /// A handle for observers of callers, which report cancellation and consumed responses.
    pub fn handle(&self) -> LinkHandle {
        LinkHandle::new(Arc::clone(&self.slots))
    }
}
