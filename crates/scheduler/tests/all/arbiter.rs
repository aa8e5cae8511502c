//! The rules by which instances share counted resources.

use std::collections::BTreeMap;

use alipes_scheduler::{Arbiter, Demand, Impossible};
use proptest::prelude::*;

fn takes(name: &str, count: u32) -> Demand {
    Demand { name: name.to_owned(), global: false, count }
}

fn limited(limits: &[(&str, u32)]) -> Arbiter {
    Arbiter::new(limits.iter().map(|&(name, count)| (name.to_owned(), count)))
}

/// Whether one that asks is let in at once.
fn ask(arbiter: &mut Arbiter, member: usize) -> bool {
    arbiter.ask(member);
    all_let_in(arbiter).contains(&member)
}

/// Who is let in, in this order, now that something was given back.
fn all_let_in(arbiter: &mut Arbiter) -> Vec<usize> {
    std::iter::from_fn(|| arbiter.let_in()).collect()
}

#[test]
fn what_is_there_is_granted_at_once_and_what_is_not_is_waited_for() {
    let mut arbiter = limited(&[("R", 2)]);
    let members: Vec<usize> = (0..3).map(|_| arbiter.admit(&[takes("R", 1)], 1).unwrap()).collect();
    assert_eq!(members.iter().map(|&member| ask(&mut arbiter, member)).collect::<Vec<_>>(), [true, true, false]);
    arbiter.release(members[1], true);
    assert_eq!(all_let_in(&mut arbiter), [members[2]]);
}

#[test]
fn without_a_limit_there_is_as_much_as_the_hungriest_takes() {
    let mut arbiter = limited(&[]);
    let hungry = arbiter.admit(&[takes("R", 3)], 1).unwrap();
    let modest: Vec<usize> = (0..4).map(|_| arbiter.admit(&[takes("R", 1)], 1).unwrap()).collect();
    assert_eq!(modest.iter().map(|&member| ask(&mut arbiter, member)).collect::<Vec<_>>(), [true, true, true, false]);
    arbiter.dismiss(hungry);
    arbiter.release(modest[0], true);
    assert_eq!(all_let_in(&mut arbiter), [], "two of what is now one are still in use");
    arbiter.release(modest[1], true);
    arbiter.release(modest[2], true);
    assert_eq!(all_let_in(&mut arbiter), [modest[3]]);
}

#[test]
fn more_than_the_limit_can_never_be_granted() {
    let mut arbiter = limited(&[("R", 2)]);
    let refused = arbiter.admit(&[takes("R", 1), takes("R", 3)], 1);
    assert_eq!(refused, Err(Impossible::Limited { name: "R".to_owned(), limit: 2, needed: 3 }));
}

#[test]
fn a_resource_is_global_to_all_or_to_none() {
    let mut arbiter = limited(&[]);
    let member = arbiter.admit(&[takes("R", 1)], 1).unwrap();
    let global = [Demand { global: true, ..takes("R", 1) }];
    assert_eq!(arbiter.admit(&global, 1), Err(Impossible::Mixed { name: "R".to_owned() }));
    arbiter.dismiss(member);
    assert!(arbiter.admit(&global, 1).is_ok());
}

#[test]
fn one_of_priority_two_gets_half_the_turns_of_one_of_priority_one() {
    let mut arbiter = limited(&[("R", 1)]);
    let members = [1, 2, 4].map(|priority| arbiter.admit(&[takes("R", 1)], priority).unwrap());
    let mut turns = [0; 3];
    members.iter().for_each(|&member| {
        arbiter.ask(member);
    });
    for _ in 0..700 {
        let running = arbiter.let_in().unwrap();
        assert_eq!(arbiter.let_in(), None);
        turns[members.iter().position(|&member| member == running).unwrap()] += 1;
        arbiter.release(running, true);
        arbiter.ask(running);
    }
    assert!((395..=405).contains(&turns[0]) && (195..=205).contains(&turns[1]) && (95..=105).contains(&turns[2]));
}

#[test]
fn a_long_idle_instance_does_not_catch_up() {
    let mut arbiter = limited(&[("R", 1)]);
    let [busy, idle] = [0, 0].map(|priority| arbiter.admit(&[takes("R", 1)], priority).unwrap());
    for _ in 0..1000 {
        assert!(ask(&mut arbiter, busy));
        arbiter.release(busy, true);
    }
    assert!(ask(&mut arbiter, busy));
    assert!(!ask(&mut arbiter, idle));
    let mut order = Vec::new();
    let mut running = busy;
    for _ in 0..6 {
        arbiter.release(running, true);
        arbiter.ask(running);
        running = arbiter.let_in().unwrap();
        order.push(running);
    }
    assert_eq!(order, [idle, busy, idle, busy, idle, busy]);
}

#[test]
fn what_was_granted_and_not_used_is_no_turn() {
    let mut arbiter = limited(&[("R", 1)]);
    let [one, other] = [1, 1].map(|priority| arbiter.admit(&[takes("R", 1)], priority).unwrap());
    for _ in 0..5 {
        assert!(ask(&mut arbiter, one));
        arbiter.release(one, false);
    }
    assert!(ask(&mut arbiter, other));
    ask(&mut arbiter, one);
    arbiter.release(other, true);
    arbiter.ask(other);
    assert_eq!(all_let_in(&mut arbiter), [one]);
}

#[test]
fn who_lacks_something_keeps_it_from_those_behind_and_nothing_else() {
    let mut arbiter = limited(&[("R", 4), ("S", 1)]);
    let half = arbiter.admit(&[takes("R", 2)], 1).unwrap();
    let whole = arbiter.admit(&[takes("R", 4)], 1).unwrap();
    let small = arbiter.admit(&[takes("R", 1)], 1).unwrap();
    let apart = arbiter.admit(&[takes("S", 1)], 1).unwrap();
    assert!(ask(&mut arbiter, half));
    assert!(!ask(&mut arbiter, whole), "half of it is in use");
    assert!(!ask(&mut arbiter, small), "it would keep the one before it waiting for ever");
    assert!(ask(&mut arbiter, apart), "it takes nothing that anybody before it waits for");
    arbiter.release(half, true);
    assert_eq!(all_let_in(&mut arbiter), [whole]);
    arbiter.release(whole, true);
    assert_eq!(all_let_in(&mut arbiter), [small]);
}

#[test]
fn what_an_instance_holds_that_goes_is_free_once_it_gives_it_back() {
    let mut arbiter = limited(&[("R", 1)]);
    let [going, waiting] = [1, 1].map(|priority| arbiter.admit(&[takes("R", 1)], priority).unwrap());
    assert!(ask(&mut arbiter, going));
    assert!(!ask(&mut arbiter, waiting));
    arbiter.dismiss(going);
    assert_eq!(all_let_in(&mut arbiter), []);
    arbiter.release(going, true);
    assert_eq!(all_let_in(&mut arbiter), [waiting]);
}

#[test]
fn one_that_goes_while_it_waits_is_never_let_in() {
    let mut arbiter = limited(&[("R", 1)]);
    let [one, going, other] = [1, 1, 1].map(|priority| arbiter.admit(&[takes("R", 1)], priority).unwrap());
    assert!(ask(&mut arbiter, one));
    assert!(!ask(&mut arbiter, going) && !ask(&mut arbiter, other));
    arbiter.dismiss(going);
    arbiter.release(one, true);
    assert_eq!(all_let_in(&mut arbiter), [other]);
}

proptest! {
    /// Whatever is asked for and given back: no more is in use than there is, nobody is let in who did not ask, and in
    /// the end everybody who asked was let in.
    #[test]
    fn nothing_is_granted_twice_and_nobody_is_forgotten(
        demands in prop::collection::vec(prop::collection::btree_map(0_usize..3, 1_u32..4, 0..3), 1..8),
        priorities in prop::collection::vec(0_u32..5, 8),
        moves in prop::collection::vec((0_usize..8, any::<bool>()), 0..200),
    ) {
        const NAMES: [&str; 3] = ["R", "S", "T"];
        let mut arbiter = limited(&NAMES.map(|name| (name, 3)));
        let members: Vec<usize> = demands
            .iter()
            .zip(&priorities)
            .map(|(demand, &priority)| {
                let demand: Vec<Demand> = demand.iter().map(|(&at, &count)| takes(NAMES[at], count)).collect();
                arbiter.admit(&demand, priority).unwrap()
            })
            .collect();
        let (mut waiting, mut running): (Vec<usize>, Vec<usize>) = Default::default();
        let check = |running: &[usize]| {
            let mut used: BTreeMap<usize, u32> = BTreeMap::new();
            for at in running {
                demands[*at].iter().for_each(|(&name, &count)| *used.entry(name).or_default() += count);
            }
            used.values().all(|&count| count <= 3)
        };
        for (at, executed) in moves.into_iter().filter(|(at, _)| *at < demands.len()) {
            if running.contains(&at) {
                running.retain(|&other| other != at);
                arbiter.release(members[at], executed);
            } else if !waiting.contains(&at) {
                waiting.push(at);
                if ask(&mut arbiter, members[at]) {
                    waiting.retain(|&other| other != at);
                    running.push(at);
                }
            }
            while let Some(member) = arbiter.let_in() {
                let at = members.iter().position(|&other| other == member).unwrap();
                prop_assert!(waiting.contains(&at));
                waiting.retain(|&other| other != at);
                running.push(at);
            }
            prop_assert!(check(&running));
        }
        while let Some(at) = running.pop() {
            arbiter.release(members[at], true);
            while let Some(member) = arbiter.let_in() {
                let at = members.iter().position(|&other| other == member).unwrap();
                waiting.retain(|&other| other != at);
                running.push(at);
            }
        }
        prop_assert!(waiting.is_empty());
    }
}
