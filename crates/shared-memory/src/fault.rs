//! The handler of bus errors: when a client cuts off memory that the server uses, it maps zeroes and marks the region
//! as lost.
//!
//! An access to memory that an object does not have, or cannot get, raises `SIGBUS` in the thread that made it: an
//! engine during an execution, or a copy. By default that ends the process. The handler checks whether the address lies
//! in a region of a client. If so, it maps anonymous memory over the whole region, marks the region as lost, and
//! resumes the access, which now reads zeroes. Users of the region check the mark ([`Watch::is_lost`]) before they send
//! a response. Any other `SIGBUS` goes to the previous handler, so that a fault of the server itself still ends it.
//!
//! The handler may run at any moment in any thread, so it neither locks nor allocates: it reads a static table of
//! atomics and makes one system call.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use alipes_protocol::limits::REGION_MAX_WATCHED;
use parking_lot::Mutex;

/// A watched range of addresses. A `begin` of 0 marks an unused slot.
struct Slot {
    begin: AtomicUsize,
    end: AtomicUsize,
    lost: AtomicBool,
}

/// Written by [`Watch`], read by the handler; untouched pages of it cost nothing.
static SLOTS: [Slot; REGION_MAX_WATCHED] =
    [const { Slot { begin: AtomicUsize::new(0), end: AtomicUsize::new(0), lost: AtomicBool::new(false) } };
        REGION_MAX_WATCHED];

/// Number of slots that were ever in use; the handler checks no others.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Slots free for reuse.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The previous handler of the signal.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A range of memory in which the process survives bus errors, as long as this lives.
#[derive(Debug)]
pub(crate) struct Watch {
    slot: usize,
}

impl Watch {
    /// Watches a mapping: whole pages, mapped as long as the watch lives, which the handler may replace by zeroes. None
    /// where the table is full.
    pub fn over(base: NonNull<u8>, len: usize) -> Option<Watch> {
        let mut free = FREE.lock();
        let slot = free.pop().or_else(|| {
            // Under the lock, so no other thread changes the count.
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

    /// Whether the handler has replaced the memory by zeroes.
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

/// Installs the handler unless it is in place; called before a region is mapped.
///
/// # Errors
///
/// The reason why it cannot be installed, for the client.
pub(crate) fn arm() -> Result<(), &'static str> {
    static ARMING: Mutex<()> = Mutex::new(());
    let _alone = ARMING.lock();
    let current = handler_of(None)?;
    if current.sa_sigaction == entry() {
        return Ok(());
    }
    if PREVIOUS.get().is_some() {
        // Reinstalling would be worse: the other handler may call this one, and this one the other, without end.
        return Err("something in the server's process has taken over the handling of bus errors since it started");
    }
    let _ = PREVIOUS.set(current);
    // SAFETY: all zeroes are a valid structure, and an empty set of signals on Linux.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = entry();
    // On the thread's alternate signal stack, where it has one.
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    handler_of(Some(&ours)).map(drop)
}

/// The handler's address.
fn entry() -> usize {
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_bus_error;
    handler as usize
}

/// Sets the handler of the signal, if one is given, and returns the previous one.
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

/// Maps zeroes over the watched region around an address; false where there is none.
fn survive(address: usize) -> bool {
    let used = USED.load(Ordering::SeqCst);
    for slot in &SLOTS[..used] {
        let begin = slot.begin.load(Ordering::SeqCst);
        let end = slot.end.load(Ordering::SeqCst);
        // The slot may get another region between the two loads. Its `begin` is 0 in between, so an unchanged `begin`
        // belongs to a region that is watched at this moment, and `end` is that region's.
        let steady = slot.begin.load(Ordering::SeqCst) == begin;
        if begin == 0 || !steady || !(begin..end).contains(&address) {
            continue;
        }
        slot.lost.store(true, Ordering::SeqCst);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is exactly one mapping of a client's object. The interrupted thread keeps it alive while it
        // accesses it, and no other region overlaps it; so nothing else is replaced. All readers of these bytes expect
        // them to change at any time (`Mapping::slice`), and zeroes are valid bytes. The call is a plain system call.
        let replaced =
            unsafe { libc::mmap(ptr::with_exposed_provenance_mut(begin), end - begin, protection, flags, -1, 0) };
        return replaced != libc::MAP_FAILED;
    }
    false
}

/// Passes any other signal to the previous handler.
fn pass_on(signal: c_int, cause: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(previous) = PREVIOUS.get() else { return };
    match previous.sa_sigaction {
        // None: the repeated access, or the signal raised again, now gets the system's default action.
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
