//! The response arena as the server sees it: copied from, or lent, and given back slot by slot.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::frame::Malformed;
use crate::frame::answer::Lender;
use crate::layout::{FREE_ENTRIES, Header, Link};
use crate::rings::{Producer, Ring};

/// The response arena, alive until the last lent slot is given back.
#[derive(Debug)]
pub(crate) struct Responses {
    link: Link,
    free: Mutex<Producer<1>>,
    /// More came back than the worker may have lent.
    overrun: AtomicBool,
}

impl Responses {
    pub fn new(link: &Link) -> Responses {
        let ends = offset_of!(Header, free) as u64;
        let free = Ring::new(&link.memory, ends, link.layout.free, FREE_ENTRIES).producer();
        Responses { link: link.clone(), free: Mutex::new(free), overrun: AtomicBool::new(false) }
    }

    /// The address of bytes at an offset in the arena, if they lie in it.
    fn at(&self, offset: u64, len: u64) -> Option<NonNull<u8>> {
        self.link.memory.at(self.link.response(offset, len)?, usize::try_from(len).ok()?)
    }

    /// A private copy of bytes, if they lie in the arena.
    pub fn copy(&self, offset: u64, len: u64) -> Option<Bytes> {
        let source = self.at(offset, len)?;
        let len = len as usize;
        let mut copy = Vec::with_capacity(len);
        // SAFETY: the source lies in the mapping, the target was just reserved. The worker may write to the source
        // meanwhile; whatever mixture of bytes arrives is treated as anything it could have written.
        unsafe {
            source.as_ptr().copy_to_nonoverlapping(copy.as_mut_ptr(), len);
            copy.set_len(len);
        }
        Some(copy.into())
    }

    /// The slot that begins here is the worker's again. Also wakes a worker that waits for room of any kind.
    pub fn give_back(&self, offset: u64) {
        // An honest worker bounds what it has outstanding by the ring's capacity.
        if self.free.lock().push([offset]) != Ok(true) {
            self.overrun.store(true, Ordering::Relaxed);
        }
        self.link.header().room_bell.ring();
    }

    pub fn is_overrun(&self) -> bool {
        self.overrun.load(Ordering::Relaxed)
    }
}

impl Lender for Arc<Responses> {
    fn lend(&self, offset: u64, len: u64, private: bool) -> Result<Bytes, Malformed> {
        let outside = Malformed("a tensor within the response arena");
        let address = self.at(offset, len).ok_or(outside)?;
        let lent = Lent { responses: Arc::clone(self), offset, address, len: len as usize };
        if private {
            return self.copy(offset, len).ok_or(outside);
        }
        Ok(Bytes::from_owner(lent))
    }
}

/// A slot that the worker lends to the server; given back when dropped.
struct Lent {
    responses: Arc<Responses>,
    offset: u64,
    address: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is read only, and mapped for as long as `responses` lives.
unsafe impl Send for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: in the mapping, which `responses` holds. An honest worker leaves the slot alone until it is given
        // back. What another one changes is the contents of a tensor of numbers, which nobody here relies on.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.responses.give_back(self.offset);
    }
}
