//! Stays with a connection until it ends, and sees to it that it does.

use std::future::Future;
use std::pin::{Pin, pin};

use super::patience::{Verdict, Watch};

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, or by its client.
    Closed,
    /// A head was not sent in time: the client may be told.
    NoHead,
    /// It held too much for too long.
    Cut,
}

/// Serves a connection until it ends, or until `draining` is over, or the watch has seen enough, and its calls have
/// ended. `retire` tells the connection to end after the calls that it is in; `drained` is called when the server drains.
pub async fn attend<C: Future>(
    mut connection: Pin<&mut C>,
    retire: impl Fn(Pin<&mut C>),
    mut watch: Watch,
    draining: impl Future<Output = ()>,
    drained: impl FnOnce(),
) -> End {
    let mut draining = pin!(draining);
    let mut drained = Some(drained);
    loop {
        tokio::select! {
            biased;
            // A broken connection has nobody left to be told.
            _ = connection.as_mut() => return End::Closed,
            () = draining.as_mut(), if drained.is_some() => {
                drained.take().into_iter().for_each(|drained| drained());
                retire(connection.as_mut());
            }
            verdict = watch.next() => match verdict {
                Verdict::Keep => {}
                Verdict::Retire => retire(connection.as_mut()),
                Verdict::NoHead => return End::NoHead,
                Verdict::Cut => return End::Cut,
            },
        }
    }
}
