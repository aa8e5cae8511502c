//! The worker's end of its link.

use std::io;
use std::mem::offset_of;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::batch::Batch;
use crate::doorbell::Doorbell;
use crate::entry::Entry;
use crate::frame::request::View;
use crate::frame::{Malformed, Reader, mail, request};
use crate::futex::Spin;
use crate::layout::{Header, Layout, Link, MAIL_ENTRIES, Room, Stop};
use crate::mail::ReceivedMail;
use crate::memory::SharedMemory;
use crate::message::monotonic_ns;
use crate::outgoing::{OutAnswer, OutMessage, OutOutcome, SendError};
use crate::request::Request;
use crate::request_slot::State;
use crate::rings::{Consumer, Ring, SOUND};
use crate::sender::Sender;

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
    CallerLeft,
}

/// The worker's end. Several threads use it at once; none of them may hold the interpreter in a call that blocks.
#[derive(Debug)]
pub struct WorkerEnd {
    link: Link,
    memory: SharedMemory,
    doorbell: Doorbell,
    requests: Mutex<Consumer<1>>,
    request_spin: Spin,
    mail: Mutex<Consumer<2>>,
    mail_spin: Spin,
    sender: Sender,
    /// Requests were claimed, and no further ones asked for: their answers are yet to ring the doorbell.
    executing: AtomicBool,
    /// Messages since the last ring.
    unrung: AtomicU32,
}

/// Most messages that wait for somebody else to ring the doorbell.
const MOST_UNRUNG: u32 = 16;

/// A worker without requests for this long gives idle memory back.
const IDLE: Duration = Duration::from_secs(1);

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
        let link = Link::open(SharedMemory::open(link)?)?;
        let memory = SharedMemory::open(requests)?;
        let entries = Layout::request_entries(link.layout.geometry);
        let requests = Ring::new(&link.memory, offset_of!(Header, requests) as u64, link.layout.requests, entries);
        let mail = Ring::new(&link.memory, offset_of!(Header, mail) as u64, link.layout.mail, MAIL_ENTRIES);
        Ok(WorkerEnd {
            memory,
            doorbell: Doorbell::new(doorbell),
            requests: Mutex::new(requests.consumer()),
            request_spin: Spin::new(),
            mail: Mutex::new(mail.consumer()),
            mail_spin: Spin::new(),
            sender: Sender::new(link.clone()),
            link,
            executing: AtomicBool::new(false),
            unrung: AtomicU32::new(0),
        })
    }

    /// The longest spin before a sleep; zero turns spinning off. Where there are at most two cores it is off from the
    /// start.
    pub fn set_spin(&self, longest: Duration) {
        self.request_spin.set(longest);
        self.mail_spin.set(longest);
    }

    /// Claims requests; blocks until there is one. Adds to `into` the first that waits and, where `max_rows` is not 0,
    /// those after it that may run with it while their rows fit.
    pub fn claim(&self, max_rows: u32, into: &mut Vec<Request>) -> Claimed {
        let mut ring = self.requests.lock();
        let before = into.len();
        // With those who send quietly: either they see that nothing follows any more, or we see what they sent.
        self.executing.store(false, Ordering::SeqCst);
        self.ring_for_unrung();
        loop {
            if self.wait_for_requests(&ring) == Claimed::Stop {
                return Claimed::Stop;
            }
            let mut batch = Batch::new(max_rows);
            while let Some(entry) = self.claim_next(&mut ring, &mut batch) {
                into.extend(self.read_request(&entry));
            }
            self.announce_room();
            if into.len() > before {
                let now = monotonic_ns();
                into[before..].iter_mut().for_each(|request| request.claimed_ns = now);
                self.executing.store(true, Ordering::SeqCst);
                return Claimed::Requests;
            }
        }
    }

    fn wait_for_requests(&self, ring: &Consumer<1>) -> Claimed {
        let header = self.link.header();
        let ready = || {
            if header.stop.ends() {
                return Some(Claimed::Stop);
            }
            (!ring.is_empty()).then_some(Claimed::Requests)
        };
        if let Some(claimed) = ready() {
            return claimed;
        }
        let bell = &header.request_bell;
        let mut soon = self.request_spin.wait(bell, Some(alipes_clock::now() + IDLE), ready);
        // A caller who reads slowly keeps a large answer in use long after the model has become idle.
        while soon.is_none() && !self.sender.trim() {
            soon = bell.wait(Some(alipes_clock::now() + IDLE), ready);
        }
        soon.unwrap_or_else(|| bell.wait(None, ready).expect("without a deadline a wait ends with what it waits for"))
    }

    /// Takes the next request off the ring if it may run with the batch; passes by those that were revoked.
    fn claim_next(&self, ring: &mut Consumer<1>, batch: &mut Batch) -> Option<Entry> {
        while let Some([word]) = ring.peek().expect(SOUND) {
            let (slot, ticket) = ((word & 0xffff) as u32, word >> 16);
            let waiting = self.link.slot(slot).waiting(slot, ticket);
            if waiting.as_ref().is_some_and(|entry| !batch.takes(entry)) {
                return None;
            }
            let claimed = waiting.filter(|_| self.link.slot(slot).claim(ticket));
            ring.advance();
            if let Some(entry) = claimed {
                batch.add(&entry);
                return Some(entry);
            }
        }
        None
    }

    /// Reads a claimed request. One that another worker of the model version has scribbled over is answered at once.
    fn read_request(&self, entry: &Entry) -> Option<Request> {
        match self.read_frame(entry.frame.0, entry.frame.1.into(), request::read) {
            Ok(request) => Some(Request { slot: entry.slot, ticket: entry.ticket, rows: entry.rows, ..request }),
            Err(Malformed(expected)) => {
                let text = format!(
                    "the request's memory was overwritten by another instance of the model: expected {expected}"
                );
                let outcome = OutOutcome::Error { code: 1, text: &text, backend: true };
                let (slot, ticket) = (entry.slot, entry.ticket);
                let answer = OutAnswer { slot, ticket, last: true, released: true, outcome };
                self.send(&OutMessage::Answer(&answer)).expect("an error fits the link");
                None
            }
        }
    }

    /// Reads a frame of the request arena out of a private copy, since models write to the arena.
    fn read_frame<T>(
        &self,
        offset: u64,
        len: u64,
        read: impl FnOnce(&mut Reader<'_>, &View) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let outside = Malformed("a frame within the request arena");
        let len = usize::try_from(len).map_err(|_| outside)?;
        let address = self.memory.at(offset, len).ok_or(outside)?;
        // SAFETY: in the mapping. Whatever a model writes there meanwhile, the copy is read as one that may hold
        // anything.
        let shared = unsafe { std::slice::from_raw_parts(address.as_ptr(), len) };
        let copy: SmallVec<[u8; 512]> = SmallVec::from_slice(shared);
        let (mut reader, data) = Reader::new(&copy)?;
        let view = View { data: offset + data as u64, arena_len: self.memory.len() as u64 };
        read(&mut reader, &view)
    }

    /// The number of the latest question whether the model is ready; blocks until it is another than this one. `None`:
    /// the server asks the worker to leave.
    pub fn next_check(&self, last: u64) -> Option<u64> {
        let header = self.link.header();
        let ready = || {
            if header.stop.ends() {
                return Some(None);
            }
            let number = header.check.0.load(Ordering::Acquire);
            (number != last).then_some(Some(number))
        };
        header.check_bell.wait(None, ready).flatten()
    }

    /// Whether the server wants verbose lines now.
    pub fn is_verbose(&self) -> bool {
        self.link.header().verbose.0.load(Ordering::Relaxed) != 0
    }

    /// Whether the caller wants the request to end, or has left.
    pub fn is_cancelled(&self, slot: u32, ticket: u64) -> bool {
        self.link.slot(slot).is_cancelled(ticket)
    }

    /// Sends a message: copies its tensors into the response arena once, and rings the doorbell if the server asked for
    /// it. Blocks while the link is full.
    ///
    /// # Errors
    ///
    /// It is larger than the link could ever carry; nothing was sent.
    pub fn send(&self, message: &OutMessage<'_>) -> Result<(), SendError> {
        // It may have to wait for the room that these take.
        self.ring_for_unrung();
        self.sender.send(message)?;
        self.ring_doorbell();
        Ok(())
    }

    /// Sends a message without waiting. False: there is no room now, and nothing was sent.
    ///
    /// # Errors
    ///
    /// As [`WorkerEnd::send`].
    pub fn try_send(&self, message: &OutMessage<'_>) -> Result<bool, SendError> {
        let sent = self.sender.try_send(message)?;
        if sent {
            self.ring_doorbell();
        }
        Ok(sent)
    }

    /// Sends a message that nobody waits for, without waiting. False: there is no room now, and nothing was sent. While
    /// requests are executed, this does not ring the doorbell: the server finds the message together with those that
    /// follow, the answers to these requests at the latest, and is woken once.
    ///
    /// # Errors
    ///
    /// As [`WorkerEnd::send`].
    pub fn try_send_quietly(&self, message: &OutMessage<'_>) -> Result<bool, SendError> {
        let sent = self.sender.try_send(message)?;
        if sent {
            let unrung = self.unrung.fetch_add(1, Ordering::SeqCst) + 1;
            if unrung >= MOST_UNRUNG || !self.executing.load(Ordering::SeqCst) {
                self.ring_doorbell();
            }
        }
        Ok(sent)
    }

    fn ring_for_unrung(&self) {
        if self.unrung.load(Ordering::SeqCst) != 0 {
            self.ring_doorbell();
        }
    }

    /// Requests were taken off the ring, which the server may wait for.
    fn announce_room(&self) {
        // With the fence of the server: either it sees the room, or we see that it wants some.
        fence(Ordering::SeqCst);
        if self.link.header().room.turn(Room::Wanted, Room::Made) {
            self.ring_doorbell();
        }
    }

    fn ring_doorbell(&self) {
        let armed = &self.link.header().armed.0;
        if self.unrung.load(Ordering::Relaxed) != 0 {
            // A message that was counted here is in the ring before the bell rings for it.
            self.unrung.swap(0, Ordering::SeqCst);
        }
        // With the fence of the server: either we see that it wants to be rung for, or it sees the message.
        fence(Ordering::SeqCst);
        if armed.load(Ordering::Relaxed) != 0 && armed.swap(0, Ordering::Relaxed) != 0 {
            self.doorbell.ring();
        }
    }

    /// Blocks until a further response may be sent for a request of which so many responses and bytes were sent: until
    /// fewer than [`WorkerEnd::MAX_WAITING_RESPONSES`] and [`WorkerEnd::MAX_WAITING_BYTES`] of them wait for the
    /// caller.
    pub fn wait_credit(&self, slot: u32, ticket: u64, sent_responses: u64, sent_bytes: u64) -> Credit {
        let ready = || self.credit(slot, ticket, sent_responses, sent_bytes);
        ready().unwrap_or_else(|| self.link.slot(slot).credit().wait(None, ready).expect("without a deadline"))
    }

    /// What [`WorkerEnd::wait_credit`] gives; `None` where it would wait.
    pub fn credit(&self, slot: u32, ticket: u64, sent_responses: u64, sent_bytes: u64) -> Option<Credit> {
        let slot = self.link.slot(slot);
        if self.is_abandoned() || !slot.has_caller(ticket) || !slot.is(ticket, State::Claimed) {
            return Some(Credit::CallerLeft);
        }
        let (responses, bytes) = slot.consumption();
        let go = sent_responses.saturating_sub(responses) < WorkerEnd::MAX_WAITING_RESPONSES
            && sent_bytes.saturating_sub(bytes) < WorkerEnd::MAX_WAITING_BYTES;
        go.then_some(Credit::Go)
    }

    /// Ends every wait of this end, now and later: the server has let go of the link, and the process of this end lives
    /// on. Messages are accepted and go nowhere.
    pub fn abandon(&self) {
        let header = self.link.header();
        header.stop.end(Stop::Abandoned);
        [&header.request_bell, &header.mail_bell, &header.room_bell, &header.check_bell]
            .iter()
            .for_each(|bell| bell.ring());
        (0..self.link.layout.geometry.slots).for_each(|slot| self.link.slot(slot).credit().ring());
    }

    /// Whether the server has let go of the link.
    pub fn is_abandoned(&self) -> bool {
        self.link.header().stop.ends_for(Stop::Abandoned)
    }

    /// The next answer to a call; waits at most this long, until the link is abandoned, or for ever. Of several threads
    /// that wait each mail goes to one, whichever call it is for.
    ///
    /// # Panics
    ///
    /// If a model has scribbled over the mail: its call could not be told any more.
    pub fn next_mail(&self, timeout: Option<Duration>) -> Option<ReceivedMail> {
        let deadline = timeout.map(|timeout| alipes_clock::now() + timeout);
        let pop = || match self.mail.lock().pop().expect(SOUND) {
            Some(entry) => Some(Some(entry)),
            None => self.is_abandoned().then_some(None),
        };
        let [offset, len] = self.mail_spin.wait(&self.link.header().mail_bell, deadline, pop)??;
        let read = self.read_frame(offset, len, mail::read);
        Some(read.unwrap_or_else(|Malformed(expected)| {
            panic!("an answer to a call was overwritten by another instance of the model: expected {expected}")
        }))
    }

    #[cfg(test)]
    pub(crate) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The descriptor that rings for the server: the only one that the worker's end keeps.
    pub fn doorbell_fd(&self) -> RawFd {
        self.doorbell.as_raw_fd()
    }

    /// The request arena, to make views of it and to see whether an address lies in it.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }
}
