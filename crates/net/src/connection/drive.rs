//! Drives a connection until it ends, and ends it at its time-outs and when the network drains; and calls, which a cut
//! ends.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tokio::task::yield_now;

use super::activity::Call;
use super::timeouts::{TimeoutAction, Watchdog};
use crate::phase::{Phase, Shutdown};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by its client.
    Closed,
    /// A request head took too long: the client may be answered.
    HeadTimeout,
    /// The network ends before a request head is whole: the client may be answered.
    HeadCut,
    /// A time-out closed it.
    TimedOut,
}

/// Drives a connection until it ends. Where a time-out or the network asks for it, `retire` makes the connection end
/// after its open calls.
pub async fn drive_connection<C: Future>(
    mut connection: Pin<&mut C>,
    retire: impl Fn(Pin<&mut C>),
    mut watchdog: Watchdog,
    mut shutdown: Shutdown,
) -> End {
    let activity = Arc::clone(watchdog.activity());
    let mut phase = shutdown.now();
    watchdog.begin_in(phase);
    let mut watched = shutdown.clone();
    let mut leaves = false;
    loop {
        tokio::select! {
            biased;
            // First: a broken connection is not drained.
            _ = poll_fn(|cx| {
                activity.begin_turn();
                // A request that is read now is of the phase of now, which this task may not have been woken for yet.
                if let Some(phase) = watched.news() {
                    activity.ending.reach(phase);
                }
                connection.as_mut().poll(cx)
            }) => return End::Closed,
            later = shutdown.later_than(phase) => {
                phase = later;
                if watchdog.reach(phase) {
                    retire(connection.as_mut());
                } else if phase >= Phase::Cut {
                    return End::HeadCut;
                }
            }
            // What has come meanwhile is seen after a turn of the event loop: a request is not sent away unread.
            () = yield_now(), if leaves => {
                leaves = false;
                if !watchdog.is_within_head() {
                    retire(connection.as_mut());
                }
            }
            action = watchdog.next() => match action {
                TimeoutAction::Keep => {}
                TimeoutAction::Retire => leaves = true,
                TimeoutAction::HeadTimeout if phase >= Phase::Draining => return End::HeadCut,
                TimeoutAction::HeadTimeout => return End::HeadTimeout,
                TimeoutAction::Close => return End::TimedOut,
            },
        }
    }
}

/// Drives a call until it has an answer; none where the network is cut before it has any.
#[inline]
pub fn drive_call<F: Future>(call: &Call, future: F) -> UnlessCut<'_, F> {
    UnlessCut { future, call }
}

pin_project! {
    /// The output of a call's future; none where the call was cut before it had any.
    pub struct UnlessCut<'a, F> {
        #[pin]
        future: F,
        call: &'a Call,
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::task::Waker;

    use tokio::sync::watch;

    use super::super::activity::Activity;
    use super::super::timeouts::ConnectionTimeouts;
    use super::*;

    fn polled<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_cut_ends_what_is_pending_and_leaves_what_is_ready() {
        let activity = Arc::new(Activity::default());
        let call = activity.begin();
        assert!(polled(drive_call(&call, pending::<()>())).is_pending());
        activity.ending.reach(Phase::Closing);
        assert!(call.ending().is_refusing() && polled(drive_call(&call, pending::<()>())).is_pending());
        activity.ending.reach(Phase::Cut);
        assert_eq!(polled(drive_call(&call, pending::<()>())), Poll::Ready(None));
        assert_eq!(polled(drive_call(&call, ready(7))), Poll::Ready(Some(7)));
    }

    #[tokio::test]
    async fn a_request_is_of_the_phase_in_which_it_is_read() {
        let (phase, receiver) = watch::channel(Phase::Open);
        let activity = Arc::new(Activity::default());
        let watchdog = Watchdog::http1(Arc::clone(&activity), ConnectionTimeouts::default());
        let refusing = RefCell::new(vec![]);
        let connection = pin!(poll_fn(|_| {
            refusing.borrow_mut().push(activity.ending.is_refusing());
            Poll::Pending::<()>
        }));
        let mut driven = pin!(drive_connection(connection, |_| {}, watchdog, Shutdown::new(receiver)));
        let mut poll = || driven.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(poll());
        assert_eq!(refusing.take(), [false]);
        phase.send_replace(Phase::Refusing);
        assert!(poll());
        assert!(!refusing.borrow().is_empty() && refusing.take().iter().all(|is_refusing| *is_refusing));
    }
}
