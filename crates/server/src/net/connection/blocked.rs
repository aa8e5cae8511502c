//! How long a client has taken nothing of what it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Counts the time in which nothing moves; a timer is set once something has to wait.
pub struct Blocked {
    patience: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The timer counts: nothing has moved since it was set.
    waiting: bool,
}

impl Blocked {
    /// Nothing waits yet; none sets no limit.
    pub fn new(patience: Option<Duration>) -> Blocked {
        Blocked { patience, timer: None, waiting: false }
    }

    /// What came of a try to send something, unless it has been in vain for too long.
    #[inline]
    pub fn limit<T>(&mut self, tried: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if tried.is_pending() {
            return self.poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()));
        }
        self.moved();
        tried
    }

    /// Something was taken.
    #[inline]
    pub fn moved(&mut self) {
        self.waiting = false;
    }

    /// Ready where the client has taken nothing for too long.
    #[cold]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(patience) = self.patience else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(Instant::now() + patience);
        }
        timer.as_mut().poll(cx)
    }
}
