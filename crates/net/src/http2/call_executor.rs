//! Drives the calls of one HTTP/2 connection, and resets one whose client opens no window for the response.
//!
//! The body of a call that waits for a window is not polled, so only the executor of the call sees that it makes no
//! progress. It resets that call alone; the others on the connection go on. The tasks of calls know nothing of the
//! network's phase, so a cut wakes those that wait.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alipes_stats::turn::{Task, timed};
use hyper::rt::Executor;
use pin_project_lite::pin_project;

use crate::connection::{Activity, NextActor, StallTimer};

/// Runs each call in a task of its own.
#[derive(Clone)]
pub struct CallExecutor {
    activity: Arc<Activity>,
    stall_timeout: Option<Duration>,
}

impl CallExecutor {
    /// An executor for the calls of one connection, with a stall time-out; none sets no limit.
    pub fn new(activity: Arc<Activity>, stall_timeout: Option<Duration>) -> CallExecutor {
        CallExecutor { activity, stall_timeout }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for CallExecutor {
    fn execute(&self, call: F) {
        let (activity, stall_timer) = (Arc::clone(&self.activity), StallTimer::new(self.stall_timeout));
        let call = DrivenCall { call, activity, key: None, has_data: false, stall_timer };
        tokio::spawn(timed(Task::Call, call));
    }
}

pin_project! {
    /// A call in progress. Dropped before its end, it is reset.
    struct DrivenCall<F> {
        #[pin]
        call: F,
        activity: Arc<Activity>,
        // Under which a cut wakes it, once it had to wait.
        key: Option<usize>,
        // Its response has data that the client has not read.
        has_data: bool,
        stall_timer: StallTimer,
    }

    impl<F> PinnedDrop for DrivenCall<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(key) = this.key {
                this.activity.ending.forget(key);
            }
        }
    }
}

impl<F: Future<Output = ()>> Future for DrivenCall<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driven = self.project();
        driven.activity.take_next_actor();
        if driven.call.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        driven.key.get_or_insert_with(|| driven.activity.ending.register(cx.waker()));
        match driven.activity.take_next_actor() {
            NextActor::Unknown => {}
            actor => {
                driven.stall_timer.progressed();
                *driven.has_data = actor == NextActor::Client;
            }
        }
        if *driven.has_data { driven.stall_timer.poll(cx) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::advance;

    use super::*;

    const STALL_TIMEOUT: Duration = Duration::from_secs(60);

    /// After how many seconds a call ends that is polled every ten and reports these next actors.
    async fn ends_after(actors: &[NextActor]) -> Option<u64> {
        let activity = Arc::new(Activity::default());
        let counted = activity.begin();
        let mut actors = actors.iter().copied();
        let call = poll_fn(move |_| {
            let actor = actors.next().filter(|actor| *actor != NextActor::Unknown);
            actor.into_iter().for_each(|actor| counted.set_next_actor(actor));
            Poll::Pending
        });
        let mut driven = Box::pin(DrivenCall {
            call,
            activity,
            key: None,
            has_data: false,
            stall_timer: StallTimer::new(Some(STALL_TIMEOUT)),
        });
        for seconds in (0..300).step_by(10) {
            if poll_fn(|cx| Poll::Ready(driven.as_mut().poll(cx).is_ready())).await {
                return Some(seconds);
            }
            advance(Duration::from_secs(10)).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_where_its_client_stalls_and_not_where_its_model_does() {
        use NextActor::{Client, Model, Unknown};
        assert_eq!(ends_after(&[]).await, None);
        assert_eq!(ends_after(&[Model]).await, None);
        assert_eq!(ends_after(&[Client]).await, Some(60));
        assert_eq!(ends_after(&[Unknown, Client, Unknown, Unknown, Client]).await, Some(100));
        assert_eq!(ends_after(&[Client, Client, Client, Model]).await, None);
        assert_eq!(ends_after(&[Client; 30]).await, None);
    }
}
