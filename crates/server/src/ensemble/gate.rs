//! How many calls of a step may be under way at a time, over all requests of an ensemble.
//!
//! No thread waits here: a call that finds no room leaves a word where its run is to be found, and goes on when another
//! call has ended. First come, first served.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::run::{Event, Run};

/// Runs, and what each of them is told.
type News = VecDeque<(Arc<Run>, Event)>;

thread_local! {
    /// What this thread still has to hand on; none while it is not handing on.
    static HANDING_ON: RefCell<Option<News>> = const { RefCell::new(None) };
}

/// The room at one step.
pub struct Gate {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: usize,
    line: VecDeque<Turn>,
}

/// A call that waits for room.
struct Turn {
    run: Weak<Run>,
    call: usize,
}

/// Room for one call. It is handed on when it is dropped.
pub struct Pass(Arc<Gate>);

impl Gate {
    /// A step with room for so many calls.
    pub fn new(most: usize) -> Arc<Gate> {
        Arc::new(Gate { most, state: Mutex::default() })
    }

    /// Room for a call, if there is some; else its run is told of it later.
    pub fn enter(self: &Arc<Self>, run: &Weak<Run>, call: usize) -> Option<Pass> {
        let mut state = self.state.lock();
        if state.under_way < self.most {
            state.under_way += 1;
            return Some(Pass(Arc::clone(self)));
        }
        state.line.push_back(Turn { run: Weak::clone(run), call });
        None
    }

    /// Calls that wait for room.
    pub fn waiting(&self) -> usize {
        let state = self.state.lock();
        state.line.iter().filter(|turn| turn.run.strong_count() > 0).count()
    }

    /// Whose turn it is; without anybody there is room for one call more.
    fn next(&self) -> Option<(Arc<Run>, usize)> {
        let mut state = self.state.lock();
        while let Some(Turn { run, call }) = state.line.pop_front() {
            if let Some(run) = run.upgrade() {
                return Some((run, call));
            }
        }
        state.under_way -= 1;
        None
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some((run, call)) = self.0.next() {
            hand_on(run, Event::Admitted { call, pass: Pass(Arc::clone(&self.0)) });
        }
    }
}

/// Tells a run, once this thread has told those before it. A run that is told may end at once and hand its room on in turn: a
/// thousand runs in a row would be a thousand calls deep.
fn hand_on(run: Arc<Run>, event: Event) {
    let mut next = Some((run, event));
    HANDING_ON.with_borrow_mut(|waiting| match waiting {
        Some(waiting) => waiting.extend(next.take()),
        None => *waiting = Some(VecDeque::new()),
    });
    if next.is_none() {
        return;
    }
    while let Some((run, event)) = next {
        run.tell(event);
        next = HANDING_ON.with_borrow_mut(|waiting| waiting.as_mut().and_then(VecDeque::pop_front));
    }
    HANDING_ON.set(None);
}
