//! How long a model's executions take, leaving out those that were held up.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use alipes_protocol::limits::EXECUTED_HERE_BYTES;
use alipes_spec::ExecutionThreads;

/// An execution up to this long may run on a network thread. A hand-over to another thread and back costs 10 to 40 µs
/// on two cores, so at a few hundred microseconds nothing is gained any more, while the thread's other connections
/// would begin to notice.
const QUICK: Duration = Duration::from_micros(300);

/// How many times as many bytes as an execution that was quick a network thread executes: five milliseconds, where the
/// time grows as they do.
const LARGER: usize = 16;

/// One model takes most of the time where the others together take at most one part in so many of its own: what they
/// could do for other requests meanwhile is no more than that.
const SMALL_SHARE: u32 = 3;

/// By how much a longer execution than an estimate raises it, and a shorter one lowers it, in 1/64. Nine to one makes
/// the estimate settle where one execution in ten is longer, as much up as down where half of them are. A mean would
/// not do: times are those of the clock, and on a busy machine a single execution that the system interrupts lasts as
/// long as hundreds of others.
#[derive(Clone, Copy)]
struct Steps {
    up: u64,
    down: u64,
}

const NINE_OF_TEN: Steps = Steps { up: 9, down: 1 };
const HALF: Steps = Steps { up: 4, down: 4 };

/// Two estimates of how long a model's executions take: nine of ten stay below one, half of them below the other.
#[derive(Debug, Default)]
pub struct Pace {
    // Nanoseconds; 0 before the first execution. Instances write them without a lock: a lost update costs nothing.
    estimate_ns: AtomicU64,
    usual_ns: AtomicU64,
    // Bytes of the largest batch whose execution was quick, likewise.
    quick_bytes: AtomicUsize,
    threads: ExecutionThreads,
}

impl Pace {
    /// The pace of a model that executes on these threads.
    pub fn of(threads: ExecutionThreads) -> Pace {
        Pace { threads, ..Pace::default() }
    }

    /// Takes note of an execution.
    pub fn note(&self, time: Duration) {
        let now = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
        for (estimate_ns, steps) in [(&self.estimate_ns, NINE_OF_TEN), (&self.usual_ns, HALF)] {
            let before = estimate_ns.load(Ordering::Relaxed);
            estimate_ns.store(moved(before, now, steps), Ordering::Relaxed);
        }
    }

    /// Takes note of the bytes of a batch, which took so long.
    pub fn note_batch(&self, time: Duration, bytes: usize) {
        if time <= QUICK && bytes > self.quick_bytes.load(Ordering::Relaxed) {
            self.quick_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// What nine of ten executions stay below; none before the first.
    pub fn estimate(&self) -> Option<Duration> {
        known(&self.estimate_ns)
    }

    /// Whether models may run on a network thread one right after the other; false before the first execution of any.
    pub fn are_quick<'a>(paces: impl IntoIterator<Item = &'a Pace>) -> bool {
        let estimates: Option<Duration> = paces.into_iter().map(|pace| pace.expected(&pace.estimate_ns)).sum();
        estimates.is_some_and(|together| together <= QUICK)
    }

    /// What nine of ten executions stay below of the one model that takes most of the time that models need one right
    /// after the other, each so many times; none where there is no such model, and before the first execution of any.
    ///
    /// Its long executions are those of large batches, and are compared with as many of the others as a large batch
    /// needs, each taking what half of them stay below: of many short executions in a row only the first finds its
    /// memory in no cache.
    pub fn of_the_long_one<'a>(paces: impl IntoIterator<Item = (&'a Pace, u32)>) -> Option<Duration> {
        let (mut once, mut all, mut long) = (Duration::ZERO, Duration::ZERO, (Duration::ZERO, Duration::ZERO, 0));
        for (pace, times) in paces {
            let usual = pace.expected(&pace.usual_ns)?;
            once += usual;
            all += usual * times;
            long = long.max((usual, pace.expected(&pace.estimate_ns)?, times));
        }
        let (usual, estimate, times) = long;
        let is_so = once - usual <= QUICK && (all - usual * times) * SMALL_SHARE <= estimate && times == 1;
        is_so.then_some(estimate)
    }

    /// An estimate, unless the threads do not depend on it.
    fn expected(&self, estimate_ns: &AtomicU64) -> Option<Duration> {
        match self.threads {
            ExecutionThreads::Measured => known(estimate_ns),
            ExecutionThreads::Network => Some(Duration::ZERO),
            ExecutionThreads::Pool => None,
        }
    }

    /// Whether a network thread may execute a batch of so many bytes, unless it is forced to execute all: what nine of
    /// ten executions take says nothing of one that is far larger.
    pub fn runs_here(&self, bytes: usize) -> bool {
        let is_like_others = || bytes / LARGER <= self.quick_bytes.load(Ordering::Relaxed);
        bytes <= EXECUTED_HERE_BYTES || is_like_others() || self.threads == ExecutionThreads::Network
    }

    /// Whether the model may run on a network thread; false before its first execution.
    pub fn is_quick(&self) -> bool {
        Pace::are_quick([self])
    }
}

/// An estimate; none before the first execution.
fn known(estimate_ns: &AtomicU64) -> Option<Duration> {
    let estimate_ns = estimate_ns.load(Ordering::Relaxed);
    (estimate_ns != 0).then(|| Duration::from_nanos(estimate_ns))
}

/// An estimate that one more execution has moved.
fn moved(before: u64, now: u64, steps: Steps) -> u64 {
    if before == 0 {
        now
    } else if now > before {
        before + (before / 64).saturating_mul(steps.up).max(1).min(now - before)
    } else {
        before - (before / 64 * steps.down).min(before - now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const LONG: Duration = Duration::from_millis(50);

    fn noted(times: impl IntoIterator<Item = Duration>) -> Pace {
        let pace = Pace::default();
        times.into_iter().for_each(|time| pace.note(time));
        pace
    }

    #[test]
    fn forced_threads_ignore_the_estimate() {
        for (threads, is_quick) in [(ExecutionThreads::Network, true), (ExecutionThreads::Pool, false)] {
            let pace = Pace::of(threads);
            assert_eq!(pace.is_quick(), is_quick);
            pace.note(if is_quick { Duration::from_secs(1) } else { Duration::from_nanos(1) });
            assert_eq!(pace.is_quick(), is_quick);
        }
    }

    #[test]
    fn a_large_batch_is_not_for_a_network_thread_unless_all_are() {
        for (threads, runs) in [(ExecutionThreads::Network, true), (ExecutionThreads::Measured, false)] {
            assert!(Pace::of(threads).runs_here(EXECUTED_HERE_BYTES));
            assert_eq!(Pace::of(threads).runs_here(EXECUTED_HERE_BYTES + 1), runs);
        }
    }

    #[test]
    fn a_batch_is_large_beside_those_that_were_quick() {
        let pace = Pace::default();
        pace.note_batch(LONG, EXECUTED_HERE_BYTES);
        assert!(!pace.runs_here(2 * EXECUTED_HERE_BYTES));
        pace.note_batch(SHORT, EXECUTED_HERE_BYTES / 2);
        pace.note_batch(SHORT, 10);
        let most = LARGER * EXECUTED_HERE_BYTES / 2;
        assert!(pace.runs_here(most) && !pace.runs_here(most + LARGER));
    }

    #[test]
    fn an_unknown_model_is_not_quick() {
        assert!(!noted([]).is_quick());
    }

    #[test]
    fn one_model_takes_most_of_the_time_where_the_others_are_quick_beside_it() {
        let (short, long) = (noted([SHORT]), noted([LONG]));
        let found = |paces: &[(&Pace, u32)]| Pace::of_the_long_one(paces.iter().copied());
        let is_so = |paces: &[(&Pace, u32)]| found(paces).is_some();
        assert_eq!(found(&[(&short, 16), (&long, 1), (&short, 1)]), Some(LONG));
        assert!(!is_so(&[(&long, 1), (&long, 1)]));
        assert!(!is_so(&[(&short, 1), (&short, 1)]), "neither is long beside the other");
        // A long one for each request of a batch is not small, nor are many short ones.
        assert!(!is_so(&[(&long, 16), (&short, 1)]));
        assert!(!is_so(&[&[(&long, 1)][..], &[(&short, 1); 16]].concat()));
        assert!(!is_so(&[(&noted([]), 1), (&long, 1)]));
    }

    #[test]
    fn short_ones_that_are_now_and_then_held_up_are_small_beside_a_long_one() {
        let held_up = noted((0..1000).map(|number| if number % 5 == 4 { LONG } else { SHORT }));
        assert!(!held_up.is_quick());
        assert!(Pace::of_the_long_one([(&held_up, 16), (&noted([LONG]), 1)]).is_some());
    }

    #[test]
    fn models_are_quick_together_where_what_they_take_adds_up_to_little() {
        let (short, unknown) = (noted([SHORT]), noted([]));
        assert!(Pace::are_quick([&short; 3]));
        assert!(!Pace::are_quick([&short; 30]));
        assert!(!Pace::are_quick([&short, &unknown]));
    }

    #[test]
    fn a_slow_first_execution_is_forgotten() {
        let first = [LONG].into_iter();
        assert!(!noted(first.clone().chain([SHORT; 10])).is_quick());
        assert!(noted(first.chain([SHORT; 600])).is_quick());
    }

    #[test]
    fn an_execution_that_was_held_up_changes_nothing() {
        assert!(noted([SHORT; 20].into_iter().chain([LONG]).chain([SHORT])).is_quick());
        let now_and_then = (0..1000).map(|number| if number % 20 == 19 { LONG } else { SHORT });
        assert!(noted(now_and_then).is_quick());
    }

    #[test]
    fn a_model_that_is_often_long_does_not_run_on_a_network_thread() {
        let often = (0..1000).map(|number| if number % 4 == 3 { LONG } else { SHORT });
        assert!(!noted(often).is_quick());
    }
}
