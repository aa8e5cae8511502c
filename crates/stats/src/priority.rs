//! Scheduling priorities of threads, for machines with more runnable threads than cores.
//!
//! A request costs the network microseconds, an execution of a large model fills a core for as long as it lasts. Left
//! to equal shares, a network thread that is busy with small requests has soon used its own up and waits for the next
//! tick of the clock, 4 ms on many machines: the 99th percentile of a small model beside a saturated large one was 3 to
//! 5 ms, at a median of 32 µs. So threads that compute step back, and network threads may interrupt them when they
//! wake.

use std::io;
use std::time::Duration;

/// Role of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Receives, answers and runs quick models: never long at a time.
    Network,
    /// Executes or loads models, or reads and writes large requests. It gets a quarter of a core's time beside each
    /// other runnable thread, and all idle time: alone on the machine it runs at full speed.
    Compute,
}

impl Priority {
    /// Added to the niceness of the process, which is that of its first thread.
    const fn niceness(self) -> i32 {
        match self {
            Priority::Network => 0,
            Priority::Compute => 5,
        }
    }

    /// How long the thread runs before another has its turn; 100 µs is the least that Linux grants. A thread with a
    /// shorter slice may interrupt one with a longer slice when it wakes.
    const fn slice(self) -> Duration {
        match self {
            Priority::Network => Duration::from_micros(100),
            Priority::Compute => Duration::from_micros(500),
        }
    }
}

/// Sets the priority of the calling thread and of threads that it starts later. A thread may lower its priority but not
/// raise it again.
///
/// It is counted from that of the process, not from that of the thread that started this one: else threads that start
/// each other, as those of an ensemble's steps do, would step back further each time.
///
/// Where the system offers no slices (Linux before 6.12) the niceness alone counts; where it refuses that as well, the
/// thread runs as it did, and everything works, only less evenly.
pub fn set(priority: Priority) {
    // SAFETY: takes no memory; 0 names this thread, which exists, so the call cannot fail.
    let own = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // SAFETY: both take no memory; the number of the process is that of its first thread.
    let process = unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::getpid().cast_unsigned()) };
    let niceness = own.max(process + priority.niceness());
    if apply(niceness, priority.slice()).is_err() {
        // SAFETY: takes no memory; 0 names this thread.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
    }
}

fn apply(niceness: i32, slice: Duration) -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        nice: niceness.min(19),
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
    use std::thread;

    use super::*;

    fn niceness_and_policy() -> (i32, i32) {
        // SAFETY: both take no memory; 0 names this thread.
        unsafe { (libc::getpriority(libc::PRIO_PROCESS, 0), libc::sched_getscheduler(0)) }
    }

    #[test]
    fn what_computes_steps_back_with_the_threads_it_starts() {
        let before = niceness_and_policy();
        let (computing, started) = thread::spawn(|| {
            set(Priority::Compute);
            (niceness_and_policy(), thread::spawn(niceness_and_policy).join().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(computing, ((before.0 + 5).min(19), before.1));
        assert_eq!(started, computing);
        assert_eq!(niceness_and_policy(), before);
    }

    #[test]
    fn a_thread_that_inherits_a_computing_priority_steps_back_no_further() {
        let computing = || {
            set(Priority::Compute);
            niceness_and_policy()
        };
        let (first, second) =
            thread::spawn(move || (computing(), thread::spawn(computing).join().unwrap())).join().unwrap();
        assert_eq!(first, second);
    }

    #[test]
    fn a_network_thread_keeps_its_place() {
        let (before, after) = thread::spawn(|| {
            let before = niceness_and_policy();
            set(Priority::Network);
            (before, niceness_and_policy())
        })
        .join()
        .unwrap();
        assert_eq!(before, after);
    }
}
