//! Live sequences on a clock that the test moves: who may go on, who has the turn, whose time is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use alipes_scheduler::streams::{Flags, Found, NextRequest, NotPut, Refusal, Streams};
use proptest::collection::vec;
use proptest::prelude::*;

const GO_ON: Flags = Flags { start: false, end: false };
const START: Flags = Flags { start: true, end: false };
const END: Flags = Flags { start: false, end: true };
const IDLE: Duration = Duration::from_millis(100);

/// The state of a sequence is what it has seen.
type Seen = Vec<u32>;

struct Stage {
    now: Instant,
    streams: Streams<u64, Seen, u32>,
}

impl Stage {
    fn new(limit: usize) -> Stage {
        Stage { now: Instant::now(), streams: Streams::new(limit, IDLE) }
    }

    fn enter(&mut self, key: u64, flags: Flags, work: u32) -> Result<Option<usize>, Refusal> {
        self.streams.enter(self.now, key, flags, work).map_err(|(refusal, returned)| {
            assert_eq!(returned, work);
            refusal
        })
    }

    /// One turn of a slot: what its request finds of those before it.
    fn step(&mut self, place: usize) -> Option<(Seen, u32)> {
        let NextRequest { state, work } = self.streams.take(place)?;
        let seen = state.clone();
        self.streams.give_back(self.now, place, [state, vec![work]].concat());
        Some((seen, work))
    }

    /// A request that has its turn at once: what it finds.
    fn run(&mut self, key: u64, flags: Flags, work: u32) -> Result<Seen, Refusal> {
        let place = self.enter(key, flags, work)?.expect("the slot is at rest");
        let (seen, mine) = self.step(place).expect("the request waits");
        assert_eq!((mine, self.step(place)), (work, None));
        Ok(seen)
    }

    fn reap(&mut self) -> (usize, Option<Instant>) {
        let mut gone = Vec::new();
        let next = self.streams.reap(self.now, &mut gone);
        (gone.len(), next)
    }
}

#[test]
fn a_request_finds_what_those_before_it_in_its_sequence_have_left() {
    let mut stage = Stage::new(10);
    assert_eq!(stage.run(7, START, 1), Ok(vec![]));
    assert_eq!(stage.run(8, START, 2), Ok(vec![]));
    assert_eq!(stage.run(7, GO_ON, 3), Ok(vec![1]));
    assert_eq!(stage.run(8, GO_ON, 4), Ok(vec![2]));
    assert_eq!(stage.run(7, GO_ON, 5), Ok(vec![1, 3]));
}

#[test]
fn a_sequence_that_nobody_started_is_refused() {
    let mut stage = Stage::new(10);
    assert_eq!(stage.run(7, GO_ON, 1), Err(Refusal::NotStarted));
    assert_eq!(stage.run(7, END, 1), Err(Refusal::NotStarted));
    assert_eq!(stage.streams.live(), 0);
}

#[test]
fn an_end_frees_the_slot_after_its_turn() {
    let mut stage = Stage::new(1);
    stage.run(7, START, 1).unwrap();
    assert_eq!(stage.run(8, START, 2), Err(Refusal::Full));
    assert_eq!(stage.run(7, END, 3), Ok(vec![1]));
    assert_eq!(stage.streams.live(), 0);
    assert_eq!(stage.run(7, GO_ON, 4), Err(Refusal::NotStarted));
    assert_eq!(stage.run(8, START, 5), Ok(vec![]));
}

#[test]
fn a_sequence_of_one_request_starts_and_ends_at_once() {
    let mut stage = Stage::new(1);
    for work in 0..3 {
        assert_eq!(stage.run(u64::from(work), Flags { start: true, end: true }, work), Ok(vec![]));
    }
}

#[test]
fn a_start_in_the_midst_of_a_sequence_begins_anew() {
    let mut stage = Stage::new(1);
    stage.run(7, START, 1).unwrap();
    assert_eq!(stage.run(7, START, 2), Ok(vec![]));
    assert_eq!(stage.run(7, GO_ON, 3), Ok(vec![2]));
}

#[test]
fn requests_wait_in_order_while_their_slot_is_driven() {
    let mut stage = Stage::new(2);
    let place = stage.enter(7, START, 1).unwrap().unwrap();
    assert_eq!(stage.enter(7, GO_ON, 2), Ok(None));
    let NextRequest { state, work } = stage.streams.take(place).unwrap();
    assert_eq!((state, work), (vec![], 1));
    assert_eq!(stage.enter(7, END, 3), Ok(None));
    assert_eq!(stage.enter(7, GO_ON, 4), Err(Refusal::NotStarted));
    assert_eq!(stage.enter(7, START, 5), Ok(None));
    assert_eq!(stage.streams.waiting(), 3);
    stage.streams.give_back(stage.now, place, vec![1]);
    let played: Vec<_> = std::iter::from_fn(|| stage.step(place)).collect();
    assert_eq!(played, [(vec![1], 2), (vec![1, 2], 3), (vec![], 5)]);
    assert_eq!((stage.streams.live(), stage.streams.waiting()), (1, 0));
}

#[test]
fn a_silent_sequence_is_over_to_the_moment() {
    let mut stage = Stage::new(10);
    stage.run(7, START, 1).unwrap();
    stage.now += IDLE - Duration::from_nanos(1);
    assert_eq!(stage.run(7, GO_ON, 2), Ok(vec![1]));
    stage.now += IDLE;
    assert_eq!(stage.run(7, GO_ON, 3), Err(Refusal::NotStarted));
    assert_eq!(stage.run(7, START, 4), Ok(vec![]));
}

#[test]
fn slots_of_silent_sequences_come_back_in_time_and_those_of_others_stay() {
    let mut stage = Stage::new(10);
    assert_eq!(stage.reap(), (0, None));
    stage.run(7, START, 1).unwrap();
    let first = stage.now;
    stage.now += IDLE / 2;
    stage.run(8, START, 2).unwrap();
    assert_eq!(stage.reap(), (0, Some(first + IDLE)));
    stage.run(7, GO_ON, 3).unwrap();
    stage.now = first + IDLE;
    assert_eq!(stage.reap(), (0, Some(first + IDLE + IDLE / 2)));
    stage.now += IDLE / 2;
    assert_eq!(stage.reap(), (2, None));
    assert_eq!(stage.streams.live(), 0);
}

#[test]
fn slots_of_silent_sequences_make_room_for_new_ones() {
    let mut stage = Stage::new(2);
    stage.run(1, START, 1).unwrap();
    stage.run(2, START, 2).unwrap();
    assert_eq!(stage.run(3, START, 3), Err(Refusal::Full));
    stage.now += IDLE;
    assert_eq!(stage.run(3, START, 3), Ok(vec![]));
    assert_eq!(stage.streams.live(), 1);
}

#[test]
fn a_sequence_is_not_silent_while_a_request_has_its_turn() {
    let mut stage = Stage::new(1);
    let place = stage.enter(7, START, 1).unwrap().unwrap();
    let NextRequest { state, .. } = stage.streams.take(place).unwrap();
    stage.now += 10 * IDLE;
    assert_eq!(stage.reap(), (0, Some(stage.now + IDLE)));
    stage.streams.give_back(stage.now, place, state);
    assert_eq!(stage.streams.take(place), None);
    assert_eq!(stage.run(7, GO_ON, 2), Ok(vec![]));
}

#[test]
fn a_state_is_found_between_the_requests_of_a_sequence() {
    let mut stage = Stage::new(10);
    assert_eq!(stage.streams.find(stage.now, &1), Found::None);
    let place = stage.enter(1, START, 10).unwrap().unwrap();
    assert_eq!(stage.streams.find(stage.now, &1), Found::Busy, "a request waits");
    let turn = stage.streams.take(place).unwrap();
    assert_eq!(stage.streams.find(stage.now, &1), Found::Busy, "the state is away");
    stage.streams.give_back(stage.now, place, [turn.state, vec![10]].concat());
    assert_eq!(stage.streams.find(stage.now, &1), Found::State(&vec![10]));
    assert_eq!(stage.streams.take(place), None);
    assert_eq!(stage.streams.find(stage.now, &1), Found::State(&vec![10]));
    stage.now += IDLE;
    assert_eq!(stage.streams.find(stage.now, &1), Found::None, "it has gone silent");
}

#[test]
fn a_sequence_that_has_ended_has_no_state() {
    let mut stage = Stage::new(10);
    let place = stage.enter(1, Flags { start: true, end: true }, 10).unwrap().unwrap();
    stage.step(place).unwrap();
    assert_eq!(stage.streams.find(stage.now, &1), Found::None);
}

#[test]
fn a_sequence_goes_on_from_a_state_that_was_put() {
    let mut stage = Stage::new(1);
    assert_eq!(stage.streams.put(stage.now, 1, vec![7]), Ok(vec![]), "it need not be live");
    assert_eq!(stage.run(1, GO_ON, 10), Ok(vec![7]));
    assert_eq!(stage.streams.put(stage.now, 1, vec![8]), Ok(vec![7, 10]));
    assert_eq!(stage.run(1, GO_ON, 11), Ok(vec![8]));
    assert_eq!(stage.streams.put(stage.now, 2, vec![9]), Err((NotPut::Full, vec![9])));
    let place = stage.enter(1, GO_ON, 12).unwrap().unwrap();
    assert_eq!(stage.streams.put(stage.now, 1, vec![9]), Err((NotPut::Busy, vec![9])));
    stage.step(place).unwrap();
    assert_eq!(stage.step(place), None);
    stage.now += IDLE;
    assert_eq!(stage.streams.put(stage.now, 2, vec![9]), Ok(vec![]), "the silent one makes room");
    stage.now += IDLE / 2;
    assert_eq!(stage.run(2, GO_ON, 13), Ok(vec![9]), "what was put is no silence");
    stage.now += IDLE;
    assert_eq!(stage.reap(), (1, None));
}

#[test]
fn a_state_put_after_the_end_continues_a_driven_sequence() {
    let mut stage = Stage::new(10);
    let place = stage.enter(1, Flags { start: true, end: true }, 10).unwrap().unwrap();
    stage.step(place).unwrap();
    assert_eq!(stage.streams.put(stage.now, 1, vec![7]), Ok(vec![10]));
    assert_eq!(stage.step(place), None);
    assert_eq!(stage.run(1, GO_ON, 11), Ok(vec![7]));
}

#[test]
fn a_sequence_is_ended_between_its_requests() {
    let mut stage = Stage::new(1);
    assert_eq!(stage.streams.end(&1), Ok(None));
    let place = stage.enter(1, START, 10).unwrap().unwrap();
    assert_eq!(stage.streams.end(&1), Err(NotPut::Busy));
    stage.step(place).unwrap();
    assert_eq!(stage.streams.end(&1), Err(NotPut::Busy), "its driver finds it there");
    assert_eq!(stage.step(place), None);
    assert_eq!(stage.streams.end(&1), Ok(Some(vec![10])));
    assert_eq!(stage.run(1, GO_ON, 11), Err(Refusal::NotStarted));
    assert_eq!(stage.run(2, START, 12), Ok(vec![]), "its slot is free");
}

#[test]
fn ten_thousand_sequences_live_side_by_side() {
    let mut stage = Stage::new(10_000);
    for work in 0..3 {
        for key in 0..10_000 {
            let seen = stage.run(key, if work == 0 { START } else { GO_ON }, work).unwrap();
            assert_eq!(seen, (0..work).collect::<Vec<_>>());
        }
    }
    assert_eq!((stage.streams.live(), stage.run(10_000, START, 0)), (10_000, Err(Refusal::Full)));
    stage.now += IDLE;
    assert_eq!(stage.reap(), (10_000, None));
}

/// The rules in few lines: what each sequence has seen, when it was last heard of, what waits in it.
#[derive(Default)]
struct Slow {
    sequences: BTreeMap<u64, SlowSequence>,
}

struct SlowSequence {
    seen: Seen,
    heard: Instant,
    open: bool,
    line: VecDeque<(Flags, u32)>,
}

impl Slow {
    fn enter(&mut self, now: Instant, limit: usize, key: u64, flags: Flags, work: u32) -> Result<(), Refusal> {
        self.sequences.retain(|_, one| now < one.heard + IDLE || !one.line.is_empty());
        let is_full = self.sequences.len() >= limit;
        match self.sequences.get(&key) {
            Some(one) if flags.start || one.open => {}
            None if flags.start && !is_full => {}
            None if flags.start => return Err(Refusal::Full),
            _ => return Err(Refusal::NotStarted),
        }
        let new = || SlowSequence { seen: vec![], heard: now, open: true, line: VecDeque::new() };
        let one = self.sequences.entry(key).or_insert_with(new);
        (one.open, one.heard) = (!flags.end, now);
        one.line.push_back((flags, work));
        Ok(())
    }

    fn step(&mut self, now: Instant, key: u64) -> Option<(Seen, u32)> {
        let one = self.sequences.get_mut(&key)?;
        let (flags, work) = one.line.pop_front()?;
        let seen = if flags.start { vec![] } else { std::mem::take(&mut one.seen) };
        one.seen = [seen.clone(), vec![work]].concat();
        one.heard = now;
        if one.line.is_empty() && !one.open {
            self.sequences.remove(&key);
        }
        Some((seen, work))
    }
}

#[derive(Clone, Debug)]
enum Event {
    Enter { key: u64, flags: Flags },
    Step { key: u64 },
    Pass { ms: u64 },
    Reap,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (0_u64..5, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(key, start, end)| Event::Enter { key, flags: Flags { start, end } }),
        6 => (0_u64..5).prop_map(|key| Event::Step { key }),
        2 => (0_u64..120).prop_map(|ms| Event::Pass { ms }),
        1 => Just(Event::Reap),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sequences_go_as_in_the_slow_model(limit in 1_usize..5, events in vec(event(), 0..80)) {
        let (mut stage, mut slow) = (Stage::new(limit), Slow::default());
        let mut driven = BTreeMap::new();
        for (work, event) in (0..).zip(events) {
            match event {
                Event::Enter { key, flags } => {
                    let entered = stage.enter(key, flags, work);
                    let expected = slow.enter(stage.now, limit, key, flags, work);
                    prop_assert_eq!(entered.map(drop), expected);
                    if let Ok(Some(place)) = entered {
                        prop_assert_eq!(driven.insert(key, place), None);
                    }
                }
                Event::Step { key } => {
                    let played = driven.get(&key).and_then(|&place| stage.step(place));
                    prop_assert_eq!(&played, &slow.step(stage.now, key));
                    // The driver of a slot goes on until there is nothing to be taken.
                    if let Some(&place) = driven.get(&key)
                        && slow.sequences.get(&key).is_none_or(|one| one.line.is_empty())
                    {
                        prop_assert_eq!(stage.step(place), None);
                        driven.remove(&key);
                    }
                }
                Event::Pass { ms } => stage.now += Duration::from_millis(ms),
                Event::Reap => drop(stage.reap()),
            }
            let waiting: usize = slow.sequences.values().map(|one| one.line.len()).sum();
            prop_assert_eq!(stage.streams.waiting(), waiting);
        }
        // In the end everything comes out, and every slot comes back.
        for (key, place) in driven {
            while let Some(played) = stage.step(place) {
                prop_assert_eq!(Some(played), slow.step(stage.now, key));
            }
        }
        stage.now += IDLE;
        stage.reap();
        prop_assert_eq!((stage.streams.live(), stage.streams.waiting()), (0, 0));
    }
}
