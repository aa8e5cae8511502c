//! What happens when a client cuts off memory that the server reads or writes: zeroes take its place, and the region is
//! known to be lost.
//!
//! The kernel tells of an access to memory that an object does not have, or cannot get, with `SIGBUS`, in the thread that
//! made it: an engine amid an execution, or a copy. Its default ends the process. The handler here looks whether the
//! address lies in a region of a client. If so, it maps memory of the server's own over the whole region, notes that the
//! region is lost, and lets the access go on, which now finds zeroes. Whoever used the region asks for the note
//! ([`Watch::is_lost`]) before anybody gets an answer. Any other `SIGBUS` is passed on to whoever handled it before, so
//! that a fault of the server itself ends it as ever.
//!
//! The handler may run at any moment in any thread, so it takes no lock and no memory: it reads a table of atomics that
//! lies at one place for ever, and makes one system call.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use alipes_protocol::limits::REGION_MAX_WATCHED;
use parking_lot::Mutex;

/// A range of addresses that is watched. A `begin` of 0 says that there is none.
struct Slot {
    begin: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

/// Written by [`Watch`], read by the handler; untouched pages of it cost nothing.
static SLOTS: [Slot; REGION_MAX_WATCHED] =
    [const { Slot { begin: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        REGION_MAX_WATCHED];

/// How many slots have ever been in use: the handler looks at no others.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Slots that are free again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Who handled the signal before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A range of memory in which bus errors are survived, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Watch {
    slot: usize,
}

impl Watch {
    /// Watches a mapping: whole pages, mapped for as long as the watch lives, in which zeroes may take the place of what
    /// is there. None where too many are watched.
    pub fn over(base: NonNull<u8>, len: usize) -> Option<Watch> {
        let mut free = FREE.lock();
        let slot = free.pop().or_else(|| {
            // Under the lock, so that nobody else counts.
            let next = USED.load(Ordering::SeqCst);
            (next < REGION_MAX_WATCHED).then(|| {
                USED.store(next + 1, Ordering::SeqCst);
                next
            })
        })?;
        drop(free);
        let begin = base.as_ptr().expose_provenance();
        SLOTS[slot].lost.store(false, Ordering::SeqCst);
        SLOTS[slot].end.store(begin + len, Ordering::SeqCst);
        SLOTS[slot].begin.store(begin, Ordering::SeqCst);
        Some(Watch { slot })
    }

    /// Whether zeroes have taken the place of the memory.
    pub fn is_lost(&self) -> bool {
        SLOTS[self.slot].lost.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        SLOTS[self.slot].begin.store(0, Ordering::SeqCst);
        FREE.lock().push(self.slot);
    }
}

/// Makes sure that the handler is in place; called before a region is mapped.
///
/// # Errors
///
/// Why it is not, in words for the client.
pub(crate) fn arm() -> Result<(), &'static str> {
    static ARMING: Mutex<()> = Mutex::new(());
    let _alone = ARMING.lock();
    let current = handler_of(None)?;
    if current.sa_sigaction == entry() {
        return Ok(());
    }
    if PREVIOUS.get().is_some() {
        // Putting it back would be worse: the other one may pass on to this one, and this one to it, in circles.
        return Err("something in the server's process has taken over the handling of bus errors since it started");
    }
    let _ = PREVIOUS.set(current);
    // SAFETY: all zeroes are a valid structure, and an empty set of signals on Linux.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = entry();
    // On the thread's own stack for signals where it has one.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    handler_of(Some(&ours)).map(drop)
}

/// The handler's address, as the system knows it.
fn entry() -> usize {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    handler as usize
}

/// Sets the handler of the signal, where one is given; the one before.
fn handler_of(new: Option<&libc::sigaction>) -> Result<libc::sigaction, &'static str> {
    // SAFETY: all zeroes are a valid structure.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: both point to structures of this type or to nothing, and what is installed is `on_bus_error`, which does
    // only what a handler may.
    match unsafe { libc::sigaction(libc::SIGBUS, new, &mut before) } {
        0 => Ok(before),
        _ => Err("the system does not let the server handle bus errors"),
    }
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a valid structure; the address in it belongs to signals of this kind.
    let (cause, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // SAFETY: the thread's own `errno`, which the interrupted code may be about to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // What another process sends has no address.
    if cause <= 0 || !survive(address) {
        pass_on(signal, cause, info, context);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Puts zeroes where a watched region is cut off; false where the address lies in none.
fn survive(address: usize) -> bool {
    let used = USED.load(Ordering::SeqCst);
    for slot in &SLOTS[..used] {
        let begin = slot.begin.load(Ordering::SeqCst);
        let end = slot.end.load(Ordering::SeqCst);
        // The slot may have been given to another region between the two. Its `begin` is 0 in between, so what is the
        // same again is the begin of a region that is watched at this moment, and `end` is that region's.
        let steady = slot.begin.load(Ordering::SeqCst) == begin;
        if begin == 0 || !steady || !(begin..end).contains(&address) {
            continue;
        }
        slot.lost.store(true, Ordering::SeqCst);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is exactly one mapping of a client's object. It exists as long as the thread that the signal
        // interrupted runs on in it, for that thread holds it alive, and no other region overlaps it; so nothing else is
        // replaced. Everyone who looks at these bytes expects them to change at any time (`Mapping::slice`), and zeroes
        // are bytes. The call is no more than the system call.
        let replaced =
            unsafe { libc::mmap(ptr::with_exposed_provenance_mut(begin), end - begin, protection, flags, -1, 0) };
        return replaced != libc::MAP_FAILED;
    }
    false
}

/// Leaves a signal that is none of ours to whoever handled it before.
fn pass_on(signal: c_int, cause: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(previous) = PREVIOUS.get() else { return };
    match previous.sa_sigaction {
        // Nobody: an access that is repeated, or the signal that is sent again, now meets the system's own handling.
        libc::SIG_DFL => {
            // SAFETY: what was installed before is valid still; the signal is delivered when this handler returns.
            unsafe {
                libc::sigaction(signal, previous, ptr::null_mut());
                if cause <= 0 {
                    libc::raise(signal);
                }
            }
        }
        // The system ends a process for an access even where the signal is ignored.
        libc::SIG_IGN if cause <= 0 => {}
        libc::SIG_IGN => {
            // SAFETY: as above.
            unsafe { libc::sigaction(signal, previous, ptr::null_mut()) };
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler with this flag is a function of this type, and gets what the system gave us.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = unsafe { mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler without the flag is a function of this type.
            let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
            handler(signal);
        }
    }
}
