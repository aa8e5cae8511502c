//! Random arrivals, sizes, keys, delays, cancellations and interleavings against the slow model.
//!
//! The stage compares every answer with the slow model as it plays: that a batch is exactly the head of the queue that
//! the rules name is checked there, at each step.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::stage::Stage;
use crate::common::{Request, ms, policy};
use alipes_scheduler::{DynamicPolicy, Queue};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    Submit { rows: u32, key: u64 },
    Pass(Duration),
    Step { instance: usize },
    Finish { instance: usize },
    Cancel { back: usize },
    Claim,
    Rearrange { keep: u8, more: usize },
    SetBatching { delay: Duration, batch: u32 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0u32..7, prop_oneof![5 => Just(0u64), 1 => Just(1)]).prop_map(|(rows, key)| Event::Submit { rows, key }),
        3 => (0u64..8).prop_map(|passed| Event::Pass(ms(passed))),
        8 => (0usize..4).prop_map(|instance| Event::Step { instance }),
        2 => (0usize..4).prop_map(|instance| Event::Finish { instance }),
        1 => (0usize..5).prop_map(|back| Event::Cancel { back }),
        2 => Just(Event::Claim),
        1 => (any::<u8>(), 0usize..3).prop_map(|(keep, more)| Event::Rearrange { keep, more }),
        1 => (0u64..12, 0u32..14).prop_map(|(delay, batch)| Event::SetBatching { delay: ms(delay), batch }),
    ]
}

fn some_policy() -> impl Strategy<Value = Option<DynamicPolicy>> {
    let dynamic = (1u32..12, 0u64..12)
        .prop_flat_map(|(max, delay)| vec(1..=max, 1..3).prop_map(move |preferred| policy(max, &preferred, ms(delay))));
    prop_oneof![1 => Just(None), 6 => dynamic.prop_map(Some)]
}

/// Plays the events, then lets everything run out; returns the numbers that were submitted and not cancelled.
fn play(stage: &mut Stage, events: &[Event], stop: bool) -> BTreeSet<usize> {
    let (mut submitted, mut accepted) = (0, BTreeSet::new());
    for event in events {
        match *event {
            Event::Submit { rows, key } => {
                accepted.insert(submitted);
                stage.submit(Request { id: submitted, rows, key });
                submitted += 1;
            }
            Event::Pass(passed) => stage.now += passed,
            Event::Step { instance } => stage.step(instance % stage.places.len()),
            Event::Finish { instance } => stage.finish(instance % stage.places.len()),
            Event::Cancel { back } => {
                let removed = submitted.checked_sub(back + 1).map(|id| stage.cancel(id)).unwrap_or_default();
                removed.iter().for_each(|request| assert!(accepted.remove(&request.id), "it was given back before"));
            }
            Event::Claim => stage.claim(),
            Event::SetBatching { delay, batch } => stage.set_batching(delay, batch),
            Event::Rearrange { keep, more } => stage.rearrange(|instance| keep & 1 << (instance % 8) != 0, more),
        }
        stage.assert_someone_comes();
    }
    if stop {
        stage.stop();
        stage.assert_someone_comes();
    }
    stage.run_out();
    accepted
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_runs_once_in_order_and_somebody_always_comes(
        policy in some_policy(), instances in 1usize..4, compute in 0u64..10,
        events in vec(event(), 0..60), stop: bool,
    ) {
        let mut stage = Stage::new(policy, instances, ms(compute));
        let accepted = play(&mut stage, &events, stop);
        let ran: Vec<usize> = stage.executed.iter().flat_map(|executed| executed.ids.iter().copied()).collect();
        prop_assert_eq!(ran, accepted.into_iter().collect::<Vec<_>>());
        prop_assert!(stage.queue.is_quiet());
    }

    #[test]
    fn no_batch_is_larger_than_allowed_or_mixes_keys(
        max in 1u32..12, delay in 0u64..12, instances in 1usize..4, events in vec(event(), 0..60),
    ) {
        let mut stage = Stage::new(Some(policy(max, &[max], ms(delay))), instances, ms(3));
        play(&mut stage, &events, false);
        let submits = events.iter().filter_map(|event| match event {
            Event::Submit { rows, key } => Some((u64::from(*rows), *key)),
            _ => None,
        });
        let requests: Vec<(u64, u64)> = submits.collect();
        for executed in &stage.executed {
            let batch: Vec<(u64, u64)> = executed.ids.iter().map(|&id| requests[id]).collect();
            prop_assert!(batch.len() == 1 || batch.iter().map(|(rows, _)| rows).sum::<u64>() <= u64::from(max));
            prop_assert!(batch.iter().all(|(_, key)| *key == batch[0].1));
        }
    }
}
