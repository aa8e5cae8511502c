//! Clocks that stand still until a test moves them.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

thread_local! {
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

#[derive(Clone)]
enum Source {
    Held(Held),
    Other(fn() -> Instant),
}

/// The moment of the clock that this thread has entered, if any.
pub(crate) fn now() -> Option<Instant> {
    // A thread that is ending has no clock any more.
    let source = SOURCE.try_with(|source| source.borrow().clone()).ok()??;
    Some(match source {
        Source::Held(held) => held.now(),
        Source::Other(read) => read(),
    })
}

/// Nanoseconds of the clock that this thread has entered, if any, since an hour before the process asked first: a clock
/// may have been made before that.
pub(crate) fn coarse_ns() -> Option<u64> {
    static FIRST: LazyLock<Instant> = LazyLock::new(crate::system);
    const BEFORE: Duration = Duration::from_secs(3600);
    let since = (now()? + BEFORE).saturating_duration_since(*FIRST);
    Some(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1))
}

/// A clock that moves only when a test moves it. Clones show the same time.
#[derive(Clone, Debug)]
pub struct Held {
    origin: Instant,
    /// Nanoseconds since `origin`.
    passed: Arc<AtomicU64>,
}

impl Held {
    /// A clock that stands at the present moment.
    pub fn new() -> Held {
        Held { origin: crate::now(), passed: Arc::new(AtomicU64::new(0)) }
    }

    /// What the clock shows.
    pub fn now(&self) -> Instant {
        self.origin + Duration::from_nanos(self.passed.load(Ordering::Acquire))
    }

    /// Moves the clock forward.
    ///
    /// # Panics
    ///
    /// If the span is longer than 584 years.
    pub fn advance(&self, span: Duration) {
        let span = u64::try_from(span.as_nanos()).expect("a span of less than 584 years");
        self.passed.fetch_add(span, Ordering::AcqRel);
    }

    /// Makes this clock the calling thread's until the guard is dropped.
    #[must_use = "the thread leaves the clock when the guard is dropped"]
    pub fn enter(&self) -> Entered {
        Entered::new(Source::Held(self.clone()))
    }
}

impl Default for Held {
    fn default() -> Held {
        Held::new()
    }
}

/// Makes the calling thread read its time from `source` until the guard is dropped; `source` must not call
/// [`crate::now`].
///
/// A test on a paused Tokio runtime follows `|| tokio::time::Instant::now().into_std()`.
#[must_use = "the thread leaves the clock when the guard is dropped"]
pub fn follow(source: fn() -> Instant) -> Entered {
    Entered::new(Source::Other(source))
}

/// The calling thread reads another clock while this lives; then it reads the one from before.
pub struct Entered {
    before: Option<Source>,
    /// The guard belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl Entered {
    fn new(source: Source) -> Entered {
        Entered { before: SOURCE.replace(Some(source)), thread: PhantomData }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        SOURCE.set(self.before.take());
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests compare with the clock of the system")]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_held_clock_moves_only_when_it_is_moved() {
        let clock = Held::new();
        let _entered = clock.enter();
        let begin = crate::now();
        thread::sleep(Duration::from_millis(2));
        assert_eq!(crate::now(), begin);
        clock.advance(Duration::from_secs(3600));
        assert_eq!(crate::now() - begin, Duration::from_secs(3600));
    }

    #[test]
    fn the_coarse_clock_is_held_too() {
        let clock = Held::new();
        let _entered = clock.enter();
        let begin = crate::coarse_ns();
        clock.advance(Duration::from_nanos(7));
        assert_eq!(crate::coarse_ns() - begin, 7);
    }

    #[test]
    fn other_threads_keep_their_clocks_until_they_enter() {
        let clock = Held::new();
        let _entered = clock.enter();
        clock.advance(Duration::from_secs(3600));
        let there = clock.clone();
        let (outside, inside) = thread::spawn(move || {
            (crate::now(), {
                let _entered = there.enter();
                crate::now()
            })
        })
        .join()
        .unwrap();
        assert_eq!(inside, clock.now());
        assert!(outside < inside);
    }

    #[test]
    fn leaving_restores_the_clock_from_before() {
        let (outer, inner) = (Held::new(), Held::new());
        let _outer = outer.enter();
        inner.advance(Duration::from_secs(1));
        {
            let _inner = inner.enter();
            assert_eq!(crate::now(), inner.now());
        }
        assert_eq!(crate::now(), outer.now());
    }

    #[test]
    fn a_thread_can_follow_another_source() {
        fn fixed() -> Instant {
            static FIXED: LazyLock<Instant> = LazyLock::new(crate::system);
            *FIXED
        }
        let _entered = follow(fixed);
        assert_eq!(crate::now(), fixed());
    }
}
