//! The order of a sequence at the steps that keep a state, however its requests overtake each other.

use std::collections::BTreeMap;

use alipes_scheduler::ensemble::{StepOrder, Ticket};
use proptest::collection::vec;
use proptest::prelude::*;

type Order = StepOrder<u64, usize>;

fn leave(order: &mut Order, ticket: Ticket) -> Vec<usize> {
    let mut next = Vec::new();
    order.leave(ticket, &mut next);
    next
}

#[test]
fn who_comes_early_waits_for_those_before_it() {
    let mut order = Order::new(1);
    let (first, second, third) = (order.join(7), order.join(7), order.join(7));
    assert!(!order.may_call(&third, 0, || 3));
    assert!(!order.may_call(&second, 0, || 2));
    assert!(order.may_call(&first, 0, || 1));
    assert_eq!(order.pass(&first, 0), Some(2));
    assert!(order.may_call(&second, 0, || 2));
    assert_eq!(order.pass(&second, 0), Some(3));
    assert!(order.may_call(&third, 0, || 3));
    for ticket in [first, second, third] {
        assert_eq!(leave(&mut order, ticket), []);
    }
    assert_eq!(order.sequences(), 0);
}

#[test]
fn sequences_do_not_wait_for_each_other_nor_steps() {
    let mut order = Order::new(2);
    let (seven, eight) = (order.join(7), order.join(8));
    assert!(order.may_call(&eight, 0, || 8) && order.may_call(&eight, 1, || 8));
    assert_eq!(order.pass(&seven, 1), None);
    let second = order.join(7);
    assert!(order.may_call(&second, 1, || 2) && !order.may_call(&second, 0, || 2));
    assert_eq!(leave(&mut order, seven), [2]);
    assert_eq!((leave(&mut order, second), leave(&mut order, eight)), (vec![], vec![]));
}

#[test]
fn a_request_that_ends_without_calling_holds_nobody_up() {
    let mut order = Order::new(1);
    let tickets: Vec<Ticket> = (0..4).map(|_| order.join(7)).collect();
    let [first, second, third, fourth] = <[Ticket; 4]>::try_from(tickets).unwrap();
    assert!(!order.may_call(&second, 0, || 2));
    assert!(!order.may_call(&fourth, 0, || 4));
    assert_eq!(leave(&mut order, second), []);
    assert_eq!(leave(&mut order, third), []);
    assert_eq!(leave(&mut order, first), [4]);
    assert!(order.may_call(&fourth, 0, || 4));
    assert_eq!(leave(&mut order, fourth), []);
}

#[derive(Clone, Debug)]
enum Event {
    Join { key: u64 },
    Call { back: usize, step: usize },
    Leave { back: usize },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0_u64..3).prop_map(|key| Event::Join { key }),
        5 => (0_usize..8, 0_usize..2).prop_map(|(back, step)| Event::Call { back, step }),
        2 => (0_usize..8).prop_map(|back| Event::Leave { back }),
    ]
}

/// One request: its key, its ticket until it leaves, and by step whether it wants to call.
struct Request {
    key: u64,
    ticket: Option<Ticket>,
    waits: [bool; 2],
}

struct Stage {
    order: Order,
    requests: Vec<Request>,
    /// Who has called, by key and step.
    called: BTreeMap<(u64, usize), Vec<usize>>,
}

impl Stage {
    fn call(&mut self, number: usize, step: usize) {
        let request = &mut self.requests[number];
        let Some(ticket) = &request.ticket else { return };
        let seen = self.called.entry((request.key, step)).or_default();
        if seen.contains(&number) {
            return;
        }
        request.waits[step] = !self.order.may_call(ticket, step, || number);
        if !request.waits[step] {
            seen.push(number);
            let next = self.order.pass(ticket, step);
            next.into_iter().for_each(|next| self.wake(next));
        }
    }

    fn leave(&mut self, number: usize) {
        let Some(ticket) = self.requests[number].ticket.take() else { return };
        leave(&mut self.order, ticket).into_iter().for_each(|next| self.wake(next));
    }

    fn wake(&mut self, number: usize) {
        for step in 0..2 {
            if self.requests[number].waits[step] {
                self.call(number, step);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn calls_come_in_order_and_nobody_is_forgotten(events in vec(event(), 0..60)) {
        let mut stage = Stage { order: Order::new(2), requests: Vec::new(), called: BTreeMap::new() };
        for event in events {
            let number = |back: usize| stage.requests.len().checked_sub(back + 1);
            match event {
                Event::Join { key } => {
                    let ticket = Some(stage.order.join(key));
                    stage.requests.push(Request { key, ticket, waits: [false; 2] });
                }
                Event::Call { back, step } => number(back).into_iter().for_each(|number| stage.call(number, step)),
                Event::Leave { back } => number(back).into_iter().for_each(|number| stage.leave(number)),
            }
            // Nobody waits whose predecessors have all called or left.
            for (number, request) in stage.requests.iter().enumerate().filter(|(_, request)| request.ticket.is_some()) {
                for step in (0..2).filter(|&step| request.waits[step]) {
                    let seen = stage.called.get(&(request.key, step));
                    let holds = |other: &usize| {
                        let one = &stage.requests[*other];
                        one.key == request.key && one.ticket.is_some() && seen.is_none_or(|seen| !seen.contains(other))
                    };
                    prop_assert!((0..number).any(|other| holds(&other)));
                }
            }
        }
        for seen in stage.called.values() {
            prop_assert!(seen.is_sorted());
        }
        (0..stage.requests.len()).for_each(|number| stage.leave(number));
        prop_assert_eq!(stage.order.sequences(), 0);
    }
}
