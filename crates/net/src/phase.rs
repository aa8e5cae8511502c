//! The phases of the network, from its first connection to its last, and how connections see them.

use std::time::Duration;

use alipes_protocol::limits::REFUSAL_TIME;
use tokio::sync::watch;

use crate::wakeup::polled_when_woken;

/// How far the network has come with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Phase {
    /// Connections are accepted and requests served.
    Open,
    /// As [`Phase::Open`], but each answer says that its connection ends, and connections without a request end after a
    /// grace.
    Draining,
    /// Requests that come from now on are refused; those that came before are served.
    Refusing,
    /// No connection is accepted any more, except by the metrics listener.
    Closing,
    /// Nothing is accepted. Requests without an answer get an error, and other connections end at once.
    Cut,
    /// Everything ends now.
    Closed,
}

/// The phase of the network, as a connection and its calls watch it.
#[derive(Clone)]
pub struct Shutdown {
    /// None where the network never ends.
    phase: Option<watch::Receiver<Phase>>,
}

impl Shutdown {
    /// The shutdown of a network.
    pub fn new(phase: watch::Receiver<Phase>) -> Shutdown {
        Shutdown { phase: Some(phase) }
    }

    /// None that ever begins.
    pub fn never() -> Shutdown {
        Shutdown { phase: None }
    }

    /// The phase now.
    pub fn now(&self) -> Phase {
        self.phase.as_ref().map_or(Phase::Open, |phase| *phase.borrow())
    }

    /// The phase, where another one has come since this was asked last.
    pub fn news(&mut self) -> Option<Phase> {
        let phase = self.phase.as_mut()?;
        phase.has_changed().unwrap_or(true).then(|| *phase.borrow_and_update())
    }

    /// The next phase that comes after this one.
    pub async fn later_than(&mut self, seen: Phase) -> Phase {
        let Some(phase) = self.phase.as_mut().filter(|_| seen < Phase::Closed) else {
            return std::future::pending().await;
        };
        // Every turn of a connection comes by here, and a poll of the channel takes a lock that all share.
        let later = polled_when_woken(phase.wait_for(|phase| *phase > seen)).await;
        // The sender of phases is gone: so is the network.
        later.map_or(Phase::Closed, |phase| *phase)
    }

    /// Ends when the network has reached a phase.
    pub async fn reached(mut self, phase: Phase) {
        let mut seen = self.now();
        while seen < phase {
            seen = self.later_than(seen).await;
        }
    }

    /// Ends when a connection that has not begun anything has had its grace; without a grace, at the cut. A client that
    /// connects during a drain has time to send a request.
    pub async fn overdue(self, grace: Option<Duration>) {
        let cut = self.clone().reached(Phase::Cut);
        let Some(grace) = grace else { return cut.await };
        let grace = if self.now() < Phase::Draining { grace } else { grace.max(REFUSAL_TIME) };
        tokio::select! {
            () = cut => {}
            () = async { self.reached(Phase::Draining).await; tokio::time::sleep(grace).await } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, poll_fn};
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Wake};

    use tokio::task::coop::{consume_budget, has_budget_remaining};
    use tokio::task::yield_now;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Woken {
        fn polls<F: Future>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
            future.poll(&mut Context::from_waker(&Arc::clone(self).into()))
        }

        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }
    }

    #[tokio::test]
    async fn the_task_that_polled_last_is_woken_by_the_next_phase() {
        let (sender, receiver) = watch::channel(Phase::Open);
        let mut shutdown = Shutdown::new(receiver);
        let mut ended = shutdown.clone();
        let mut later = pin!(shutdown.later_than(Phase::Open));
        let (first, last) = (Arc::<Woken>::default(), Arc::<Woken>::default());
        for woken in [&first, &first, &last, &last] {
            assert!(woken.polls(later.as_mut()).is_pending());
        }
        sender.send_replace(Phase::Open);
        assert!(last.polls(later.as_mut()).is_pending());
        sender.send_replace(Phase::Draining);
        assert_eq!((first.count(), last.count()), (0, 2));
        assert_eq!(last.polls(later.as_mut()), Poll::Ready(Phase::Draining));
        drop(sender);
        assert_eq!(ended.later_than(Phase::Draining).await, Phase::Closed);
    }

    #[tokio::test]
    async fn a_task_that_had_used_up_its_turn_is_woken_too() {
        let (sender, receiver) = watch::channel(Phase::Open);
        let mut shutdown = Shutdown::new(receiver);
        let mut later = pin!(shutdown.later_than(Phase::Open));
        let woken = Arc::<Woken>::default();
        let polled = poll_fn(|cx| {
            while has_budget_remaining() {
                let _ = pin!(consume_budget()).poll(cx);
            }
            Poll::Ready(woken.polls(later.as_mut()))
        });
        assert!(polled.await.is_pending());
        yield_now().await;
        assert!(woken.polls(later.as_mut()).is_pending());
        let before = woken.count();
        sender.send_replace(Phase::Draining);
        assert_eq!(woken.count(), before + 1);
    }

    /// A task that the thread which wakes it polls at once, and that is gone once it has ended.
    struct Prompt(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

    impl Prompt {
        fn begin(future: impl Future<Output = ()> + Send + 'static) -> Arc<Prompt> {
            let task = Arc::new(Prompt(Mutex::new(Some(Box::pin(future)))));
            Arc::clone(&task).wake();
            task
        }

        fn has_ended(&self) -> bool {
            self.0.lock().unwrap().is_none()
        }
    }

    impl Wake for Prompt {
        fn wake(self: Arc<Self>) {
            let waker = Arc::clone(&self).into();
            self.0.lock().unwrap().take_if(|future| future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        }
    }

    /// The channel wakes its receivers in eight groups, one after the other. A task that waits for the next phase in a
    /// group which is still to be woken for this one is woken for nothing, and has to wait again.
    #[test]
    fn each_phase_reaches_a_waiting_task_while_others_are_still_woken() {
        use Phase::{Closed, Closing, Cut, Draining, Open, Refusing};
        // Chance chooses the group.
        for _ in 0..64 {
            let (sender, receiver) = watch::channel(Open);
            let task = Prompt::begin(Shutdown::new(receiver).reached(Closed));
            for phase in [Draining, Refusing, Closing, Cut] {
                sender.send_replace(phase);
            }
            assert!(!task.has_ended());
            sender.send_replace(Closed);
            assert!(task.has_ended());
        }
    }
}
