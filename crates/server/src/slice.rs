//! Time slices of threads, so that short work is heard beside engines that compute on every core.
//!
//! Where more threads want to run than there are cores, Linux lets one run for its slice, by default some milliseconds,
//! before another has its turn. Shares of the processor stay equal whatever the slices are; only turns come sooner.

use std::io;
use std::time::Duration;

/// For network threads: the shortest slice that Linux grants. They work for tens of microseconds at a time, and a thread
/// with a short slice may interrupt one with a longer slice when it wakes.
pub const NETWORK: Duration = Duration::from_micros(100);

/// For threads that execute models: long enough that changing between them costs nothing that can be measured, short
/// enough that whoever waits for a turn, such as another model's client on the same machine, hardly notices. With the
/// default slice the 99th percentile of a small model beside a saturated large one was 3 to 5 ms.
pub const ENGINE: Duration = Duration::from_micros(500);

/// Asks for a slice for the calling thread and those that it starts later.
///
/// # Errors
///
/// The system offers no slices (Linux before 6.12) or refuses them; the thread then runs as it did.
pub fn set(slice: Duration) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        // SAFETY: takes no memory; 0 names this thread, which exists, so the call cannot fail.
        nice: unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) },
        runtime: slice.as_nanos() as u64,
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
            let _ = set(NETWORK);
            (before, read())
        });
        let (before, after) = changed.join().unwrap();
        assert_eq!(before, after);
    }
}
