//! The server's end of one worker's link.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::frame::MAX_FRAME_BYTES;
use crate::lane::{Lane, State};
use crate::layout::{ANSWER_ENTRIES, Header, Layout, Link, MAIL_ENTRIES};
use crate::lender::Responses;
use crate::rings::{Broken, Consumer, Producer, Ring};
use crate::{Answer, Message, Placed, Violation, frame};

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
pub struct ServerEnd {
    lanes: LinkHandle,
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
        let lanes = LinkHandle { lanes: Arc::new(Lanes::new(link)) };
        Ok(ServerEnd { lanes, requests, mail, answers, responses, doorbell, violation: None })
    }

    /// The link's memory, for the worker.
    pub fn link_fd(&self) -> BorrowedFd<'_> {
        self.link().memory.fd()
    }

    /// The eventfd: readable when the worker rang after [`ServerEnd::arm`]. Not blocking.
    pub fn doorbell_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// A number that no other link of this process has.
    pub fn generation(&self) -> u64 {
        self.link().generation()
    }

    fn link(&self) -> &Link {
        &self.lanes.lanes.link
    }

    /// Hands requests to the worker in order, all of them at once or none. `None`: the ring is full now, as it is when
    /// a busy worker has not yet passed by many that were revoked; try again after the next message.
    ///
    /// # Panics
    ///
    /// If a lane does not exist or holds a request.
    pub fn publish(&mut self, entries: &[Entry]) -> Option<()> {
        let room = self.requests.room(entries.len() as u64).map_err(|broken| self.violation = Some(broken.into()));
        if room.ok()? < entries.len() as u64 {
            return None;
        }
        self.lanes.lanes.occupy(entries);
        let words = entries.iter().map(|entry| [entry.ticket << 16 | u64::from(entry.lane)]);
        let pushed = self.requests.push_all(words);
        debug_assert_eq!(pushed, Ok(true), "there was room a moment ago");
        Some(())
    }

    /// Wakes the worker if it sleeps; to be called after [`ServerEnd::publish`], outside of locks if possible.
    pub fn wake(&self) {
        self.lanes.wake();
    }

    /// Takes a request back. True: the worker had not claimed it and never will, and the lane is free.
    pub fn revoke(&self, lane: u32, ticket: u64) -> bool {
        self.lanes.lanes.revoke(lane, ticket)
    }

    /// Whether the worker has claimed the request and not yet ended it.
    pub fn is_claimed(&self, lane: u32, ticket: u64) -> bool {
        self.lanes.lanes.is_claimed(lane, ticket)
    }

    /// Tells the worker that nobody waits for the request any more, and wakes senders that wait for credit.
    pub fn cancel(&self, lane: u32, ticket: u64) {
        self.lanes.cancel(lane, ticket);
    }

    /// Posts an answer to a call, and wakes whoever waits for one. False: the ring is full now, try again after the
    /// next message.
    pub fn post(&mut self, mail: &Placed) -> bool {
        match self.mail.push([mail.offset, mail.len.into()]) {
            Ok(pushed) => {
                self.link().header().mail_bell.ring();
                pushed
            }
            Err(broken) => {
                self.violation = Some(broken.into());
                false
            }
        }
    }

    /// Asks the worker to finalize and leave: it claims nothing more.
    pub fn stop(&self) {
        let header = self.link().header();
        header.stop.0.store(1, Ordering::Release);
        header.request_bell.ring();
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

    fn next_message(&mut self) -> Result<Option<Message>, Violation> {
        if self.responses.is_overrun() {
            return Err(Violation::new("the worker had more slots lent than there are"));
        }
        let Some([offset, len]) = self.answers.peek()? else {
            return Ok(None);
        };
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
            Message::Answers { answers, .. } => self.lanes.lanes.settle(answers),
            Message::Answer(answer) => self.lanes.lanes.settle(std::slice::from_ref(answer)),
            _ => Ok(()),
        }
    }

    /// Asks the worker to ring the doorbell with its next message, and clears what it rang before. False: a message
    /// came meanwhile, receive again.
    pub fn arm(&self) -> bool {
        let armed = &self.link().header().armed.0;
        if armed.load(Ordering::Relaxed) == 0 {
            // It rang, or is about to; in the second case the doorbell is readable once in vain.
            let _ = rustix::io::read(&self.doorbell, &mut [0; 8]);
            armed.store(1, Ordering::Relaxed);
        }
        // With the fence of the worker: either it sees that we are to be rung for, or we see its message.
        fence(Ordering::SeqCst);
        let quiet = self.answers.is_empty();
        if !quiet {
            armed.store(0, Ordering::Relaxed);
        }
        quiet
    }

    /// For those who are told of callers that left, and of responses that were taken.
    pub fn handle(&self) -> LinkHandle {
        self.lanes.clone()
    }
}

impl From<Broken> for Violation {
    fn from(Broken { head, tail }: Broken) -> Violation {
        Violation::new(format!("a ring of the worker's link is at the positions {head} and {tail}, which cannot be"))
    }
}

/// The lane table, with the server's own record of what is in it: the worker can scribble over the table.
#[derive(Debug)]
struct Lanes {
    link: Link,
    /// The ticket in each lane; 0 where there is none.
    tickets: Mutex<Box<[u64]>>,
}

impl Lanes {
    fn new(link: Link) -> Lanes {
        let tickets = Mutex::new(vec![0; link.layout.geometry.lanes as usize].into());
        Lanes { link, tickets }
    }

    fn occupy(&self, entries: &[Entry]) {
        let mut tickets = self.tickets.lock();
        for entry in entries {
            let ticket = &mut tickets[entry.lane as usize];
            assert!(*ticket == 0, "lane {} holds the request {ticket}", entry.lane);
            assert!(entry.ticket != 0 && entry.ticket < 1 << 48, "ticket {} does not fit an entry", entry.ticket);
            *ticket = entry.ticket;
            self.link.lane(entry.lane).publish(entry);
        }
    }

    fn revoke(&self, lane: u32, ticket: u64) -> bool {
        let mut tickets = self.tickets.lock();
        let Some(held) = tickets.get_mut(lane as usize).filter(|held| **held == ticket && ticket != 0) else {
            return false;
        };
        let revoked = self.link.lane(lane).revoke(ticket);
        if revoked {
            *held = 0;
        }
        revoked
    }

    /// Does something to a lane while a request is in it.
    fn with<T>(&self, lane: u32, ticket: u64, act: impl FnOnce(&Lane) -> T) -> Option<T> {
        let tickets = self.tickets.lock();
        let held = tickets.get(lane as usize).is_some_and(|held| *held == ticket && ticket != 0);
        held.then(|| act(self.link.lane(lane)))
    }

    /// Changes something that a sender may wait for, and wakes it, without the lock.
    fn change(&self, lane: u32, ticket: u64, act: impl FnOnce(&Lane)) {
        if self.with(lane, ticket, act).is_some() {
            self.link.lane(lane).credit().ring();
        }
    }

    fn is_claimed(&self, lane: u32, ticket: u64) -> bool {
        self.with(lane, ticket, |lane| !lane.is(ticket, State::Waiting)).unwrap_or(false)
    }

    fn settle(&self, answers: &[Answer]) -> Result<(), Violation> {
        let mut tickets = self.tickets.lock();
        for &Answer { lane, ticket, last, .. } in answers {
            let unknown =
                || Violation::new(format!("an answer to request {ticket} in lane {lane}, which is not in the worker"));
            let held = tickets.get_mut(lane as usize).filter(|held| **held == ticket && ticket != 0);
            let held = held.ok_or_else(unknown)?;
            if !self.link.lane(lane).is(ticket, State::Claimed) {
                return Err(Violation::new(format!(
                    "an answer to request {ticket} in lane {lane}, which was not claimed"
                )));
            }
            if last {
                *held = 0;
            }
        }
        Ok(())
    }
}

/// What a network thread may do without the instance's lock. Calls about requests that have ended do nothing.
#[derive(Clone, Debug)]
pub struct LinkHandle {
    lanes: Arc<Lanes>,
}

impl LinkHandle {
    /// A caller took this many responses and bytes, so that the model may send more.
    pub fn consumed(&self, lane: u32, ticket: u64, responses: u32, bytes: u64) {
        self.lanes.change(lane, ticket, |lane| lane.consumed(responses, bytes));
    }

    /// As [`ServerEnd::cancel`].
    pub fn cancel(&self, lane: u32, ticket: u64) {
        self.lanes.change(lane, ticket, |lane| lane.cancel(ticket));
    }

    /// As [`ServerEnd::wake`].
    pub fn wake(&self) {
        self.lanes.link.header().request_bell.ring();
    }
}
