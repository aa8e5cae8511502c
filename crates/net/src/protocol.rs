//! The border between the network and what is spoken on a connection: each listener is given its protocol at
//! composition.

use std::pin::Pin;
use std::sync::Arc;

use super::connection::TransportStream;
use super::phase::Shutdown;
use super::policy::ListenerPolicy;

/// The service of one connection, from its first byte to its last.
pub type Serving = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A protocol that serves the connections of a listener.
pub trait Protocol: Send + Sync {
    /// What the listener admits, and what its connections may use.
    fn policy(&self) -> &ListenerPolicy;

    /// Serves one connection until it ends or, once the network drains, until its open requests are answered.
    fn serve(self: Arc<Self>, transport: TransportStream, shutdown: Shutdown) -> Serving;
}
