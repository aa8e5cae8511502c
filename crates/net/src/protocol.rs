//! The border between the network and what is spoken on a connection: each listener is given its protocol at
//! composition.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

use super::connection::TransportStream;
use super::phase::Phase;
use super::policy::ListenerPolicy;

/// The service of one connection, from its first byte to its last.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A protocol that serves the connections of a listener.
pub trait Protocol: Send + Sync {
    /// What the listener admits, and what its connections may use.
    fn policy(&self) -> &ListenerPolicy;

    /// Serves one connection until it ends or, once `shutdown` begins, until its open requests are answered.
    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving;
}

/// When the connections of a listener have to end.
pub struct Shutdown {
    phase: watch::Receiver<Phase>,
    begins_with: Phase,
}

impl Shutdown {
    /// The shutdown that begins when the network reaches a phase.
    pub fn new(phase: watch::Receiver<Phase>, begins_with: Phase) -> Shutdown {
        Shutdown { phase, begins_with }
    }

    /// Ends when the shutdown begins.
    pub async fn begun(mut self) {
        drop(self.phase.wait_for(|phase| *phase >= self.begins_with).await);
    }
}
