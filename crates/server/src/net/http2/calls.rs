//! The calls of one HTTP/2 connection, each of which ends where its client opens no window for the answer.
//!
//! A call that waits for a window is not asked for anything, so only whoever drives it can tell: it is driven in vain for
//! too long. It alone is reset then, and the others on the connection go on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use pin_project_lite::pin_project;

use crate::net::connection::{Blocked, Pulse, Turn};

/// Drives calls, each in a task of its own.
#[derive(Clone)]
pub struct Calls {
    pulse: Arc<Pulse>,
    patience: Option<Duration>,
}

impl Calls {
    /// For the connection with this pulse, whose answers may be left for so long; none sets no limit.
    pub fn new(pulse: Arc<Pulse>, patience: Option<Duration>) -> Calls {
        Calls { pulse, patience }
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Calls {
    fn execute(&self, call: F) {
        let (pulse, blocked) = (Arc::clone(&self.pulse), Blocked::new(self.patience));
        tokio::spawn(Driven { call, pulse, offers: false, blocked });
    }
}

pin_project! {
    /// A call on its way. Dropped before its end, it is reset.
    struct Driven<F> {
        #[pin]
        call: F,
        pulse: Arc<Pulse>,
        // Its answer has something for the client, who has not taken it.
        offers: bool,
        blocked: Blocked,
    }
}

impl<F: Future<Output = ()>> Future for Driven<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driven = self.project();
        driven.pulse.take_turn();
        if driven.call.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match driven.pulse.take_turn() {
            Turn::Unknown => {}
            turn => {
                driven.blocked.moved();
                *driven.offers = turn == Turn::Client;
            }
        }
        if *driven.offers { driven.blocked.poll(cx) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::advance;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Whether a call has ended by itself after so long, if it is asked every ten seconds and shows these turns.
    async fn ends_after(turns: &[Turn]) -> Option<u64> {
        let pulse = Arc::new(Pulse::default());
        let shown = pulse.begin();
        let mut turns = turns.iter().copied();
        let call = poll_fn(move |_| {
            turns.next().into_iter().filter(|turn| *turn != Turn::Unknown).for_each(|turn| shown.give_turn(turn));
            Poll::Pending
        });
        let mut driven = Box::pin(Driven { call, pulse, offers: false, blocked: Blocked::new(Some(PATIENCE)) });
        for seconds in (0..300).step_by(10) {
            if poll_fn(|cx| Poll::Ready(driven.as_mut().poll(cx).is_ready())).await {
                return Some(seconds);
            }
            advance(Duration::from_secs(10)).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_whose_answer_nobody_takes_ends_and_one_that_waits_for_its_model_does_not() {
        use Turn::{Client, Model, Unknown};
        assert_eq!(ends_after(&[]).await, None);
        assert_eq!(ends_after(&[Model]).await, None);
        assert_eq!(ends_after(&[Client]).await, Some(60));
        assert_eq!(ends_after(&[Unknown, Client, Unknown, Unknown, Client]).await, Some(100));
        assert_eq!(ends_after(&[Client, Client, Client, Model]).await, None);
        assert_eq!(ends_after(&[Client; 30]).await, None);
    }
}
