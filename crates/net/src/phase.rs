//! The phases of the network, from its first connection to its last, and how connections see them.

use std::time::Duration;

use alipes_protocol::limits::REFUSAL_TIME;
use tokio::sync::watch;

/// How far the network has come with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Phase {
    /// Connections are accepted and requests served.
    Open,
    /// The same, but each answer says that its connection ends, and connections without a request end after a grace.
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

    /// The next phase that comes after this one.
    pub async fn later_than(&mut self, seen: Phase) -> Phase {
        let Some(phase) = self.phase.as_mut().filter(|_| seen < Phase::Closed) else {
            return std::future::pending().await;
        };
        // Whoever could tell of a phase is gone: so is the network.
        phase.wait_for(|phase| *phase > seen).await.map_or(Phase::Closed, |phase| *phase)
    }

    /// Ends when the network has reached a phase.
    pub async fn reached(mut self, phase: Phase) {
        let mut seen = self.now();
        while seen < phase {
            seen = self.later_than(seen).await;
        }
    }

    /// Ends when a connection that has not begun anything has had its grace; without one, at the cut. Whoever comes
    /// during a drain has time to ask.
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
