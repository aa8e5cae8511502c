//! How long a client has read nothing of what it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Measures the time without progress; its timer is set once a write has to wait.
pub struct StallTimer {
    timeout: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Nothing has progressed since the timer was set.
    waiting: bool,
}

impl StallTimer {
    /// A timer that is not set; none sets no limit.
    pub fn new(timeout: Option<Duration>) -> StallTimer {
        StallTimer { timeout, timer: None, waiting: false }
    }

    /// The outcome of a write; an error where writes have made no progress for too long.
    #[inline]
    pub fn limit<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            return self.poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        self.progressed();
        written
    }

    /// The client has read something.
    #[inline]
    pub fn progressed(&mut self) {
        self.waiting = false;
    }

    /// Ready where the client has read nothing for too long.
    #[cold]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(timeout) = self.timeout else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + timeout)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(Instant::now() + timeout);
        }
        timer.as_mut().poll(cx)
    }
}
