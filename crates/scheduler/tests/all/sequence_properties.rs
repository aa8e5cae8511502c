//! Random sequences, cancellations, time-outs, crashes and changes of instances against a slow model.
//!
//! The hall watches the promises at each step: nothing comes out twice, a sequence keeps its order and its slot, has
//! one request running at a time and shares its slot with nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::hall::{Hall, Step, policy};
use crate::common::ms;
use crate::common::stage::Place;
use alipes_scheduler::sequence::{SequencePolicy, Strategy as Rule};
use alipes_scheduler::{Queue, Reason};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    Submit { sequence: u64, start: bool, end: bool, key: u64, timeout: u64 },
    Pass(u64),
    Ask(usize),
    Finish(usize),
    Cancel(usize),
    Leave(usize),
    PutBack(usize),
    Lose(usize),
    Expire,
    Rearrange(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let timeout = prop_oneof![4 => Just(0), 1 => 1u64..50];
    let submit = (0u64..6, prop::bool::weighted(0.4), prop::bool::weighted(0.3), 0u64..2, timeout)
        .prop_map(|(sequence, start, end, key, timeout)| Event::Submit { sequence, start, end, key, timeout });
    prop_oneof![
        10 => submit,
        3 => (0u64..40).prop_map(Event::Pass),
        8 => (0usize..3).prop_map(Event::Ask),
        2 => (0usize..3).prop_map(Event::Finish),
        1 => (0usize..6).prop_map(Event::Cancel),
        1 => (0usize..20).prop_map(Event::Leave),
        1 => (0usize..3).prop_map(Event::PutBack),
        1 => (0usize..3).prop_map(Event::Lose),
        2 => Just(Event::Expire),
        1 => (1u8..8).prop_map(Event::Rearrange),
    ]
}

fn some_policy() -> impl Strategy<Value = SequencePolicy> {
    let direct = (1u32..4, 0u64..20, 0u8..3).prop_map(|(slots, delay, half)| Rule::Direct {
        slots,
        max_queue_delay: ms(delay),
        minimum_slot_utilization: f32::from(half) / 2.0,
    });
    let oldest = (1u32..5, 1u32..4, 0u64..20).prop_map(|(candidates, max_batch_size, delay)| Rule::Oldest {
        max_candidate_sequences: candidates,
        batching: crate::common::policy(max_batch_size, &[], ms(delay)),
    });
    prop_oneof![direct, oldest].prop_map(|strategy| SequencePolicy { max_idle: ms(100), ..policy(strategy) })
}

/// Plays the events. `open` is the slow model where neither time nor changes end sequences: the ids that go on.
fn play(hall: &mut Hall, events: &[Event], calm: bool) {
    let mut open: BTreeSet<u64> = BTreeSet::new();
    for event in events {
        match *event {
            Event::Submit { sequence, start, end, key, timeout } => {
                let timeout = if calm { Duration::ZERO } else { ms(timeout) };
                let step = Step { sequence, start, end, timeout, key, ..Step::default() };
                let accepted = hall.submit_step(step);
                if calm {
                    assert_eq!(accepted.is_ok(), start || open.contains(&sequence), "{sequence} of {open:?}");
                }
                if accepted.is_ok() && sequence > 0 {
                    if end {
                        open.remove(&sequence)
                    } else {
                        open.insert(sequence)
                    };
                }
            }
            Event::Pass(milliseconds) => hall.now += ms(if calm { milliseconds.min(1) } else { milliseconds }),
            Event::Ask(instance) if hall.can_move(instance % hall.places.len()) => {
                hall.ask(instance % hall.places.len());
            }
            Event::Finish(instance) => {
                let instance = instance % hall.places.len();
                if matches!(hall.places[instance], Place::RunningUntil(moment) if moment <= hall.now) {
                    hall.finish(instance);
                }
            }
            Event::PutBack(instance) => {
                let instance = instance % hall.places.len();
                if matches!(hall.places[instance], Place::RunningUntil(_)) {
                    hall.put_back(instance);
                }
            }
            Event::Cancel(id) if !calm => hall.cancel(id * 3),
            Event::Leave(id) if !calm => hall.leave(id),
            Event::Lose(instance) if !calm => hall.lose(instance % hall.places.len()),
            Event::Expire => hall.expire(),
            Event::Rearrange(mask) if !calm => {
                let instances: Vec<usize> = (0..3).filter(|bit| mask & (1 << bit) != 0).collect();
                hall.rearrange(&instances);
            }
            _ => {}
        }
        assert_someone_comes(hall);
    }
}

/// No lost wake-up: where an instance is idle, none of the others waits for a sequence of its own to run.
fn assert_someone_comes(hall: &mut Hall) {
    let coming = hall.places.iter().any(|place| *place != Place::Idle);
    assert!(coming || hall.queue.waiting() == 0 || hall.alarm.is_some(), "nobody comes: {:?}", hall.queue);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_is_lost_whatever_happens(rule in some_policy(), instances in 1usize..3, events in prop::collection::vec(event(), 0..80)) {
        let slots = rule.slots() * instances;
        let mut hall = Hall::new(rule, instances, ms(7));
        play(&mut hall, &events, false);
        hall.rearrange(&(0..instances).collect::<Vec<_>>());
        // Time runs out for all: silence frees the slots, the backlog runs, and then nothing is left.
        hall.run_until(ms(60_000));
        prop_assert_eq!((hall.inside(), hall.queue.waiting(), hall.queue.live()), (0, 0, 0));
        prop_assert!(hall.queue.is_quiet() && hall.alarm.is_none());
        // Every slot is there again, and no more than before.
        let before = hall.executed.len();
        for sequence in 0..=slots as u64 {
            hall.submit(100 + sequence, true, false).unwrap();
        }
        hall.run_until(ms(60_090));
        let began: usize = hall.executed[before..].iter().map(|(_, _, batch)| batch.len()).sum();
        prop_assert_eq!(began, slots);
    }

    #[test]
    fn ids_go_on_until_their_end_where_nobody_interferes(rule in some_policy(), events in prop::collection::vec(event(), 0..60)) {
        let mut hall = Hall::new(SequencePolicy { max_idle: ms(1 << 30), ..rule }, 2, ms(7));
        play(&mut hall, &events, true);
        let reasons: BTreeMap<usize, Option<Reason>> = hall.dropped.iter().copied().collect();
        prop_assert!(reasons.is_empty());
    }
}
