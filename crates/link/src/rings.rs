//! Rings with one producer and one consumer, in different processes.
//!
//! Each side keeps its own position and only publishes it; what it reads of the other side it checks, so that a
//! scribbled position is noticed and never leads out of the ring.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Shared, SharedMemory};

/// Both positions of a ring, each on a cache line of its own. They count entries since the beginning.
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Ends {
    tail: Position,
    head: Position,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Position(AtomicU64);

/// An entry of `WORDS` words.
#[repr(transparent)]
struct Slot<const WORDS: usize>([AtomicU64; WORDS]);

// SAFETY: atomics only.
unsafe impl Shared for Ends {}
// SAFETY: atomics only.
unsafe impl<const WORDS: usize> Shared for Slot<WORDS> {}

/// The other side's position is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub head: u64,
    pub tail: u64,
}

/// Why a worker expects no [`Broken`] ring: it trusts its server.
pub(crate) const SOUND: &str = "the server keeps the rings of the link in order";

/// Where a ring is.
#[derive(Clone, Debug)]
pub(crate) struct Ring<const WORDS: usize> {
    memory: Arc<SharedMemory>,
    ends: u64,
    slots: u64,
    capacity: u64,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// A ring whose positions are at offset `ends` and whose entries begin at offset `slots`.
    pub fn new(memory: &Arc<SharedMemory>, ends: u64, slots: u64, capacity: u64) -> Ring<WORDS> {
        assert!(capacity.is_power_of_two(), "positions run past the end of u64 only in whole rounds");
        Ring { memory: Arc::clone(memory), ends, slots, capacity }
    }

    pub fn producer(self) -> Producer<WORDS> {
        Producer { ring: self, tail: 0, head: 0 }
    }

    pub fn consumer(self) -> Consumer<WORDS> {
        Consumer { ring: self, head: 0, tail: 0 }
    }

    fn ends(&self) -> &Ends {
        self.memory.shared(self.ends)
    }

    fn slot(&self, position: u64) -> &Slot<WORDS> {
        self.memory.shared(self.slots + (position & (self.capacity - 1)) * size_of::<Slot<WORDS>>() as u64)
    }
}

/// The end that writes.
#[derive(Debug)]
pub(crate) struct Producer<const WORDS: usize> {
    ring: Ring<WORDS>,
    tail: u64,
    /// The consumer's position when it was last looked at.
    head: u64,
}

impl<const WORDS: usize> Producer<WORDS> {
    /// How many entries fit, at least `wanted` if that many do.
    pub fn room(&mut self, wanted: u64) -> Result<u64, Broken> {
        if self.ring.capacity - (self.tail - self.head) < wanted {
            let head = self.ring.ends().head.0.load(Ordering::Acquire);
            // It may only have moved on, and not past what was written.
            if head.wrapping_sub(self.head) > self.tail - self.head {
                return Err(Broken { head, tail: self.tail });
            }
            self.head = head;
        }
        Ok(self.ring.capacity - (self.tail - self.head))
    }

    /// Whether the other end has read all that was written.
    pub fn is_consumed(&mut self) -> Result<bool, Broken> {
        Ok(self.room(self.ring.capacity)? == self.ring.capacity)
    }

    /// Writes entries, visible all at once; false where they do not fit.
    pub fn push_all(&mut self, entries: impl ExactSizeIterator<Item = [u64; WORDS]>) -> Result<bool, Broken> {
        let count = entries.len() as u64;
        if self.room(count)? < count {
            return Ok(false);
        }
        for (position, entry) in (self.tail..).zip(entries) {
            let slot = self.ring.slot(position);
            slot.0.iter().zip(entry).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        }
        self.tail += count;
        self.ring.ends().tail.0.store(self.tail, Ordering::Release);
        Ok(true)
    }

    /// Writes one entry; false where the ring is full.
    pub fn push(&mut self, entry: [u64; WORDS]) -> Result<bool, Broken> {
        self.push_all([entry].into_iter())
    }
}

/// The second word of an entry for a message: the length of its frame, and how many bytes of tensors the reader copies
/// beside it.
pub(crate) fn message_word(frame_bytes: u64, private_bytes: u64) -> u64 {
    debug_assert!(frame_bytes >> 32 == 0 && private_bytes >> 32 == 0, "{frame_bytes} and {private_bytes} bytes");
    private_bytes << 32 | frame_bytes
}

/// The length of the frame, and the bytes of tensors that the reader copies beside it, as the writer of the word
/// claims.
pub(crate) fn of_message_word(word: u64) -> (u64, u64) {
    (word & u64::from(u32::MAX), word >> 32)
}

/// The end that reads.
#[derive(Debug)]
pub(crate) struct Consumer<const WORDS: usize> {
    ring: Ring<WORDS>,
    head: u64,
    /// The producer's position when it was last looked at.
    tail: u64,
}

impl<const WORDS: usize> Consumer<WORDS> {
    /// The oldest entry, which stays.
    pub fn peek(&mut self) -> Result<Option<[u64; WORDS]>, Broken> {
        if self.head == self.tail {
            self.tail = self.look()?;
            if self.head == self.tail {
                return Ok(None);
            }
        }
        let slot = self.ring.slot(self.head);
        Ok(Some(std::array::from_fn(|index| slot.0[index].load(Ordering::Relaxed))))
    }

    /// The producer's position now.
    fn look(&self) -> Result<u64, Broken> {
        let tail = self.ring.ends().tail.0.load(Ordering::Acquire);
        if tail.wrapping_sub(self.head) > self.ring.capacity {
            return Err(Broken { head: self.head, tail });
        }
        Ok(tail)
    }

    /// Whether there is nothing to read. A broken ring is not empty: reading it is an error.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail && self.look() == Ok(self.head)
    }

    /// Leaves the entry that was peeked at to the producer.
    pub fn advance(&mut self) {
        debug_assert!(self.head != self.tail, "nothing was peeked at");
        self.head += 1;
        self.ring.ends().head.0.store(self.head, Ordering::Release);
    }

    /// The oldest entry, taken.
    pub fn pop(&mut self) -> Result<Option<[u64; WORDS]>, Broken> {
        let entry = self.peek()?;
        if entry.is_some() {
            self.advance();
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 8;

    fn ring() -> Ring<2> {
        let memory = Arc::new(SharedMemory::create(c"test", 4096).unwrap());
        Ring::new(&memory, 0, 1024, CAPACITY)
    }

    #[test]
    fn entries_come_out_as_they_went_in() {
        let (mut producer, mut consumer) = (ring().producer(), None);
        let consumer = consumer.get_or_insert_with(|| producer.ring.clone().consumer());
        for round in 0..100u64 {
            assert!(producer.push_all([0, 1, 2].into_iter().map(|n| [round, n])).unwrap());
            for n in 0..3 {
                assert!(!consumer.is_empty());
                assert_eq!(consumer.pop(), Ok(Some([round, n])));
            }
            assert!(consumer.is_empty());
            assert_eq!(consumer.pop(), Ok(None));
        }
    }

    #[test]
    fn entries_that_do_not_fit_together_are_not_written_at_all() {
        let mut producer = ring().producer();
        let mut consumer = producer.ring.clone().consumer();
        assert!(producer.push_all([0, 1, 2, 3, 4].into_iter().map(|n| [n, n])).unwrap());
        assert!(!producer.push_all([5, 6, 7, 8].into_iter().map(|n| [n, n])).unwrap());
        assert!(producer.push_all([5, 6, 7].into_iter().map(|n| [n, n])).unwrap());
        assert!(!producer.push([8, 8]).unwrap());
        assert_eq!(consumer.pop(), Ok(Some([0, 0])));
        assert!(producer.push([8, 8]).unwrap());
    }

    #[test]
    fn impossible_positions_are_noticed() {
        let mut producer = ring().producer();
        let mut consumer = producer.ring.clone().consumer();
        producer.push([1, 1]).unwrap();
        producer.ring.ends().tail.0.store(CAPACITY + 1, Ordering::Relaxed);
        assert_eq!(consumer.peek(), Err(Broken { head: 0, tail: CAPACITY + 1 }));
        assert!(!consumer.is_empty());
        producer.ring.ends().head.0.store(2, Ordering::Relaxed);
        assert_eq!(producer.room(CAPACITY), Err(Broken { head: 2, tail: 1 }));
        producer.ring.ends().head.0.store(u64::MAX, Ordering::Relaxed);
        assert!(producer.room(CAPACITY).is_err());
    }

    #[test]
    fn two_threads_pass_everything_on_in_order() {
        let mut producer = ring().producer();
        let mut consumer = producer.ring.clone().consumer();
        let writer = std::thread::spawn(move || {
            for n in 0..20_000u64 {
                while !producer.push([n, !n]).unwrap() {
                    std::thread::yield_now();
                }
            }
        });
        for n in 0..20_000u64 {
            let entry = loop {
                match consumer.pop().unwrap() {
                    Some(entry) => break entry,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(entry, [n, !n]);
        }
        writer.join().unwrap();
    }
}
