//! A pause of accepting: clients that connect meanwhile wait in the queue of the listening socket.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;

/// Has the acceptors of clients pause, and knows that they do.
pub struct AcceptPause {
    wanted: watch::Sender<bool>,
    /// Acceptors that pause now.
    paused: Mutex<usize>,
    changed: Condvar,
}

impl Default for AcceptPause {
    fn default() -> AcceptPause {
        AcceptPause { wanted: watch::Sender::new(false), paused: Mutex::new(0), changed: Condvar::new() }
    }
}

impl AcceptPause {
    /// What an acceptor watches.
    pub fn subscribe(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }

    /// Has all acceptors pause. Returns once they do: what was accepted before is known to the network by then. False
    /// where the deadline came first, and accepting goes on.
    pub fn begin(&self, deadline: Instant) -> bool {
        self.wanted.send_replace(true);
        let mut paused = self.paused.lock();
        while *paused < self.wanted.receiver_count() {
            if self.changed.wait_until(&mut paused, deadline).timed_out() {
                let all = *paused >= self.wanted.receiver_count();
                if !all {
                    self.wanted.send_replace(false);
                }
                return all;
            }
        }
        true
    }

    /// Ends the pause.
    pub fn end(&self) {
        self.wanted.send_replace(false);
    }

    /// Counts an acceptor as one that pauses, until this is dropped.
    pub fn hold(&self) -> Paused<'_> {
        *self.paused.lock() += 1;
        self.changed.notify_all();
        Paused(self)
    }
}

/// An acceptor that pauses.
pub struct Paused<'a>(&'a AcceptPause);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        *self.0.paused.lock() -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pause_has_begun_once_each_acceptor_pauses() {
        let pause = AcceptPause::default();
        let watching = [pause.subscribe(), pause.subscribe()];
        let _first = pause.hold();
        assert!(!pause.begin(alipes_clock::now()));
        assert!(watching.iter().all(|one| !*one.borrow()));
        let _second = pause.hold();
        assert!(pause.begin(alipes_clock::now() + Duration::from_secs(600)));
        assert!(*watching[0].borrow());
        pause.end();
        assert!(!*watching[1].borrow());
    }

    #[test]
    fn without_a_listener_there_is_nothing_to_wait_for() {
        assert!(AcceptPause::default().begin(alipes_clock::now()));
    }
}
