//! How long a model's executions take, leaving out those that were held up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alipes_spec::ExecutionThreads;
use arc_swap::ArcSwap;

use super::sizes::Sizes;

/// An execution up to this long may run on a network thread. A hand-over to another thread and back costs 10 to 40 µs
/// on two cores, so at a few hundred microseconds nothing is gained any more, while the thread's other connections
/// would begin to notice.
const QUICK: Duration = Duration::from_micros(300);

/// Most executions that others are compared with: one that is larger in each direction takes the place of another, so
/// one is enough where requests have one shape.
const MOST_QUICK: usize = 8;

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
    // The largest executions that were quick, likewise; none covers another.
    quick: ArcSwap<Vec<Sizes>>,
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

    /// Takes note of the sizes of a batch, which took so long; none where they do not tell that.
    pub fn note_batch(&self, time: Duration, sizes: Option<Sizes>) {
        let Some(sizes) = sizes.filter(|sizes| time <= QUICK && !self.was_quick(sizes)) else { return };
        let before = self.quick.load();
        let mut quick: Vec<Sizes> = before.iter().filter(|known| !sizes.cover(known)).cloned().collect();
        if quick.len() == MOST_QUICK {
            quick.remove(0);
        }
        quick.push(sizes);
        self.quick.store(Arc::new(quick));
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

    /// Whether a network thread may execute a batch of these sizes, unless it is forced to execute all: what nine of
    /// ten executions take says nothing of one that is larger in any direction. None where sizes do not tell.
    pub fn runs_here(&self, sizes: Option<&Sizes>) -> bool {
        self.threads == ExecutionThreads::Network || sizes.is_some_and(|sizes| self.was_quick(sizes))
    }

    /// Whether something was quick that is as large in every direction.
    fn was_quick(&self, sizes: &Sizes) -> bool {
        self.quick.load().iter().any(|quick| quick.cover(sizes))
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
    use alipes_engine::InputView;
    use alipes_protocol::Datatype;

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

    fn sizes(rows: u32, row: i64) -> Sizes {
        let (shape, data) = ([rows.into(), row], vec![0; rows as usize * row as usize]);
        let view = InputView { index: 0, datatype: Datatype::Uint8, shape: &shape, data: &data };
        Sizes::of_views(true, rows, &[view], &[0])
    }

    #[test]
    fn what_was_not_seen_to_be_quick_is_not_for_a_network_thread_unless_all_is() {
        for (threads, runs) in [(ExecutionThreads::Network, true), (ExecutionThreads::Measured, false)] {
            assert_eq!(Pace::of(threads).runs_here(Some(&sizes(1, 1))), runs);
            assert_eq!(Pace::of(threads).runs_here(None), runs);
        }
    }

    #[test]
    fn a_batch_is_compared_with_those_that_were_quick() {
        let pace = Pace::default();
        let runs_here = |rows, row| pace.runs_here(Some(&sizes(rows, row)));
        pace.note_batch(LONG, Some(sizes(8, 8)));
        assert!(!runs_here(1, 1));
        pace.note_batch(SHORT, Some(sizes(8, 2)));
        pace.note_batch(SHORT, Some(sizes(1, 9)));
        pace.note_batch(SHORT, None);
        assert!(runs_here(8, 2) && runs_here(7, 1) && runs_here(1, 9));
        assert!(!runs_here(2, 3) && !runs_here(1, 10) && !runs_here(9, 1));
        assert!(!pace.runs_here(None));
    }

    #[test]
    fn few_executions_are_remembered_and_none_that_another_covers() {
        let (pace, remembered) = (Pace::default(), |pace: &Pace| pace.quick.load().len());
        for row in 1..100 {
            pace.note_batch(SHORT, Some(sizes(3, row)));
        }
        pace.note_batch(SHORT, Some(sizes(2, 5)));
        assert_eq!(remembered(&pace), 1);
        for row in 1..100 {
            pace.note_batch(SHORT, Some(sizes(200 - row, 100 + i64::from(row))));
        }
        assert_eq!(remembered(&pace), MOST_QUICK);
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
