//! What a tuner decides, one fact each, from periods that the test makes up.

use std::time::{Duration, Instant};

use crate::common::{ms, zero};
use alipes_scheduler::tuning::{Bounds, Cause, LATENCY_BUCKETS, Objective, Observation, Outcome, Setting, Tuner};
use proptest::collection::vec;
use proptest::prelude::*;

const OBJECTIVE: Objective = Objective { p99: Duration::from_millis(16) };
const BOUNDS: Bounds = Bounds { queue_delay: Duration::from_millis(8), batch: 32, fewest_instances: 1, instances: 2 };
const START: Setting = Setting { queue_delay: Duration::ZERO, batch: 32, instances: 2 };

/// A second in which so many requests took so many milliseconds each, in batches of so many rows.
fn second(latencies: &[(usize, u64)], rows: u64, execution: Duration) -> Observation {
    let mut period = Observation { span: ms(1000), ..Observation::default() };
    latencies.iter().for_each(|&(milliseconds, requests)| period.latencies[milliseconds - 1] = requests);
    period.rows = latencies.iter().map(|(_, requests)| requests).sum();
    period.executions = period.rows / rows;
    period.computing = execution * period.executions as u32;
    period
}

fn quick() -> Observation {
    second(&[(6, 300)], 2, ms(2))
}

/// Single requests in idle instances, of which four in ten are late.
fn late() -> Observation {
    second(&[(6, 180), (20, 120)], 2, ms(2))
}

fn tuner() -> Tuner {
    Tuner::new(OBJECTIVE, BOUNDS, START)
}

/// Feeds one second after the other; returns the settings that were to be applied.
fn feed(tuner: &mut Tuner, now: &mut Instant, periods: &[Observation]) -> Vec<Setting> {
    let one = |period| {
        *now += ms(1000);
        tuner.observe(*now, period)
    };
    periods.iter().filter_map(one).collect()
}

#[test]
fn an_objective_met_without_time_to_spare_changes_nothing() {
    let mut tuner = tuner();
    assert_eq!(feed(&mut tuner, &mut zero(), &[second(&[(14, 300)], 2, ms(2)); 50]), []);
    assert_eq!(tuner.changes().count(), 0);
}

#[test]
fn a_small_miss_has_to_come_in_a_row_and_a_large_one_does_not() {
    let small = second(&[(6, 294), (20, 6)], 2, ms(2));
    let (mut now, mut once) = (zero(), tuner());
    let tight = second(&[(14, 300)], 2, ms(2));
    assert_eq!(feed(&mut once, &mut now, &[small, tight, small, tight]), []);
    assert_eq!(feed(&mut once, &mut now, &[small, small]).len(), 1);
    let mut long_met = tuner();
    assert_eq!(feed(&mut long_met, &mut now, &[[tight; 30], [tight; 30]].concat()), []);
    assert_eq!(feed(&mut long_met, &mut now, &[small, small]), []);
    assert_eq!(feed(&mut long_met, &mut now, &[small]).len(), 1);
    assert_eq!(feed(&mut tuner(), &mut now, &[late()]).len(), 1);
}

#[test]
fn few_requests_are_not_judged() {
    let (mut now, mut tuner) = (zero(), tuner());
    let (late, none) = (second(&[(20, 1)], 1, ms(2)), Observation::default());
    let now_and_then: Vec<_> = (0..100).map(|number| if number % 4 == 0 { late } else { none }).collect();
    assert_eq!(feed(&mut tuner, &mut now, &now_and_then), []);
    assert_eq!(feed(&mut tuner, &mut now, &[none; 100]), []);
    assert_eq!(feed(&mut tuner, &mut now, &[late; 10]).len(), 1, "ten late ones are clear");
}

#[test]
fn a_change_that_helps_stays_with_its_figures() {
    let (mut now, mut tuner) = (zero(), tuner());
    let to = Setting { queue_delay: ms(4), ..START };
    assert_eq!(feed(&mut tuner, &mut now, &[late()]), [to]);
    let change = *tuner.changes().next().expect("there is one");
    assert_eq!((change.from, change.to, change.at), (START, to, now));
    assert_eq!((change.cause, change.outcome, change.after), (Cause::MissedCompany, Outcome::Watched, None));
    assert_eq!(feed(&mut tuner, &mut now, &[late(), second(&[(14, 300)], 6, ms(2))]), []);
    let change = *tuner.changes().next().expect("there is one");
    assert_eq!((change.outcome, change.before.missed), (Outcome::Kept, 0.4));
    assert_eq!(change.after.map(|after| after.missed), Some(0.0));
    assert_eq!(tuner.setting(), to);
}

#[test]
fn a_change_that_does_not_help_is_undone_and_rests() {
    let (mut now, mut tuner) = (zero(), tuner());
    let to = Setting { queue_delay: ms(4), ..START };
    assert_eq!(feed(&mut tuner, &mut now, &[late(); 3]), [to, START]);
    assert_eq!(tuner.changes().next().expect("there is one").outcome, Outcome::Reverted);
    let next = feed(&mut tuner, &mut now, &[late(); 2]);
    assert!(next.first().is_some_and(|next| next.queue_delay.is_zero()), "another thing is tried: {next:?}");
}

#[test]
fn a_change_that_harms_is_undone_at_once() {
    let (mut now, mut tuner) = (zero(), tuner());
    let worse = second(&[(6, 100), (30, 200)], 2, ms(2));
    let to = Setting { queue_delay: ms(4), ..START };
    assert_eq!(feed(&mut tuner, &mut now, &[late(), worse]), [to, START]);
}

#[test]
fn time_to_spare_is_spent_where_it_saves_computing() {
    for (rows, outcome) in [(4, Outcome::Kept), (2, Outcome::Reverted)] {
        let (mut now, mut tuner) = (zero(), tuner());
        let changed = feed(&mut tuner, &mut now, &[quick(); 3]);
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert!(changed[0].queue_delay > Duration::ZERO);
        feed(&mut tuner, &mut now, &[quick(), second(&[(8, 300)], rows, ms(2))]);
        let change = tuner.changes().next().expect("there is one");
        assert_eq!((change.cause, change.outcome), (Cause::TimeToSpare, outcome));
    }
}

#[test]
fn waiting_too_long_for_company_is_cut_first() {
    let start = Setting { queue_delay: ms(8), ..START };
    let (mut now, mut tuner) = (zero(), Tuner::new(OBJECTIVE, BOUNDS, start));
    let slow = second(&[(20, 300)], 2, ms(9));
    assert_eq!(feed(&mut tuner, &mut now, &[slow]), [Setting { queue_delay: ms(4), ..start }]);
    assert_eq!(tuner.changes().next().expect("there is one").cause, Cause::LongWaits);
}

#[test]
fn full_batches_of_busy_instances_grow() {
    let start = Setting { batch: 4, ..START };
    let (mut now, mut tuner) = (zero(), Tuner::new(OBJECTIVE, BOUNDS, start));
    let mut busy = second(&[(30, 800)], 4, ms(10));
    busy.full = busy.executions;
    assert_eq!(feed(&mut tuner, &mut now, &[busy]), [Setting { batch: 8, ..start }]);
    assert_eq!(tuner.changes().next().expect("there is one").cause, Cause::FullBatches);
}

#[test]
fn what_has_failed_is_tried_more_and_more_rarely() {
    let (mut now, mut tuner) = (zero(), tuner());
    feed(&mut tuner, &mut now, &[late(); 600]);
    let early = tuner.made();
    feed(&mut tuner, &mut now, &[late(); 600]);
    let later = tuner.made() - early;
    assert!(2 * later < early, "{early} changes in the first ten minutes, {later} in the next");
    assert_eq!(tuner.changes().count() as u64, (early + later).min(100));
}

#[test]
fn other_bounds_end_what_is_watched_and_hold_at_once() {
    let (mut now, mut tuner) = (zero(), tuner());
    feed(&mut tuner, &mut now, &[late()]);
    assert_eq!(tuner.set_bounds(BOUNDS), None);
    let narrow = Bounds { queue_delay: ms(1), batch: 8, fewest_instances: 1, instances: 1 };
    let expected = Setting { queue_delay: ms(1), batch: 8, instances: 1 };
    assert_eq!(tuner.set_bounds(narrow), Some(expected));
    assert_eq!(tuner.changes().next().expect("there is one").outcome, Outcome::Undecided);
    assert_eq!((tuner.setting(), tuner.bounds()), (expected, narrow));
}

#[test]
fn where_all_instances_were_in_service_further_ones_are_as_well() {
    let more = Bounds { instances: 3, ..BOUNDS };
    assert_eq!(tuner().set_bounds(more), Some(Setting { instances: 3, ..START }));
    let mut of_two = Tuner::new(OBJECTIVE, BOUNDS, Setting { instances: 1, ..START });
    assert_eq!((of_two.set_bounds(more), of_two.setting().instances), (None, 1));
}

#[test]
fn a_fixed_number_of_instances_is_left_alone() {
    let bounds = Bounds { fewest_instances: 2, ..BOUNDS };
    let (mut now, mut tuner) = (zero(), Tuner::new(OBJECTIVE, bounds, START));
    let changed = feed(&mut tuner, &mut now, &[late(); 300]);
    assert!(changed.iter().all(|setting| setting.instances == 2) && !changed.is_empty());
}

fn period() -> impl Strategy<Value = Observation> {
    (vec(0u64..200, LATENCY_BUCKETS), 0u64..50, 1u64..40, 0u64..30, 0usize..200).prop_map(
        |(counts, refused, rows, computing, waiting)| {
            let mut period = Observation { span: ms(1000), refused, waiting, ..Observation::default() };
            period.latencies.iter_mut().zip(counts).for_each(|(latency, count)| *latency = count);
            period.rows = period.latencies.iter().sum();
            period.executions = period.rows.div_ceil(rows);
            period.full = period.executions / 2;
            period.computing = ms(computing) * period.executions as u32;
            period
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_setting_is_within_bounds_and_every_change_begins_where_the_last_ended(
        periods in vec(prop_oneof![Just(Observation::default()), period(), Just(late()), Just(quick())], 0..200),
    ) {
        let (mut now, mut tuner) = (zero(), tuner());
        for period in &periods {
            now += ms(1000);
            let before = tuner.setting();
            let changed = tuner.observe(now, period);
            prop_assert_ne!(changed, Some(before));
            prop_assert_eq!(changed.unwrap_or(before), tuner.setting());
            prop_assert_eq!(BOUNDS.clamp(tuner.setting()), tuner.setting());
        }
        let mut at = START;
        for change in tuner.changes() {
            prop_assert_eq!(change.from, at);
            at = if matches!(change.outcome, Outcome::Kept | Outcome::Watched) { change.to } else { change.from };
        }
        prop_assert_eq!(at, tuner.setting());
    }
}
