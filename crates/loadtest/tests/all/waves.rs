//! Requests that begin in waves.

use std::num::NonZeroU64;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use alipes_loadtest::{Engine, Loop, Waves};

use crate::support::{GOOD, Server, number, only, plan, plan_of_sequences, until};

fn waves(first: usize, further: usize, all: usize) -> Loop {
    let responses = NonZeroU64::new(1).unwrap();
    Loop::Waves(Waves { first: number(first), further: number(further), all: number(all), responses })
}

#[test]
fn the_next_wave_begins_when_the_last_one_is_over() {
    // Requests are answered up to this one.
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    let own = gate.clone();
    let server = Server::start(move |number, _| {
        let (open, opened) = &*own;
        let _open = opened.wait_while(open.lock().unwrap(), |open| *open <= number).unwrap();
        Some(GOOD.to_owned())
    });
    let mut engine = Engine::start(plan(server.address, &["a", "b"], waves(2, 3, 7), None)).unwrap();
    let mut begun = 0;
    for size in [2, 3, 2] {
        begun += size;
        until("the wave", || server.seen() == begun);
        // All of it but one are answered: that is not enough.
        *gate.0.lock().unwrap() = begun - 1;
        gate.1.notify_all();
        until("the answers", || engine.answers() == begun as u64 - 1);
        assert_eq!(server.seen(), begun);
        *gate.0.lock().unwrap() = begun;
        gate.1.notify_all();
    }
    until("the end", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    let record = only(&engine);
    assert_eq!((record.answers(), record.failures.len()), (7, 0));
}

#[test]
fn requests_that_fail_do_not_hold_up_the_next_wave() {
    let server = Server::start(|number, _| (number % 2 == 0).then(|| GOOD.to_owned()));
    let record = crate::support::measured(plan(server.address, &["a"], waves(1, 2, 5), None));
    assert_eq!((record.answers(), record.failures.values().sum::<u64>()), (3, 2));
}

#[test]
fn a_load_in_waves_may_be_stopped() {
    let server = Server::start(|_, _| {
        loop {
            std::thread::park();
        }
    });
    let mut engine = Engine::start(plan(server.address, &["a"], waves(2, 1, 5), None)).unwrap();
    until("the wave", || server.seen() == 2);
    engine.stop(Duration::ZERO).unwrap();
    assert!(engine.is_done());
}

#[test]
fn sequences_are_not_sent_in_waves() {
    let server = Server::start(|_, _| Some(GOOD.to_owned()));
    let plan = plan_of_sequences(server.address, &["a", "b"], 2, waves(1, 1, 2), None);
    assert!(Engine::start(plan).err().unwrap().message.contains("not sent in waves"));
}
