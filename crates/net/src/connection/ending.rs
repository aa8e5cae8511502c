//! How far the end of a connection has come, as its calls see it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use pin_project_lite::pin_project;
use slab::Slab;

use super::activity::Call;
use crate::phase::Phase;

/// The phase of the network that a connection has seen.
#[derive(Default)]
pub struct Ending {
    phase: AtomicU8,
    /// Calls that tasks of their own drive, which a cut has to wake.
    waiting: Mutex<Slab<Waker>>,
}

impl Ending {
    /// Sees a phase.
    pub fn reach(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
        if phase >= Phase::Cut {
            self.waiting.lock().iter().for_each(|(_, waker)| waker.wake_by_ref());
        }
    }

    /// Whether each answer says that the connection ends.
    #[inline]
    pub fn is_announced(&self) -> bool {
        self.has_reached(Phase::Draining)
    }

    /// Whether calls that begin now are refused.
    #[inline]
    pub fn is_refusing(&self) -> bool {
        self.has_reached(Phase::Refusing)
    }

    /// Whether calls without an answer get an error.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.has_reached(Phase::Cut)
    }

    #[inline]
    fn has_reached(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Relaxed) >= phase as u8
    }

    /// Wakes a task at a cut, until it is forgotten by the key.
    pub fn register(&self, task: &Waker) -> usize {
        self.waiting.lock().insert(task.clone())
    }

    /// Forgets a task.
    pub fn forget(&self, key: usize) {
        self.waiting.lock().remove(key);
    }
}

pin_project! {
    /// The output of a call's future; none where the call was cut before it had any.
    pub struct UnlessCut<'a, F> {
        #[pin]
        future: F,
        call: &'a Call,
    }
}

impl<'a, F> UnlessCut<'a, F> {
    pub(super) fn new(future: F, call: &'a Call) -> UnlessCut<'a, F> {
        UnlessCut { future, call }
    }
}

impl<F: Future> Future for UnlessCut<'_, F> {
    type Output = Option<F::Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        match this.future.poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if this.call.ending().is_cut() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A response body that can be ended before the model has produced all of it.
pub trait CutOff {
    /// Ends the body with the reason in the words of its protocol; it is ready from now on.
    fn cut_off(&mut self);
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::sync::Arc;

    use super::super::activity::Activity;
    use super::*;

    fn polled<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_cut_ends_what_is_pending_and_leaves_what_is_ready() {
        let activity = Arc::new(Activity::default());
        let call = activity.begin();
        assert!(polled(call.unless_cut(pending::<()>())).is_pending());
        activity.ending.reach(Phase::Closing);
        assert!(call.ending().is_refusing() && polled(call.unless_cut(pending::<()>())).is_pending());
        activity.ending.reach(Phase::Cut);
        assert_eq!(polled(call.unless_cut(pending::<()>())), Poll::Ready(None));
        assert_eq!(polled(call.unless_cut(ready(7))), Poll::Ready(Some(7)));
    }
}
