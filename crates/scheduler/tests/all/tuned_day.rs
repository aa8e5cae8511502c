//! A simulated day of traffic: a model that tunes itself beside the same model with each fixed setting of a grid.

use std::time::Duration;

use alipes_scheduler::tuning::{Bounds, Objective, Outcome, Setting, Tuner};

use crate::common::day::{Day, Machine, Phase, Report, arrivals};
use crate::common::ms;

const OBJECTIVE: Objective = Objective { p99: Duration::from_millis(20) };

/// An execution takes 9 ms, and a quarter of a millisecond for each row.
const MACHINE: Machine =
    Machine { batch: Duration::from_millis(9), row: Duration::from_micros(250), largest: 32, instances: 2 };

const BOUNDS: Bounds = Bounds { queue_delay: Duration::from_millis(10), batch: 32, fewest_instances: 1, instances: 2 };

/// What a configuration without a word about batches means.
const DEFAULT: Setting = Setting { queue_delay: Duration::ZERO, batch: 32, instances: 2 };

/// Half a minute each, so that a day of a thousand queues' decisions a second is over in a second.
fn hours(count: u32) -> Duration {
    ms(30_000) * count
}

/// A day from midnight on: a nightly job of somebody else slows the machine; a ramp in the morning; dashboards at noon
/// that ask for twelve things at once; single requests in the afternoon; both in the evening, and the job again.
fn day() -> Vec<Phase> {
    vec![
        Phase { lasts: hours(6), singles: (3.0, 3.0), slowness: 2.0, ..Phase::default() },
        Phase { lasts: hours(3), singles: (20.0, 200.0), ..Phase::default() },
        Phase { lasts: hours(4), singles: (20.0, 20.0), groups: (8.0, 12, ms(4)), ..Phase::default() },
        Phase { lasts: hours(4), singles: (200.0, 200.0), ..Phase::default() },
        Phase { lasts: hours(2), singles: (20.0, 20.0), groups: (10.0, 12, ms(4)), ..Phase::default() },
        Phase { lasts: hours(3), singles: (200.0, 30.0), ..Phase::default() },
        Phase { lasts: hours(2), singles: (5.0, 5.0), slowness: 2.0, ..Phase::default() },
    ]
}

fn grid() -> impl Iterator<Item = Setting> {
    [0, 1, 2, 5, 10].into_iter().flat_map(|delay| {
        [8, 32]
            .into_iter()
            .flat_map(move |batch| [1, 2].map(move |instances| Setting { queue_delay: ms(delay), batch, instances }))
    })
}

fn tuner(start: Setting) -> Tuner {
    Tuner::new(OBJECTIVE, BOUNDS, start)
}

fn play(phases: &[Phase], start: Setting, tuner: Option<Tuner>) -> Report {
    let arrivals = arrivals(phases, 1);
    Day { phases, arrivals: &arrivals, machine: MACHINE, objective: OBJECTIVE }.play(start, tuner)
}

#[test]
fn a_tuned_day_keeps_its_objective_more_often_than_any_fixed_setting() {
    let phases = day();
    let (tuned, default) = (play(&phases, DEFAULT, Some(tuner(DEFAULT))), play(&phases, DEFAULT, None));
    println!("tuned: {tuned}\ndefault: {default}");
    for change in &tuned.changes {
        println!("  {:?} to {:?}, {:?}: {:?}", change.from, change.to, change.cause, change.outcome);
    }
    for setting in grid() {
        let fixed = play(&phases, setting, None);
        println!("{setting:?}: {fixed}");
        assert!(tuned.kept > fixed.kept, "{setting:?} keeps it in {} stretches, tuned {}", fixed.kept, tuned.kept);
    }
    assert!(tuned.late * 5 < default.late, "{} late, {} by default", tuned.late, default.late);
    assert!(tuned.computing < default.computing, "company saves computing");
    // Throughput: the same requests are answered, and no later.
    assert_eq!(tuned.answered, default.answered);
    assert!(tuned.ended < default.ended + OBJECTIVE.p99);
}

#[test]
fn in_steady_traffic_the_changes_die_out() {
    for phase in [day()[2], day()[3], Phase { singles: (3.0, 3.0), ..Phase::default() }] {
        let hour = play(&[Phase { lasts: ms(3_600_000), ..phase }], DEFAULT, Some(tuner(DEFAULT)));
        let begin = hour.begin.expect("the day has begun");
        let late = hour.changes.iter().filter(|change| change.at - begin > ms(1_800_000)).count();
        assert!(late <= 2, "{} changes in an hour, {late} of them in its second half", hour.changes.len());
    }
}

#[test]
fn small_batches_grow_in_a_rush_that_they_cannot_carry() {
    let small = Setting { batch: 2, ..DEFAULT };
    let rush = [Phase { lasts: ms(120_000), singles: (600.0, 600.0), ..Phase::default() }];
    let (tuned, fixed) = (play(&rush, small, Some(tuner(small))), play(&rush, small, None));
    assert!(tuned.last.is_some_and(|setting| setting.batch >= 8), "{:?}", tuned.last);
    assert_eq!(tuned.changes[0].outcome, Outcome::Kept);
    assert!(fixed.ended > tuned.ended + ms(10_000), "{:?} and {:?}", fixed.ended, tuned.ended);
    assert!(tuned.kept > fixed.kept + 8, "{tuned} and {fixed}");
}
