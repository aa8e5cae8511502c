//! A loop that gives way: so many steps of it in a turn.

use tokio::task::yield_now;

/// The steps that a loop has left in its turn.
pub(crate) struct Steps {
    most: usize,
    left: usize,
}

impl Steps {
    /// So many steps a turn.
    pub fn new(most: usize) -> Steps {
        Steps { most, left: most }
    }

    /// Begins a step, once others have had the thread where the turn is over.
    pub async fn begin(&mut self) {
        if self.left == 0 {
            // The task is run again once the sockets were looked at.
            yield_now().await;
            self.left = self.most;
        }
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    #[tokio::test]
    async fn a_loop_gives_way_after_some_steps() {
        let steps = Cell::new(0);
        let mut looping = pin!(async {
            let mut left = Steps::new(3);
            for _ in 0..7 {
                left.begin().await;
                steps.set(steps.get() + 1);
            }
            pending::<()>().await;
        });
        let mut seen = Vec::new();
        for _ in 0..3 {
            poll_fn(|cx| Poll::Ready(looping.as_mut().poll(cx).is_pending())).await;
            seen.push(steps.get());
        }
        assert_eq!(seen, [3, 6, 7]);
    }
}
