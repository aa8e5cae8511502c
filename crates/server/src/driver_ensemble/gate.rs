//! How many calls of a step may be under way at a time, over all requests of an ensemble.
//!
//! No thread waits here: a call that finds no room leaves a word where its run is to be found, and goes on when another
//! call has ended. First come, first served. Calls that never end would hold up all others for ever: after a while a call
//! goes on without room.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

use alipes_protocol::limits::ENSEMBLE_STEP_PATIENCE;
use parking_lot::Mutex;

use super::run::{Event, Run};

/// Runs, and what each of them is told.
type News = VecDeque<(Arc<Run>, Event)>;

thread_local! {
    /// What this thread still has to hand on; none while it is not handing on.
    static HANDING_ON: RefCell<Option<News>> = const { RefCell::new(None) };
}

/// The room at one step.
pub struct Gate(Mutex<Line<Turn>>);

/// A call that waits for room.
struct Turn {
    run: Weak<Run>,
    call: usize,
}

impl Turn {
    /// None where its request is over.
    fn alive(self) -> Option<(Arc<Run>, usize)> {
        Some((self.run.upgrade()?, self.call))
    }
}

/// Room for one call. It is handed on when it is dropped.
pub struct Pass(Arc<Gate>);

/// What has come of those who waited too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Calls that went on without room.
    pub calls: usize,
    /// When to look again; none where nobody waits.
    pub next: Option<Instant>,
}

impl Gate {
    /// A step with room for so many calls.
    pub fn new(most: usize) -> Arc<Gate> {
        Arc::new(Gate(Mutex::new(Line { most, under_way: 0, waiting: VecDeque::new() })))
    }

    /// Room for a call, if there is some. Else its run is told of it later: by `admit_overdue` at the moment that is given, if
    /// not before.
    pub fn enter(self: &Arc<Self>, run: &Weak<Run>, call: usize, now: Instant) -> Result<Pass, Instant> {
        let turn = Turn { run: Weak::clone(run), call };
        self.0.lock().enter(turn, now).map(|()| Pass(Arc::clone(self)))
    }

    /// Lets those go on who have waited too long, whatever is under way.
    pub fn admit_overdue(self: &Arc<Self>, now: Instant) -> Overdue {
        let mut calls = 0;
        // The lock is released before a run is told.
        let next = || self.0.lock().next_overdue(now, Turn::alive);
        while let Some((run, call)) = next() {
            calls += 1;
            hand_on(run, Event::Admitted { call, pass: Pass(Arc::clone(self)) });
        }
        Overdue { calls, next: self.0.lock().first_deadline() }
    }

    /// Calls that wait for room.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.iter().filter(|(turn, _)| turn.run.strong_count() > 0).count()
    }
}

/// Who is under way and who waits, in the order in which they came.
struct Line<T> {
    most: usize,
    /// More than there is room for where some have waited too long.
    under_way: usize,
    /// With the moment at which each has waited too long.
    waiting: VecDeque<(T, Instant)>,
}

impl<T> Line<T> {
    fn enter(&mut self, turn: T, now: Instant) -> Result<(), Instant> {
        if self.under_way < self.most {
            self.under_way += 1;
            return Ok(());
        }
        let deadline = now + ENSEMBLE_STEP_PATIENCE;
        self.waiting.push_back((turn, deadline));
        Err(deadline)
    }

    /// One who was under way has ended: who goes on in its place. Without anybody there is room for one more.
    fn next<U>(&mut self, alive: impl Fn(T) -> Option<U>) -> Option<U> {
        while self.under_way <= self.most
            && let Some((turn, _)) = self.waiting.pop_front()
        {
            if let Some(turn) = alive(turn) {
                return Some(turn);
            }
        }
        self.under_way -= 1;
        None
    }

    /// Who has waited too long, and is under way from now on.
    fn next_overdue<U>(&mut self, now: Instant, alive: impl Fn(T) -> Option<U>) -> Option<U> {
        while self.first_deadline().is_some_and(|deadline| deadline <= now) {
            let (turn, _) = self.waiting.pop_front()?;
            if let Some(turn) = alive(turn) {
                self.under_way += 1;
                return Some(turn);
            }
        }
        None
    }

    fn first_deadline(&self) -> Option<Instant> {
        self.waiting.front().map(|(_, deadline)| *deadline)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let next = self.0.0.lock().next(Turn::alive);
        if let Some((run, call)) = next {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn line(most: usize) -> Line<u32> {
        Line { most, under_way: 0, waiting: VecDeque::new() }
    }

    #[test]
    fn who_finds_no_room_goes_on_when_another_ends() {
        let (mut line, now) = (line(1), Instant::now());
        assert_eq!(line.enter(1, now), Ok(()));
        assert_eq!([2, 3].map(|turn| line.enter(turn, now).is_ok()), [false, false]);
        assert_eq!([(); 3].map(|()| line.next(Some)), [Some(2), Some(3), None]);
        assert_eq!(line.enter(4, now), Ok(()));
    }

    #[test]
    fn who_has_waited_too_long_goes_on_without_room_and_nobody_before() {
        let (mut line, now) = (line(1), Instant::now());
        assert_eq!(line.enter(1, now), Ok(()));
        let late = line.enter(2, now).unwrap_err();
        let later = line.enter(3, now + SECOND).unwrap_err();
        assert_eq!(late, now + ENSEMBLE_STEP_PATIENCE);
        assert_eq!(line.next_overdue(late - SECOND, Some), None);
        assert_eq!(line.next_overdue(late, Some), Some(2));
        assert_eq!((line.next_overdue(late, Some), line.first_deadline()), (None, Some(later)));
    }

    #[test]
    fn while_more_are_under_way_than_there_is_room_for_nobody_takes_the_place_of_one_that_ends() {
        let (mut line, now) = (line(1), Instant::now());
        assert_eq!(line.enter(1, now), Ok(()));
        let deadline = line.enter(2, now).unwrap_err();
        assert!(line.enter(3, now + SECOND).is_err());
        assert_eq!(line.next_overdue(deadline, Some), Some(2));
        assert_eq!(line.next(Some), None);
        assert_eq!(line.next(Some), Some(3));
    }

    #[test]
    fn a_request_that_is_over_takes_no_room() {
        let (mut line, now) = (line(1), Instant::now());
        assert_eq!(line.enter(1, now), Ok(()));
        let deadline = line.enter(2, now).unwrap_err();
        assert!(line.enter(3, now).is_err());
        let gone = |turn: u32| (turn != 2).then_some(turn);
        assert_eq!(line.next_overdue(deadline, gone), Some(3));
        assert_eq!((line.under_way, line.next(gone)), (2, None));
    }
}
