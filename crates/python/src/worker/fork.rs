//! Processes that a model forks: they have copies of all objects, but the link is their parent's.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

static FORKED: AtomicBool = AtomicBool::new(false);

/// The descriptor that a forked process is not to have; none below 0.
static DOORBELL: AtomicI32 = AtomicI32::new(-1);

/// The error for a model that uses the link from such a process.
pub const NOT_OURS: &str = "Only the worker's own process reaches the server, not one that was forked from it.";

/// Whether this process was forked from the one with the link. What it says there would mix with its parent's words.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Has `is_forked` notice every fork from now on, whoever asks for it, and the doorbell closed there.
pub fn watch(doorbell: RawFd) -> io::Result<()> {
    DOORBELL.store(doorbell, Ordering::Relaxed);
    // SAFETY: the handler uses atomics and closes a descriptor, which may be done in a child of a process with several
    // threads.
    match unsafe { libc::pthread_atfork(None, None, Some(note)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

extern "C" fn note() {
    FORKED.store(true, Ordering::Relaxed);
    let doorbell = DOORBELL.swap(-1, Ordering::Relaxed);
    if doorbell >= 0 {
        // SAFETY: nothing uses the number in the child: `is_forked` keeps the link from being used, and the link is
        // never dropped.
        unsafe { libc::close(doorbell) };
    }
}
