//! A short time slice for network threads, so that they are heard beside engines that compute on every core.

use std::io;
use std::time::Duration;

/// The shortest slice that Linux grants. A network thread works for tens of microseconds at a time, so it is never cut
/// short by it; what counts is that a thread with a short slice may interrupt one with a long slice when it wakes.
/// Otherwise it waits until the slice of an engine's thread is used up, which takes milliseconds.
const SLICE: Duration = Duration::from_micros(100);

/// Asks for a short slice for the calling thread.
///
/// # Errors
///
/// The system offers no slices (Linux before 6.12) or refuses them; the thread then runs as it did.
pub fn shorten() -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        // SAFETY: takes no memory; 0 names this thread, which exists, so the call cannot fail.
        nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) },
        runtime: SLICE.as_nanos() as u64,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads `size` bytes of a structure that lives until the call returns; 0 names this thread.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The first version of `struct sched_attr`. Source: sched_setattr(2).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_policy_and_its_priority() {
        let read = || {
            // SAFETY: both take no memory; 0 names this thread.
            unsafe { (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0)) }
        };
        let changed = std::thread::spawn(move || {
            let before = read();
            // A kernel that knows no slices may refuse, but must not change the thread.
            let _ = shorten();
            (before, read())
        });
        let (before, after) = changed.join().unwrap();
        assert_eq!(before, after);
    }
}
