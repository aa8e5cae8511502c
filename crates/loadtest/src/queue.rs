//! Requests that are due, and the callers that wait for them, on one thread.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;

/// Most requests that wait for a free caller; further ones are dropped, and counted.
pub const MAX_WAITING: usize = 1 << 20;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Which of the plan's requests.
    pub request: usize,
    /// When it was due.
    pub due: Instant,
    /// When it was put here.
    pub dispatched: Instant,
}

/// What became of a request that was put into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// A caller that had nothing to do has it.
    Claimed,
    /// It waits: all callers are busy.
    Waits,
    /// There is no room.
    Dropped,
}

/// Which of several callers without a request has the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The last to become free, so that few connections do the work of a low rate.
    LastFirst,
    /// The one that has been free for longest.
    InTurn,
}

/// Requests that are due.
#[derive(Debug)]
pub struct Queue {
    waiting: RefCell<VecDeque<Due>>,
    /// Callers without a request.
    idle: RefCell<VecDeque<Rc<Notify>>>,
    order: Order,
    closed: Cell<bool>,
}

impl Queue {
    /// A queue that is open, with nobody at it.
    pub fn new(order: Order) -> Queue {
        Queue { waiting: RefCell::default(), idle: RefCell::default(), order, closed: Cell::new(false) }
    }

    /// Puts a request at the end.
    pub fn put(&self, due: Due) -> Put {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() == MAX_WAITING {
            return Put::Dropped;
        }
        waiting.push_back(due);
        let mut idle = self.idle.borrow_mut();
        let caller = match self.order {
            Order::LastFirst => idle.pop_back(),
            Order::InTurn => idle.pop_front(),
        };
        match caller {
            Some(caller) => {
                caller.notify_one();
                Put::Claimed
            }
            None => Put::Waits,
        }
    }

    /// The first request, once there is one; `None` once the queue is closed and empty.
    pub async fn take(&self, caller: &Rc<Notify>) -> Option<Due> {
        loop {
            if let Some(due) = self.waiting.borrow_mut().pop_front() {
                return Some(due);
            }
            if self.closed.get() {
                return None;
            }
            self.idle.borrow_mut().push_back(caller.clone());
            caller.notified().await;
        }
    }

    /// Nothing more will come; with `drop_waiting`, what waits is thrown away.
    ///
    /// # Returns
    /// How many requests were thrown away.
    pub fn close(&self, drop_waiting: bool) -> usize {
        self.closed.set(true);
        self.idle.borrow_mut().drain(..).for_each(|caller| caller.notify_one());
        if drop_waiting { self.waiting.borrow_mut().drain(..).len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(request: usize) -> Due {
        let now = alipes_clock::now();
        Due { request, due: now, dispatched: now }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_caller_that_was_busy_last_is_called_first() {
        let queue = Rc::new(Queue::new(Order::LastFirst));
        let seen = Rc::new(RefCell::new(Vec::new()));
        let callers = tokio::task::LocalSet::new();
        for name in ["first", "second"] {
            let (queue, seen) = (queue.clone(), seen.clone());
            callers.spawn_local(async move {
                let own = Rc::new(Notify::new());
                while let Some(due) = queue.take(&own).await {
                    seen.borrow_mut().push((name, due.request));
                }
            });
        }
        callers
            .run_until(async {
                tokio::task::yield_now().await;
                assert_eq!(queue.put(due(1)), Put::Claimed);
                tokio::task::yield_now().await;
                assert_eq!(queue.put(due(2)), Put::Claimed);
                assert_eq!(queue.put(due(3)), Put::Claimed);
                assert_eq!(queue.put(due(4)), Put::Waits);
                assert_eq!(queue.close(false), 0);
            })
            .await;
        callers.await;
        let seen = seen.borrow();
        assert_eq!(seen[..2], [("second", 1), ("second", 2)]);
        assert_eq!(seen.iter().map(|(_, request)| *request).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn what_waits_at_the_end_is_thrown_away_and_counted() {
        let queue = Queue::new(Order::LastFirst);
        queue.put(due(1));
        queue.put(due(2));
        assert_eq!(queue.close(true), 2);
    }
}
