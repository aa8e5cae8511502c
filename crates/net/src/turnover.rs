//! Connections of a listener that make room for new ones: the oldest without a request gives way.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::connection::Activity;

/// The open connections of a listener, the oldest first.
#[derive(Default)]
pub struct Turnover {
    open: Mutex<Vec<Arc<Member>>>,
}

/// An open connection.
struct Member {
    activity: Arc<Activity>,
    leave: Notify,
}

/// The place of an open connection in the list, until it is dropped.
pub struct Membership {
    turnover: Arc<Turnover>,
    member: Arc<Member>,
}

impl Turnover {
    /// Adds a connection.
    pub fn enter(turnover: &Arc<Turnover>) -> Membership {
        let member = Arc::new(Member { activity: Arc::default(), leave: Notify::new() });
        turnover.open.lock().push(Arc::clone(&member));
        Membership { turnover: Arc::clone(turnover), member }
    }

    /// Asks the oldest connection without a request to end; where each has one, the oldest of all, whose client has
    /// kept it longest. False where there is none.
    pub fn evict(&self) -> bool {
        let mut open = self.open.lock();
        if open.is_empty() {
            return false;
        }
        let oldest = open.iter().position(|member| !member.activity.sample().is_busy()).unwrap_or(0);
        open.remove(oldest).leave.notify_one();
        true
    }
}

impl Membership {
    /// The counts of the connection.
    pub fn activity(&self) -> &Arc<Activity> {
        &self.member.activity
    }

    /// Ends when the connection has to give way.
    pub async fn evicted(&self) {
        self.member.leave.notified().await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.turnover.open.lock().retain(|member| !Arc::ptr_eq(member, &self.member));
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_evicted(membership: &Membership) -> bool {
        pin!(membership.evicted()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_oldest_without_a_request_gives_way_then_the_oldest() {
        let turnover = Arc::new(Turnover::default());
        assert!(!turnover.evict());
        let members = [Turnover::enter(&turnover), Turnover::enter(&turnover), Turnover::enter(&turnover)];
        let _call = members[0].activity().begin();
        assert!(turnover.evict());
        assert_eq!(members.each_ref().map(is_evicted), [false, true, false]);
        assert!(turnover.evict() && turnover.evict());
        assert_eq!(members.each_ref().map(is_evicted), [true, false, true]);
        assert!(!turnover.evict());
    }

    #[test]
    fn a_connection_that_has_ended_gives_way_to_nobody() {
        let turnover = Arc::new(Turnover::default());
        drop(Turnover::enter(&turnover));
        assert!(!turnover.evict());
    }
}
