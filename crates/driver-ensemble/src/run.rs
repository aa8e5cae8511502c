//! The mailbox of one request's run.
//!
//! Answers of steps come on many threads, and carrying one out may bring the next on the same thread. What comes is
//! left here; the thread that finds the run resting takes it on until nothing has been left, so that one thread at a
//! time does, no lock is held meanwhile, and nothing calls itself.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Weak};

use alipes_request::mailbox::{Reader, Response};
use alipes_request::responder::Observer;
use alipes_runtime::model::{ModelVersion, Pending};
use parking_lot::Mutex;

use super::Ensemble;
use super::run_driver::RunDriver;
use super::semaphore::Permit;

/// What happens to a run.
pub enum Event {
    /// A step has answered.
    Response(Response),
    /// The caller has taken so many responses.
    Consumed(u32),
    /// There is room for a call that waited for it.
    Admitted { call: usize, permit: Permit },
    /// The caller has gone.
    Cancelled,
    /// Requests before it in its sequence have called the step that it waits for.
    Turn,
}

thread_local! {
    /// Runs that this thread has still to wake; none where it wakes nobody.
    static WOKEN: RefCell<Option<VecDeque<Arc<Run>>>> = const { RefCell::new(None) };
}

/// One request's way through an ensemble, as those see it who bring something.
pub struct Run(Mutex<State>);

struct State {
    left: Vec<Event>,
    phase: Phase,
}

enum Phase {
    Resting(Box<RunDriver>),
    /// Some thread has it and looks here before it rests.
    Driven,
    Over,
}

/// Takes a request on.
pub fn begin(ensemble: &Arc<Ensemble>, model: &Arc<ModelVersion>, mut pending: Pending) {
    let run = Arc::new(Run(Mutex::new(State { left: Vec::new(), phase: Phase::Driven })));
    pending.responder.observe(Watch(Arc::downgrade(&run)));
    let driver = RunDriver::start(ensemble, model, pending, &run);
    run.take_on(Box::new(driver));
}

/// Tells runs that it is their turn. One that is woken may wake the next, and a stream may have a thousand that wait:
/// they are woken one after the other, and not one within the other.
pub fn wake(runs: impl IntoIterator<Item = Arc<Run>>) {
    let mut runs = runs.into_iter().peekable();
    if runs.peek().is_none() {
        return;
    }
    let is_within = WOKEN.with_borrow_mut(|woken| {
        let is_within = woken.is_some();
        woken.get_or_insert_default().extend(runs);
        is_within
    });
    while let Some(run) = (!is_within).then(|| WOKEN.with_borrow_mut(next)).flatten() {
        run.send(Event::Turn);
    }
}

fn next(woken: &mut Option<VecDeque<Arc<Run>>>) -> Option<Arc<Run>> {
    let run = woken.as_mut().and_then(VecDeque::pop_front);
    if run.is_none() {
        *woken = None;
    }
    run
}

impl Run {
    /// Leaves something with the run, and takes it on if nobody does.
    pub fn send(&self, event: Event) {
        let mut state = self.0.lock();
        match mem::replace(&mut state.phase, Phase::Driven) {
            Phase::Resting(mut driver) => {
                drop(state);
                driver.handle(event);
                self.take_on(driver);
            }
            Phase::Driven => state.left.push(event),
            Phase::Over => {
                state.phase = Phase::Over;
                // An answer that nobody wants is dropped without the lock.
                drop(state);
            }
        }
    }

    fn take_on(&self, mut driver: Box<RunDriver>) {
        let mut left = Vec::new();
        loop {
            driver.advance();
            let mut state = self.0.lock();
            mem::swap(&mut state.left, &mut left);
            if driver.is_over() {
                state.phase = Phase::Over;
                drop(state);
                // With it go the calls that are still open: their models learn that the caller has gone.
                return drop((driver, left));
            }
            if left.is_empty() {
                state.phase = Phase::Resting(driver);
                return;
            }
            drop(state);
            left.drain(..).for_each(|event| driver.handle(event));
        }
    }
}

impl Reader for Run {
    fn take(&self, response: Response) {
        self.send(Event::Response(response));
    }
}

/// Observes the caller of the ensemble for the run.
struct Watch(Weak<Run>);

impl Observer for Watch {
    fn cancelled(&self) {
        if let Some(run) = self.0.upgrade() {
            run.send(Event::Cancelled);
        }
    }

    fn consumed(&self, responses: u32, _bytes: u64) {
        if let Some(run) = self.0.upgrade() {
            run.send(Event::Consumed(responses));
        }
    }
}
