//! Processes that a model forks: they have copies of all objects, but the links are their parent's.

use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// How many forks lie between the process that began and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// No descriptor.
const NONE: RawFd = -1;

/// Descriptors that a forked process is not to have.
static CLOSED_IN_CHILDREN: Slot = Slot { descriptor: AtomicI32::new(NONE), next: OnceLock::new() };

/// Place for one descriptor, and the way to the next place. Places are used again and never freed, so that a forked
/// process, in which no lock can be taken, goes through them as they are.
struct Slot {
    descriptor: AtomicI32,
    next: OnceLock<Box<Slot>>,
}

/// The error for a model that uses the link from such a process.
pub const NOT_OURS: &str = "Only the worker's own process reaches the server, not one that was forked from it.";

/// A number that differs between a process and those that are forked from it.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has `generation` notice every fork from now on. Further calls change nothing: a process has one handler.
pub fn watch() -> io::Result<()> {
    static WATCHED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the handler uses atomics and closes descriptors, which may be done in a child of a process with several
    // threads.
    match *WATCHED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(note)) }) {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Has every process that is forked from now on close its copy of a descriptor.
pub fn close_in_children(descriptor: RawFd) {
    let mut slot = &CLOSED_IN_CHILDREN;
    while slot.descriptor.compare_exchange(NONE, descriptor, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        slot = slot.next.get_or_init(|| Box::new(Slot { descriptor: AtomicI32::new(NONE), next: OnceLock::new() }));
    }
}

/// The descriptor is about to be closed here, and its number free for another.
pub fn leave_in_children(descriptor: RawFd) {
    let found = slots().find(|slot| slot.descriptor.load(Ordering::Relaxed) == descriptor);
    found.into_iter().for_each(|slot| slot.descriptor.store(NONE, Ordering::Relaxed));
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    std::iter::successors(Some(&CLOSED_IN_CHILDREN), |slot| slot.next.get().map(|next| &**next))
}

extern "C" fn note() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for slot in slots() {
        let descriptor = slot.descriptor.swap(NONE, Ordering::Relaxed);
        if descriptor != NONE {
            // SAFETY: nothing uses the number in the child: links of another generation are neither used nor closed.
            unsafe { libc::close(descriptor) };
        }
    }
}
