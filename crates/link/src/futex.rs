//! Sleeping on a word in shared memory, and waking who sleeps there.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use rustix::thread::Timespec;
use rustix::thread::futex;

use crate::memory::Shared;

/// Where threads of one process wait for another: alone on its cache line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// Changes with each ring; the word that the kernel compares.
    sequence: AtomicU32,
    /// How many sleep, or are about to: nobody makes a system call to wake nobody.
    sleepers: AtomicU32,
}

// SAFETY: two atomics and padding.
unsafe impl Shared for Bell {}

impl Bell {
    /// Wakes all who sleep. What they wait for is to be written before.
    pub fn ring(&self) {
        // With the fence in `wait`: either we see the sleeper, or it sees what was written.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) != 0 {
            self.sequence.fetch_add(1, Ordering::Relaxed);
            // Nothing to do about an error: the address is mapped for as long as we are.
            let _ = futex::wake(&self.sequence, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Sleeps until `ready` has something to give, which it looks for after each ring; `None` at the deadline.
    pub fn wait<T>(&self, deadline: Option<Instant>, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            self.sleepers.fetch_add(1, Ordering::Relaxed);
            let seen = self.sequence.load(Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let outcome = ready().map_or_else(|| self.sleep(seen, deadline), WaitOutcome::Ready);
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
            match outcome {
                WaitOutcome::Ready(value) => return Some(value),
                WaitOutcome::Woken => {}
                WaitOutcome::Late => return ready(),
            }
        }
    }

    fn sleep<T>(&self, seen: u32, deadline: Option<Instant>) -> WaitOutcome<T> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(alipes_clock::now()));
        if left == Some(Duration::ZERO) {
            return WaitOutcome::Late;
        }
        let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        // Woken, interrupted, too late or because the word had changed already: the caller looks again in any case.
        let _ = futex::wait(&self.sequence, futex::Flags::empty(), seen, left.as_ref());
        WaitOutcome::Woken
    }
}

enum WaitOutcome<T> {
    Ready(T),
    Woken,
    Late,
}

/// Looking before sleeping, for as long as it has been worth it lately.
///
/// A sleep and its wake-up cost some 10 to 50 µs, which a spin saves where the wait is shorter than that. It steals a
/// core meanwhile, so it happens only where recent waits were short, and never where there are one or two cores.
#[derive(Debug)]
pub(crate) struct Spin {
    longest_ns: AtomicU64,
    /// Of recent waits, whether they ended in a sleep or not.
    average_ns: AtomicU64,
}

impl Spin {
    /// The longest spin, where there are cores for it.
    const LONGEST: Duration = Duration::from_micros(50);

    /// A single long wait counts as this, so that a pause is soon forgotten.
    const COUNTED: Duration = Duration::from_micros(200);

    pub fn new() -> Spin {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let longest = if cores <= 2 { Duration::ZERO } else { Spin::LONGEST };
        Spin { longest_ns: AtomicU64::new(longest.as_nanos() as u64), average_ns: AtomicU64::new(0) }
    }

    /// Zero turns it off.
    pub fn set(&self, longest: Duration) {
        self.longest_ns.store(longest.as_nanos() as u64, Ordering::Relaxed);
    }

    /// As [`Bell::wait`], with a spin before it.
    pub fn wait<T>(&self, bell: &Bell, deadline: Option<Instant>, mut ready: impl FnMut() -> Option<T>) -> Option<T> {
        if let Some(value) = ready() {
            return Some(value);
        }
        let longest = self.longest_ns.load(Ordering::Relaxed);
        if longest == 0 {
            return bell.wait(deadline, ready);
        }
        let began = alipes_clock::now();
        let worth = self.average_ns.load(Ordering::Relaxed) <= longest;
        let found = if worth { spin(began, Duration::from_nanos(longest), &mut ready) } else { None };
        let outcome = found.or_else(|| bell.wait(deadline, ready));
        self.learn(alipes_clock::elapsed(began).min(Spin::COUNTED).as_nanos() as u64);
        outcome
    }

    fn learn(&self, waited_ns: u64) {
        // Two threads that learn at once lose one lesson, no more.
        let average = self.average_ns.load(Ordering::Relaxed);
        self.average_ns.store((average * 7 + waited_ns) / 8, Ordering::Relaxed);
    }
}

fn spin<T>(began: Instant, longest: Duration, ready: &mut impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        for _ in 0..32 {
            if let Some(value) = ready() {
                return Some(value);
            }
            std::hint::spin_loop();
        }
        if alipes_clock::elapsed(began) >= longest {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_sleeper_sees_what_was_written_before_the_ring() {
        let shared = Arc::new((Bell::default(), AtomicU32::new(0)));
        for spin in [Duration::ZERO, Duration::from_micros(20)] {
            shared.1.store(0, Ordering::Relaxed);
            let other = Arc::clone(&shared);
            let sleeper = std::thread::spawn(move || {
                let waits = Spin::new();
                waits.set(spin);
                (1..=1000)
                    .map(|turn| {
                        let ready = || (other.1.load(Ordering::Acquire) >= turn).then_some(turn);
                        waits.wait(&other.0, None, ready).unwrap()
                    })
                    .sum::<u32>()
            });
            for turn in 1..=1000 {
                shared.1.store(turn, Ordering::Release);
                shared.0.ring();
                if turn % 3 == 0 {
                    std::thread::yield_now();
                }
            }
            assert_eq!(sleeper.join().unwrap(), 500_500);
        }
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let bell = Bell::default();
        let deadline = alipes_clock::now() + Duration::from_millis(2);
        assert_eq!(bell.wait(Some(deadline), || None::<()>), None);
        assert!(alipes_clock::now() >= deadline);
        assert_eq!(bell.sleepers.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn long_waits_end_the_spinning_and_short_ones_bring_it_back() {
        let spin = Spin::new();
        spin.set(Spin::LONGEST);
        let worth = |spin: &Spin| spin.average_ns.load(Ordering::Relaxed) <= Spin::LONGEST.as_nanos() as u64;
        (0..20).for_each(|_| spin.learn(Spin::COUNTED.as_nanos() as u64));
        assert!(!worth(&spin));
        (0..20).for_each(|_| spin.learn(10_000));
        assert!(worth(&spin));
    }
}
