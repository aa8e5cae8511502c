//! Where things are in a link's memory, and that it is a link at all.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::futex::Bell;
use crate::memory::{PAGE_BYTES, Shared, SharedMemory};
use crate::request_slot::RequestSlot;
use crate::rings::Ends;

/// "alipes-L", as a little-endian number.
const MAGIC: u64 = u64::from_le_bytes(*b"alipes-L");

/// Changes with every change of the layout or of the frames. Both ends come from one wheel; a worker of another
/// environment may hold another.
const VERSION: u32 = 2;

/// Most slots: 16 bits of a ring entry hold the slot, and each costs 128 bytes.
pub(crate) const MAX_SLOTS: u32 = 4096;

/// Capacities of the rings, in entries; powers of two.
pub(crate) const MAIL_ENTRIES: u64 = 1024;
pub(crate) const FREE_ENTRIES: u64 = 16384;
pub(crate) const ANSWER_ENTRIES: u64 = 4096;

/// Sizes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Most requests that are in the worker at once, claimed or not; at most 4096.
    pub slots: u32,
    /// Reservation for what the worker answers: addresses, not memory.
    pub response_bytes: u64,
}

impl Default for Geometry {
    fn default() -> Self {
        Geometry { slots: 1024, response_bytes: 8 << 30 }
    }
}

/// The first pages of a link. Each word that changes has a cache line of its own.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    slots: AtomicU32,
    generation: AtomicU64,
    response_bytes: AtomicU64,
    /// Requests and mail from the server, slots given back to the worker, answers from the worker.
    pub requests: Ends,
    pub mail: Ends,
    pub free: Ends,
    pub answers: Ends,
    /// The worker waits here for requests, for mail, and for room in the link.
    pub request_bell: Bell,
    pub mail_bell: Bell,
    pub room_bell: Bell,
    pub armed: Flag,
    /// Bits of [`Stop`].
    pub stop: Flag,
    /// The server's log shows verbose lines.
    pub verbose: Flag,
    /// A [`Room`] in the request ring.
    pub room: Flag,
    /// The worker waits here to be asked whether its model is ready.
    pub check_bell: Bell,
    pub check: Question,
}

/// What the ends say to each other about a request ring that was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Room {
    /// Nothing.
    Quiet = 0,
    /// The server could not publish.
    Wanted = 1,
    /// The worker has moved on since.
    Made = 2,
}

/// Bits of the word that ends a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Stop {
    /// The server asks the worker to leave: no request comes any more.
    Asked = 1,
    /// The server has let go of the link: nothing comes any more, and nobody takes what is sent. The worker's end says
    /// so to its own threads.
    Abandoned = 2,
}

impl Flag {
    /// Turns one state of the room into another.
    pub fn turn(&self, from: Room, to: Room) -> bool {
        self.0.compare_exchange(from as u32, to as u32, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Says why the link ends, beside what was said before.
    pub fn end(&self, why: Stop) {
        self.0.fetch_or(why as u32, Ordering::Release);
    }

    /// Whether the link ends, for whatever reason.
    pub fn ends(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }

    /// Whether the link ends for this reason.
    pub fn ends_for(&self, why: Stop) -> bool {
        self.0.load(Ordering::Acquire) & why as u32 != 0
    }
}

// SAFETY: atomics, and structures of atomics.
unsafe impl Shared for Header {}

/// A yes or no, alone on its cache line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Flag(pub AtomicU32);

/// Number of the latest question whether the model is ready, alone on its cache line; 0 where none was asked.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Question(pub AtomicU64);

/// Offsets of everything in a link; a function of its geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub geometry: Geometry,
    pub slots: u64,
    pub requests: u64,
    pub mail: u64,
    pub free: u64,
    pub answers: u64,
    pub responses: u64,
    pub total: u64,
}

impl Layout {
    pub fn new(geometry: Geometry) -> Option<Layout> {
        if geometry.slots == 0 || geometry.slots > MAX_SLOTS {
            return None;
        }
        let slots = PAGE_BYTES;
        let requests = slots + u64::from(geometry.slots) * size_of::<RequestSlot>() as u64;
        let mail = requests + Layout::request_entries(geometry) * 8;
        let free = mail + MAIL_ENTRIES * 16;
        let answers = free + FREE_ENTRIES * 8;
        let responses = (answers + ANSWER_ENTRIES * 16).next_multiple_of(PAGE_BYTES);
        let total = responses.checked_add(geometry.response_bytes)?.checked_next_multiple_of(PAGE_BYTES)?;
        Some(Layout { geometry, slots, requests, mail, free, answers, responses, total })
    }

    /// Revoked requests stay in the ring until the worker passes by, so there is room for some generations of them.
    pub fn request_entries(geometry: Geometry) -> u64 {
        (u64::from(geometry.slots) * 4).next_power_of_two().max(256)
    }
}

/// A link's memory with its layout.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub memory: Arc<SharedMemory>,
    pub layout: Layout,
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Link {
    /// A new, empty link.
    pub fn create(geometry: Geometry, generation: u64) -> io::Result<Link> {
        let layout = Layout::new(geometry)
            .ok_or_else(|| invalid(format!("no link has the geometry {geometry:?}: lanes are 1 to {MAX_SLOTS}")))?;
        let link = Link { memory: Arc::new(SharedMemory::create(c"alipes-link", layout.total)?), layout };
        let header = link.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.slots.store(geometry.slots, Ordering::Relaxed);
        header.generation.store(generation, Ordering::Relaxed);
        header.response_bytes.store(geometry.response_bytes, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        Ok(link)
    }

    /// The link that the other end created.
    pub fn open(memory: SharedMemory) -> io::Result<Link> {
        let seen = memory.len();
        if seen < size_of::<Header>() {
            return Err(invalid(format!("a link has at least {} bytes, found {seen}", size_of::<Header>())));
        }
        let header: &Header = memory.shared(0);
        let (magic, version) = (header.magic.load(Ordering::Acquire), header.version.load(Ordering::Relaxed));
        if magic != MAGIC || version != VERSION {
            return Err(invalid(format!(
                "the server's link has the mark {magic:#x} and version {version}, expected {MAGIC:#x} and {VERSION}: \
                 install the same release of alipes for the server and for the model's environment"
            )));
        }
        let slots = header.slots.load(Ordering::Relaxed);
        let response_bytes = header.response_bytes.load(Ordering::Relaxed);
        let layout = Layout::new(Geometry { slots, response_bytes })
            .filter(|layout| layout.total == seen as u64)
            .ok_or_else(|| invalid(format!("a link of {slots} lanes and {response_bytes} bytes is not {seen} long")))?;
        Ok(Link { memory: Arc::new(memory), layout })
    }

    pub fn header(&self) -> &Header {
        self.memory.shared(0)
    }

    pub fn generation(&self) -> u64 {
        self.header().generation.load(Ordering::Relaxed)
    }

    /// # Panics
    ///
    /// If there is no such slot; numbers from the other side are checked before.
    pub fn slot(&self, slot: u32) -> &RequestSlot {
        assert!(slot < self.layout.geometry.slots, "lane {slot} of {}", self.layout.geometry.slots);
        self.memory.shared(self.layout.slots + u64::from(slot) * size_of::<RequestSlot>() as u64)
    }

    /// Offset in the file of `len` bytes at an offset in the response arena, if they lie in it.
    pub fn response(&self, offset: u64, len: u64) -> Option<u64> {
        let end = offset.checked_add(len)?;
        (end <= self.layout.geometry.response_bytes).then(|| self.layout.responses + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Geometry = Geometry { slots: 8, response_bytes: 1 << 20 };

    fn reopen(link: &Link) -> io::Result<Link> {
        Link::open(SharedMemory::open(link.memory.fd().try_clone_to_owned()?)?)
    }

    #[test]
    fn the_parts_of_a_link_do_not_overlap() {
        assert!(size_of::<Header>() as u64 <= PAGE_BYTES);
        for slots in [1, 3, 1000, MAX_SLOTS] {
            let geometry = Geometry { slots, response_bytes: 100 };
            let layout = Layout::new(geometry).unwrap();
            let starts = [layout.slots, layout.requests, layout.mail, layout.free, layout.answers, layout.responses];
            assert!(starts.is_sorted() && starts.iter().all(|start| start % 8 == 0), "{layout:?}");
            assert!(layout.total >= layout.responses + 100);
        }
    }

    #[test]
    fn the_other_end_finds_the_same_layout() {
        let link = Link::create(SMALL, 7).unwrap();
        let other = reopen(&link).unwrap();
        assert_eq!(other.layout, link.layout);
        assert_eq!(other.generation(), 7);
    }

    #[test]
    fn impossible_geometries_are_refused() {
        for slots in [0, MAX_SLOTS + 1] {
            assert!(Link::create(Geometry { slots, response_bytes: 4096 }, 0).is_err());
        }
        assert!(Link::create(Geometry { slots: 1, response_bytes: u64::MAX }, 0).is_err());
    }

    #[test]
    fn a_file_that_is_no_link_of_this_version_is_refused() {
        let link = Link::create(SMALL, 0).unwrap();
        link.header().version.store(VERSION + 1, Ordering::Relaxed);
        assert!(reopen(&link).unwrap_err().to_string().contains("same release"));
        link.header().version.store(VERSION, Ordering::Relaxed);
        link.header().slots.store(900, Ordering::Relaxed);
        assert!(reopen(&link).unwrap_err().to_string().contains("900 lanes"));
        let short = SharedMemory::create(c"test", 64).unwrap();
        assert!(Link::open(short).is_err());
    }
}
