//! The response arena as the worker fills it: slots taken, written, sent, and collected when the server gives them
//! back.

use std::collections::HashMap;
use std::mem::offset_of;

use parking_lot::Mutex;

use crate::arena::{Arena, Range, slot_bytes};
use crate::frame::answer::Slots;
use crate::frame::{MAX_FRAME_BYTES, MAX_PRIVATE_BYTES, Writer, message};
use crate::layout::{ANSWER_ENTRIES, FREE_ENTRIES, Header, Link, Stop};
use crate::outgoing::{OutMessage, SendError};
use crate::rings::{Consumer, Producer, Ring, SOUND, message_word};

/// Most slots that the worker has with the server: fewer than the free ring holds, so that it never overflows.
const MAX_RESPONSE_SLOTS: usize = FREE_ENTRIES as usize - 1;

/// Entries of the answer ring that must be free for a message that does not wait: more than threads are about to post
/// one, so that none of them has to wait after all.
const SPARE_ENTRIES: u64 = ANSWER_ENTRIES / 4;

/// The sending half of a worker's link. Threads take slots and post frames under a lock, and copy outside of it.
#[derive(Debug)]
pub(crate) struct Sender {
    link: Link,
    response_slots: Mutex<ResponseSlots>,
    /// Held by the one thread that may hold slots while it waits for more.
    waiting: Mutex<()>,
}

#[derive(Debug)]
struct ResponseSlots {
    arena: Arena,
    /// Slots that are being written or with the server, by offset.
    slots: HashMap<u64, u64>,
    free: Consumer<1>,
    answers: Producer<2>,
}

impl ResponseSlots {
    /// What the server gave back is free.
    fn collect(&mut self, link: &Link) {
        while let Some([offset]) = self.free.pop().expect(SOUND) {
            let len = self.slots.remove(&offset).expect("the server gives back what it was given, once");
            self.free_slot(link, Range { offset, len });
        }
    }

    fn free_slot(&mut self, link: &Link, slot: Range) {
        if let Some(range) = self.arena.free(slot) {
            punch(link, range);
            self.arena.restore(range);
        }
    }

    fn allocate(&mut self, link: &Link, len: u64) -> Option<u64> {
        self.collect(link);
        if self.slots.len() >= MAX_RESPONSE_SLOTS {
            return None;
        }
        let slot = self.arena.allocate(len).or_else(|| {
            self.trim(link);
            self.arena.allocate(len)
        })?;
        self.slots.insert(slot.offset, slot.len);
        Some(slot.offset)
    }

    fn trim(&mut self, link: &Link) {
        for range in self.arena.drain() {
            punch(link, range);
            self.arena.restore(range);
        }
    }

    /// A slot that was never sent.
    fn give_up(&mut self, link: &Link, offset: u64) {
        let len = self.slots.remove(&offset).expect("taken before");
        self.free_slot(link, Range { offset, len });
    }
}

fn punch(link: &Link, range: Range) {
    link.memory.punch(link.layout.responses + range.offset, range.len);
}

/// Why a frame was not written.
enum Refusal {
    /// The link is full.
    Full,
    /// The link was abandoned: nobody takes the message.
    Abandoned,
    Never(SendError),
}

impl Sender {
    pub fn new(link: Link) -> Sender {
        let (memory, layout) = (&link.memory, &link.layout);
        let free = Ring::new(memory, offset_of!(Header, free) as u64, layout.free, FREE_ENTRIES).consumer();
        let answers = Ring::new(memory, offset_of!(Header, answers) as u64, layout.answers, ANSWER_ENTRIES).producer();
        let arena = Arena::new(layout.geometry.response_bytes);
        let response_slots = ResponseSlots { arena, slots: HashMap::new(), free, answers };
        Sender { link, response_slots: Mutex::new(response_slots), waiting: Mutex::new(()) }
    }

    /// Writes a message and posts it; blocks while the link is full. In an abandoned link it may go nowhere.
    pub fn send(&self, message: &OutMessage<'_>) -> Result<(), SendError> {
        let frame = match self.write(message, false) {
            Err(Refusal::Full) => {
                // Threads that each held a part and waited for the rest could wait for each other.
                let _waiting = self.waiting.lock();
                self.write(message, true)
            }
            written => written,
        };
        match frame {
            Ok(frame) => {
                self.post(frame);
                Ok(())
            }
            Err(Refusal::Abandoned) => Ok(()),
            Err(Refusal::Never(error)) => Err(error),
            Err(Refusal::Full) => unreachable!("a patient writer waits"),
        }
    }

    /// Writes a message and posts it without waiting; in an abandoned link it may go nowhere. False: there is no room
    /// now, and nothing was sent.
    pub fn try_send(&self, message: &OutMessage<'_>) -> Result<bool, SendError> {
        if self.is_abandoned() {
            return Ok(true);
        }
        if self.response_slots.lock().answers.room(SPARE_ENTRIES).expect(SOUND) < SPARE_ENTRIES {
            return Ok(false);
        }
        match self.write(message, false) {
            Ok(frame) => {
                self.post(frame);
                Ok(true)
            }
            Err(Refusal::Abandoned) => Ok(true),
            Err(Refusal::Never(error)) => Err(error),
            Err(Refusal::Full) => Ok(false),
        }
    }

    fn write(&self, message: &OutMessage<'_>, may_wait: bool) -> Result<[u64; 2], Refusal> {
        let mut slots = PendingSlots { sender: self, may_wait, bytes: 0, private: 0, offsets: Vec::new() };
        let mut writer = Writer::new();
        message::write(&mut writer, message, &mut slots)?;
        let len = writer.len();
        if len as u64 > MAX_FRAME_BYTES {
            return Err(Refusal::Never(SendError::TooLarge { bytes: len, limit: MAX_FRAME_BYTES as usize }));
        }
        let offset = slots.take(len as u64)?;
        writer.write_to(self.slot(offset, len));
        // All of them are the server's to give back.
        slots.offsets.clear();
        Ok([offset, message_word(len as u64, slots.private as u64)])
    }

    /// The memory of a slot.
    #[allow(clippy::mut_from_ref, reason = "each slot is lent to the one who allocated it")]
    fn slot(&self, offset: u64, len: usize) -> &mut [u8] {
        let place = self.link.response(offset, len as u64).expect("slots lie in the arena");
        let address = self.link.memory.at(place, len).expect("the arena lies in the memory");
        // SAFETY: in the mapping; allocated, not yet sent, and asked for by the thread that allocated it.
        unsafe { std::slice::from_raw_parts_mut(address.as_ptr(), len) }
    }

    fn post(&self, frame: [u64; 2]) {
        let push = || {
            let pushed = self.response_slots.lock().answers.push(frame).expect(SOUND);
            (pushed || self.is_abandoned()).then_some(())
        };
        if push().is_none() {
            self.link.header().room_bell.wait(None, push);
        }
    }

    fn take(&self, len: u64, may_wait: bool) -> Result<u64, Refusal> {
        let take = || match self.response_slots.lock().allocate(&self.link, len) {
            Some(offset) => Some(Ok(offset)),
            None => self.is_abandoned().then_some(Err(Refusal::Abandoned)),
        };
        let offset = take().or_else(|| if may_wait { self.link.header().room_bell.wait(None, take) } else { None });
        offset.unwrap_or(Err(Refusal::Full))
    }

    fn is_abandoned(&self) -> bool {
        self.link.header().stop.ends_for(Stop::Abandoned)
    }

    /// Gives the memory of idle slots back to the system; true once the server has returned every slot.
    pub fn trim(&self) -> bool {
        let mut response_slots = self.response_slots.lock();
        response_slots.collect(&self.link);
        response_slots.trim(&self.link);
        response_slots.slots.is_empty()
    }
}

/// Slots of a message that is being written; given up when dropped.
struct PendingSlots<'a> {
    sender: &'a Sender,
    may_wait: bool,
    bytes: u64,
    private: usize,
    offsets: Vec<u64>,
}

impl PendingSlots<'_> {
    fn take(&mut self, len: u64) -> Result<u64, Refusal> {
        let limit = self.sender.link.layout.geometry.response_bytes;
        self.bytes = self.bytes.saturating_add(slot_bytes(len).unwrap_or(u64::MAX));
        if self.bytes > limit || self.offsets.len() >= MAX_RESPONSE_SLOTS {
            return Err(Refusal::Never(SendError::TooLarge { bytes: self.bytes as usize, limit: limit as usize }));
        }
        let offset = self.sender.take(len, self.may_wait)?;
        self.offsets.push(offset);
        Ok(offset)
    }
}

impl Slots for PendingSlots<'_> {
    type Refusal = Refusal;

    fn place(&mut self, bytes: &[u8]) -> Result<u64, Refusal> {
        let offset = self.take(bytes.len() as u64)?;
        self.sender.slot(offset, bytes.len()).copy_from_slice(bytes);
        Ok(offset)
    }

    fn count_private(&mut self, len: usize) -> Result<(), Refusal> {
        self.private = self.private.saturating_add(len);
        let limit = MAX_PRIVATE_BYTES as usize;
        if self.private > limit {
            return Err(Refusal::Never(SendError::TooLarge { bytes: self.private, limit }));
        }
        Ok(())
    }
}

impl Drop for PendingSlots<'_> {
    fn drop(&mut self) {
        if !self.offsets.is_empty() {
            let mut response_slots = self.sender.response_slots.lock();
            self.offsets.iter().for_each(|&offset| response_slots.give_up(&self.sender.link, offset));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use alipes_protocol::CorrelationId;

    use crate::*;

    fn pair(response_bytes: u64) -> (ServerEnd, WorkerEnd) {
        let server = ServerEnd::create(Geometry { slots: 8, response_bytes }).unwrap();
        let arena = RequestArena::create(4096).unwrap();
        let (link, requests) = (server.link_fd().try_clone_to_owned(), arena.fd().try_clone_to_owned());
        let doorbell = server.doorbell_fd().try_clone_to_owned();
        let worker = WorkerEnd::open(link.unwrap(), requests.unwrap(), doorbell.unwrap()).unwrap();
        (server, worker)
    }

    fn send(worker: &WorkerEnd, data: &[u8]) -> Result<(), SendError> {
        worker.send(&OutMessage::Call(&call(data)))
    }

    /// A call with one input, which needs no request.
    fn call(data: &[u8]) -> OutCall<'_> {
        let input = OutTensor {
            name: TensorName::Index(0),
            datatype: alipes_protocol::Datatype::Uint8,
            shape: [data.len() as i64].into_iter().collect(),
            data: OutData::Bytes(data),
        };
        let call = OutInferCall {
            model: "m",
            version: 1,
            id: "",
            correlation_id: &CorrelationId::Number(0),
            flags: 0,
            timeout_us: 0,
            priority: 0,
            parameters: "",
            outputs: vec![],
            inputs: vec![input],
            decoupled: false,
            trace: None,
        };
        OutCall { id: 1, parent: 0, kind: OutCallKind::Infer(call) }
    }

    #[test]
    fn a_response_of_200_megabytes_leaves_no_memory_behind() {
        let (mut server, worker) = pair(1 << 30);
        send(&worker, &vec![1; 200_000_000]).unwrap();
        let message = server.receive().unwrap().unwrap();
        assert!(server.resident_bytes() >= 200_000_000);
        drop(message);
        worker.sender().trim();
        let left = server.resident_bytes();
        assert!(left < 1 << 20, "{left} bytes are left");
    }

    #[test]
    fn senders_wait_while_the_memory_for_responses_is_lent() {
        // Room for one of the tensors and some frames, but not for two.
        let (mut server, worker) = pair(600_000);
        let data = vec![7; 400_000];
        send(&worker, &data).unwrap();
        let lent = server.receive().unwrap().unwrap();
        let sent = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = [(); 3].map(|()| {
                scope.spawn(|| {
                    send(&worker, &data).unwrap();
                    sent.store(true, Ordering::SeqCst);
                })
            });
            // Small messages pass by those that wait.
            worker.send(&OutMessage::Ready { checks: false }).unwrap();
            assert_eq!(server.receive(), Ok(Some(Message::Ready { checks: false })));
            assert!(!sent.load(Ordering::SeqCst), "there was no room to send");
            drop(lent);
            let mut received = 0;
            while received < 3 {
                received += usize::from(server.receive().unwrap().is_some());
                std::thread::yield_now();
            }
            waiting.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn senders_wait_while_the_ring_of_answers_is_full() {
        let (mut server, worker) = pair(16 << 20);
        let count = 3 * crate::layout::ANSWER_ENTRIES;
        std::thread::scope(|scope| {
            for part in 0..2 {
                let worker = &worker;
                scope.spawn(move || {
                    for lease in (0..count).filter(|lease| lease % 2 == part) {
                        worker.send(&OutMessage::Released { lease }).unwrap();
                    }
                });
            }
            let mut last = [None; 2];
            let mut received = 0;
            while received < count {
                let Some(message) = server.receive().unwrap() else {
                    std::thread::yield_now();
                    continue;
                };
                let Message::Released { lease } = message else { panic!("unexpected {message:?}") };
                assert!(last[lease as usize % 2] < Some(lease), "each thread's messages stay in order");
                last[lease as usize % 2] = Some(lease);
                received += 1;
            }
        });
    }

    #[test]
    fn a_full_link_refuses_a_sender_that_does_not_wait() {
        let (mut server, worker) = pair(600_000);
        let data = vec![7; 400_000];
        send(&worker, &data).unwrap();
        let lent = server.receive().unwrap().unwrap();
        let call = call(&data);
        let call = OutMessage::Call(&call);
        assert_eq!(worker.try_send(&call), Ok(false));
        assert_eq!(server.receive(), Ok(None));
        drop(lent);
        assert_eq!(worker.try_send(&call), Ok(true));
        assert!(matches!(server.receive(), Ok(Some(Message::Call(_)))));
    }

    #[test]
    fn a_ring_that_is_nearly_full_is_left_to_those_who_wait() {
        let (mut server, worker) = pair(16 << 20);
        let sent = (0..).take_while(|&lease| worker.try_send(&OutMessage::Released { lease }).unwrap()).count();
        assert!(sent as u64 > crate::layout::ANSWER_ENTRIES / 2);
        worker.send(&OutMessage::Ready { checks: false }).unwrap();
        for lease in 0..sent as u64 {
            assert_eq!(server.receive(), Ok(Some(Message::Released { lease })));
        }
        assert_eq!(server.receive(), Ok(Some(Message::Ready { checks: false })));
    }
}
