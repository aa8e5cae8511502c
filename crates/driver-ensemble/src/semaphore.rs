//! Limits the calls of a step that are in flight at a time, over all requests of an ensemble.
//!
//! No thread blocks here: a call without a permit leaves a weak reference to its run, which is resumed when another
//! call ends. First come, first served. Calls that never end would block all others for ever, so a call that has waited
//! too long is admitted without a free permit.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

use alipes_protocol::limits::ENSEMBLE_STEP_TIMEOUT;
use parking_lot::Mutex;

use super::run::{Event, Run};

/// Runs to notify, each with its event.
type News = VecDeque<(Arc<Run>, Event)>;

thread_local! {
    /// What this thread still has to hand on; none while it is not handing on.
    static HANDING_ON: RefCell<Option<News>> = const { RefCell::new(None) };
}

/// The permits of one step.
pub struct Semaphore(Mutex<Fifo<Waiter>>);

/// A call that waits for a permit.
struct Waiter {
    run: Weak<Run>,
    call: usize,
}

impl Waiter {
    /// None where its request is over.
    fn alive(self) -> Option<(Arc<Run>, usize)> {
        Some((self.run.upgrade()?, self.call))
    }
}

/// Allows one call. Dropping it admits the next waiter.
pub struct Permit(Arc<Semaphore>);

/// The outcome for waiters past their deadline.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Calls that were admitted without a free permit.
    pub calls: usize,
    /// The next deadline; none where no call waits.
    pub next: Option<Instant>,
}

impl Semaphore {
    /// A semaphore with a number of permits.
    pub fn new(most: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore(Mutex::new(Fifo { most, under_way: 0, waiting: VecDeque::new() })))
    }

    /// Room for a call, if there is some. Else its run is told of it later: by `admit_overdue` at the moment that is
    /// given, if not before.
    pub fn acquire(self: &Arc<Self>, run: &Weak<Run>, call: usize, now: Instant) -> Result<Permit, Instant> {
        let waiter = Waiter { run: Weak::clone(run), call };
        self.0.lock().acquire(waiter, now).map(|()| Permit(Arc::clone(self)))
    }

    /// Admits the waiters past their deadline, whatever is in flight.
    pub fn admit_overdue(self: &Arc<Self>, now: Instant) -> Overdue {
        let mut calls = 0;
        // The lock is released before a run is notified.
        let next = || self.0.lock().next_overdue(now, Waiter::alive);
        while let Some((run, call)) = next() {
            calls += 1;
            hand_on(run, Event::Admitted { call, permit: Permit(Arc::clone(self)) });
        }
        Overdue { calls, next: self.0.lock().first_deadline() }
    }

    /// Calls that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.0.lock().waiting.iter().filter(|(turn, _)| turn.run.strong_count() > 0).count()
    }
}

/// The number of calls in flight, and the waiters in the order of arrival.
struct Fifo<T> {
    most: usize,
    /// Above the limit after waiters were admitted without a free permit.
    under_way: usize,
    /// With the moment at which each has waited too long.
    waiting: VecDeque<(T, Instant)>,
}

impl<T> Fifo<T> {
    fn acquire(&mut self, turn: T, now: Instant) -> Result<(), Instant> {
        if self.under_way < self.most {
            self.under_way += 1;
            return Ok(());
        }
        let deadline = now + ENSEMBLE_STEP_TIMEOUT;
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

impl Drop for Permit {
    fn drop(&mut self) {
        let next = self.0.0.lock().next(Waiter::alive);
        if let Some((run, call)) = next {
            hand_on(run, Event::Admitted { call, permit: Permit(Arc::clone(&self.0)) });
        }
    }
}

/// Tells a run, once this thread has told those before it. A run that is told may end at once and hand its room on in
/// turn: a thousand runs in a row would be a thousand calls deep.
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
        run.send(event);
        next = HANDING_ON.with_borrow_mut(|waiting| waiting.as_mut().and_then(VecDeque::pop_front));
    }
    HANDING_ON.set(None);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn fifo(most: usize) -> Fifo<u32> {
        Fifo { most, under_way: 0, waiting: VecDeque::new() }
    }

    #[test]
    fn a_waiter_is_admitted_when_a_call_ends() {
        let (mut fifo, now) = (fifo(1), alipes_clock::now());
        assert_eq!(fifo.acquire(1, now), Ok(()));
        assert_eq!([2, 3].map(|turn| fifo.acquire(turn, now).is_ok()), [false, false]);
        assert_eq!([(); 3].map(|()| fifo.next(Some)), [Some(2), Some(3), None]);
        assert_eq!(fifo.acquire(4, now), Ok(()));
    }

    #[test]
    fn a_waiter_is_admitted_without_a_permit_only_after_the_timeout() {
        let (mut fifo, now) = (fifo(1), alipes_clock::now());
        assert_eq!(fifo.acquire(1, now), Ok(()));
        let late = fifo.acquire(2, now).unwrap_err();
        let later = fifo.acquire(3, now + SECOND).unwrap_err();
        assert_eq!(late, now + ENSEMBLE_STEP_TIMEOUT);
        assert_eq!(fifo.next_overdue(late - SECOND, Some), None);
        assert_eq!(fifo.next_overdue(late, Some), Some(2));
        assert_eq!((fifo.next_overdue(late, Some), fifo.first_deadline()), (None, Some(later)));
    }

    #[test]
    fn no_waiter_is_admitted_over_capacity() {
        let (mut fifo, now) = (fifo(1), alipes_clock::now());
        assert_eq!(fifo.acquire(1, now), Ok(()));
        let deadline = fifo.acquire(2, now).unwrap_err();
        assert!(fifo.acquire(3, now + SECOND).is_err());
        assert_eq!(fifo.next_overdue(deadline, Some), Some(2));
        assert_eq!(fifo.next(Some), None);
        assert_eq!(fifo.next(Some), Some(3));
    }

    #[test]
    fn a_finished_request_takes_no_permit() {
        let (mut fifo, now) = (fifo(1), alipes_clock::now());
        assert_eq!(fifo.acquire(1, now), Ok(()));
        let deadline = fifo.acquire(2, now).unwrap_err();
        assert!(fifo.acquire(3, now).is_err());
        let gone = |turn: u32| (turn != 2).then_some(turn);
        assert_eq!(fifo.next_overdue(deadline, gone), Some(3));
        assert_eq!((fifo.under_way, fifo.next(gone)), (2, None));
    }
}
