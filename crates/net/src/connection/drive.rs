//! Drives a connection until it ends, and ends it at its time-outs and when the network drains.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;

use tokio::task::yield_now;

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
    let mut leaves = false;
    loop {
        tokio::select! {
            biased;
            // First: a broken connection is not drained.
            _ = poll_fn(|cx| {
                activity.begin_turn();
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
