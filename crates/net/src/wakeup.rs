//! Futures that are polled again only where they were woken.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use atomic_waker::AtomicWaker;

/// Whether a future was woken since it was last polled, and the task that polls it.
struct Wakeup {
    has_come: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // In this order: the task looks at it once it is woken.
        self.has_come.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// The output of a future that is polled only where it was woken: for one whose poll costs much more than a look at a
/// flag, in a task that is woken often for something else.
///
/// Unlike a look at what the future waits for, this knows each wake-up: also one without news, after which the future
/// has to wait again. (A `FuturesUnordered` of one future wakes its task once for each poll of it.)
pub async fn polled_when_woken<F: Future>(future: F) -> F::Output {
    let wakeup = Arc::new(Wakeup { has_come: AtomicBool::new(true), task: AtomicWaker::new() });
    let waker = Waker::from(Arc::clone(&wakeup));
    let mut future = pin!(future);
    poll_fn(|cx| {
        // Before the look: what comes after it wakes this task.
        wakeup.task.register(cx.waker());
        if wakeup.has_come.swap(false, Ordering::AcqRel) {
            future.as_mut().poll(&mut Context::from_waker(&waker))
        } else {
            Poll::Pending
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_future_is_polled_again_once_it_is_woken() {
        let (sender, receiver) = oneshot::channel();
        let mut receiver = pin!(receiver);
        let polls = Cell::new(0);
        let mut waiting = pin!(polled_when_woken(poll_fn(|cx| {
            polls.set(polls.get() + 1);
            receiver.as_mut().poll(cx)
        })));
        for _ in 0..3 {
            assert!(poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        }
        assert_eq!(polls.get(), 1);
        sender.send(7).unwrap();
        assert_eq!((waiting.await, polls.get()), (Ok(7), 2));
    }
}
