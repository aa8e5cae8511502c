//! What takes the network from one phase to the next.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alipes_protocol::limits::REFUSAL_TIME;
use tokio::sync::watch;

use super::capacity::Capacity;
use super::phase::Phase;
use super::policy::ListenerKind;

/// Takes the network through its phases, never back. Connections see the phase and end by themselves.
pub struct Phases {
    phase: watch::Sender<Phase>,
    clients: OnceLock<Arc<Capacity>>,
    metrics: OnceLock<Arc<Capacity>>,
}

impl Phases {
    /// An open network, and what its connections watch.
    pub fn new() -> (Phases, watch::Receiver<Phase>) {
        let (phase, watching) = watch::channel(Phase::Open);
        (Phases { phase, clients: OnceLock::new(), metrics: OnceLock::new() }, watching)
    }

    /// What a further part of the network watches.
    pub fn subscribe(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Watches the connections of a listener of this kind.
    pub fn count(&self, kind: ListenerKind, connections: &Arc<Capacity>) {
        let counted = match kind {
            ListenerKind::Http | ListenerKind::Grpc => &self.clients,
            ListenerKind::Metrics => &self.metrics,
        };
        let _ = counted.set(Arc::clone(connections));
    }

    /// Has each answer say that its connection ends. Returns once no client is connected, or false after the grace.
    pub fn drain(&self, grace: Duration, deadline: Instant) -> bool {
        self.advance(Phase::Draining);
        self.wait(deadline.min(alipes_clock::now() + grace), Capacity::wait_all)
    }

    /// Refuses further requests, and waits until those that came before are answered, and their clients have read it;
    /// false where the deadline came first.
    pub fn refuse(&self, deadline: Instant) -> bool {
        self.advance(Phase::Refusing);
        // Each connection until now ends after the requests that it is in.
        self.wait(deadline, Capacity::wait_early)
    }

    /// Closes the listeners, and gives those who have just come their refusal and their grace.
    pub fn close_listeners(&self, grace: Duration, deadline: Instant) {
        self.advance(Phase::Closing);
        // The grace is measured in steps of a quarter, and HTTP/2 has two.
        self.wait(deadline.min(alipes_clock::now() + 3 * grace.max(REFUSAL_TIME)), Capacity::wait_all);
    }

    /// Has what is not answered yet answered with an error, and gives clients a moment to read that.
    pub fn cut(&self) {
        self.advance(Phase::Cut);
        let moment = alipes_clock::now() + REFUSAL_TIME;
        self.wait(moment, Capacity::wait_all);
        if let Some(metrics) = self.metrics.get() {
            metrics.wait_all(moment);
        }
    }

    /// Ends everything.
    pub fn close(&self) {
        self.advance(Phase::Closed);
    }

    /// Waits for connections of clients; false where the deadline came first.
    fn wait(&self, deadline: Instant, ended: impl FnOnce(&Capacity, Instant) -> bool) -> bool {
        self.clients.get().is_none_or(|clients| ended(clients, deadline))
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let is_later = *phase < to;
            *phase = if is_later { to } else { *phase };
            is_later
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn clients(phases: &Phases) -> Arc<Capacity> {
        let clients = Capacity::of(8);
        phases.count(ListenerKind::Http, &clients);
        clients
    }

    #[test]
    fn no_phase_follows_a_later_one() {
        let (phases, watching) = Phases::new();
        phases.cut();
        phases.drain(LONG, alipes_clock::now() + LONG);
        assert_eq!(*watching.borrow(), Phase::Cut);
    }

    #[test]
    fn nobody_waits_where_no_client_is_connected() {
        let (phases, watching) = Phases::new();
        drop(clients(&phases).acquire());
        let deadline = alipes_clock::now() + LONG;
        phases.drain(LONG, deadline);
        assert!(phases.refuse(deadline));
        phases.close_listeners(LONG, deadline);
        phases.cut();
        assert_eq!(*watching.borrow(), Phase::Cut);
    }

    #[test]
    fn only_connections_from_before_are_waited_for_while_others_are_refused() {
        let (phases, _watching) = Phases::new();
        let clients = clients(&phases);
        let early = clients.acquire();
        assert!(!phases.refuse(alipes_clock::now()));
        let late = clients.acquire();
        drop(early);
        assert!(phases.refuse(alipes_clock::now()));
        assert!(!clients.wait_all(alipes_clock::now()));
        drop(late);
        assert!(clients.wait_all(alipes_clock::now()));
    }
}
