//! Connections that owe frames take turns: one of them in a while on each network thread.
//!
//! However many connections flood a thread, what others wait for is the small quantum of one, and most of the thread's
//! time is theirs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use alipes_protocol::limits::HTTP2_DEBTOR_INTERVAL;
use alipes_stats::turn::{Task, timed};
use parking_lot::Mutex;
use tokio::time::sleep;

thread_local! {
    static DEBTORS: Arc<Debtors> = Arc::default();
}

/// The connections of a thread that wait for their turn.
#[derive(Default)]
struct Debtors(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    connections: VecDeque<(Grant, Waker)>,
    is_served: bool,
}

/// Whether a connection was granted a quantum.
#[derive(Clone, Default)]
pub struct Grant(Arc<AtomicBool>);

impl Grant {
    /// Takes the quantum, if it was granted.
    pub fn take(&self) -> bool {
        let granted = self.0.load(Ordering::Relaxed);
        self.0.store(false, Ordering::Relaxed);
        granted
    }

    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Wakes a connection when its turn has come, and grants it a quantum.
pub fn wait_for_turn(grant: &Grant, waker: &Waker) {
    DEBTORS.with(|debtors| {
        let mut waiting = debtors.0.lock();
        waiting.connections.push_back((grant.clone(), waker.clone()));
        if !std::mem::replace(&mut waiting.is_served, true) {
            drop(tokio::spawn(timed(Task::Debtors, serve(Served(Arc::clone(debtors))))));
        }
    });
}

async fn serve(debtors: Served) {
    loop {
        sleep(HTTP2_DEBTOR_INTERVAL).await;
        let Some((grant, waker)) = debtors.0.0.lock().connections.pop_front() else { return };
        grant.set();
        waker.wake();
    }
}

/// Nobody is served once this is dropped, be it with its event loop.
struct Served(Arc<Debtors>);

impl Drop for Served {
    fn drop(&mut self) {
        std::mem::take(&mut *self.0.0.lock());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::poll_fn;
    use std::task::Poll;

    use tokio::time::Instant;

    use super::*;

    /// Waits for a turn; when it has come, notes who had it.
    async fn take_turn(number: usize, turns: &RefCell<Vec<usize>>) {
        let grant = Grant::default();
        let mut waits = false;
        poll_fn(|cx| {
            if !std::mem::replace(&mut waits, true) {
                wait_for_turn(&grant, cx.waker());
            }
            if grant.take() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        turns.borrow_mut().push(number);
    }

    #[tokio::test(start_paused = true)]
    async fn debtors_take_turns_and_one_goes_at_a_time() {
        let (turns, begin) = (RefCell::default(), Instant::now());
        for _ in 0..2 {
            tokio::join!(take_turn(1, &turns), take_turn(2, &turns), take_turn(3, &turns));
        }
        assert_eq!(turns.into_inner(), [1, 2, 3, 1, 2, 3]);
        assert!(begin.elapsed() >= 6 * HTTP2_DEBTOR_INTERVAL);
        sleep(2 * HTTP2_DEBTOR_INTERVAL).await;
        assert!(!DEBTORS.with(|debtors| debtors.0.lock().is_served));
    }
}
