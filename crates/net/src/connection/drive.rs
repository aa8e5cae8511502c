//! Drives a connection until it ends, and ends it at its time-outs.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;

use super::timeouts::{TimeoutAction, Watchdog};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by its client.
    Closed,
    /// A request head took too long: the client may be answered.
    HeadTimeout,
    /// A time-out closed it.
    TimedOut,
}

/// Drives a connection until it ends. Once `draining` ends or a time-out asks for it, `retire` makes the connection end
/// after its open calls. `drained` is called when `draining` ends.
pub async fn drive_connection<C: Future>(
    mut connection: Pin<&mut C>,
    retire: impl Fn(Pin<&mut C>),
    mut watchdog: Watchdog,
    draining: impl Future<Output = ()>,
    drained: impl FnOnce(),
) -> End {
    let activity = Arc::clone(watchdog.activity());
    let mut draining = pin!(draining);
    let mut drained = Some(drained);
    loop {
        tokio::select! {
            biased;
            // First: a broken connection is not drained.
            _ = poll_fn(|cx| {
                activity.begin_turn();
                connection.as_mut().poll(cx)
            }) => return End::Closed,
            () = draining.as_mut(), if drained.is_some() => {
                drained.take().into_iter().for_each(|drained| drained());
                retire(connection.as_mut());
            }
            action = watchdog.next() => match action {
                TimeoutAction::Keep => {}
                TimeoutAction::Retire => retire(connection.as_mut()),
                TimeoutAction::HeadTimeout => return End::HeadTimeout,
                TimeoutAction::Close => return End::TimedOut,
            },
        }
    }
}
