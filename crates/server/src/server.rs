//! The server as the control plane drives it: bind, start, drain, stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;
use thiserror::Error;

use crate::handlers::Service;
use crate::spec::ServerConfig;
use crate::wire::bind::{BindError, Bound};
use crate::wire::network::{Listeners, Network, local_address};

/// Why a server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A socket could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system refuses threads or event loops.
    #[error("cannot start the network threads: {0}")]
    Threads(#[from] io::Error),
    /// It was started before.
    #[error("the server was started already")]
    Started,
}

/// The addresses that a server really listens on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addresses {
    /// Of HTTP, where it is offered.
    pub http: Option<SocketAddr>,
    /// Of gRPC, where it is offered.
    pub grpc: Option<SocketAddr>,
    /// Of metrics, where they are offered.
    pub metrics: Option<SocketAddr>,
}

struct Sockets {
    http: Option<Bound>,
    grpc: Option<Bound>,
    metrics: Option<Bound>,
}

impl Sockets {
    fn listen(self) -> Result<Listeners, BindError> {
        Ok(Listeners {
            http: self.http.map(Bound::listen).transpose()?,
            grpc: self.grpc.map(Bound::listen).transpose()?,
            metrics: self.metrics.map(Bound::listen).transpose()?,
        })
    }
}

enum State {
    Bound(Sockets, Network),
    Running(Network),
    Stopped,
}

/// A server: its service, and its sockets or network threads.
pub struct Server {
    /// What it serves.
    pub service: Arc<Service>,
    state: Mutex<State>,
}

impl Server {
    /// Binds the sockets, so that a port in use is told before any model is loaded, and starts the network threads,
    /// which watch worker processes from the first load on.
    ///
    /// # Errors
    ///
    /// A port is taken, an address is not one of this machine, or the system refuses threads.
    pub fn bind(config: ServerConfig) -> Result<Server, StartError> {
        let sockets = Sockets {
            http: Bound::new(&config.http)?,
            grpc: Bound::new(&config.grpc)?,
            metrics: Bound::new(&config.metrics)?,
        };
        let service = Arc::new(Service::new(config));
        let network = Network::start(&service, network_threads(&service.config))?;
        Ok(Server { service, state: Mutex::new(State::Bound(sockets, network)) })
    }

    /// Begins to accept connections.
    ///
    /// # Errors
    ///
    /// Another process took a port meanwhile.
    pub fn start(&self) -> Result<Addresses, StartError> {
        let mut state = self.state.lock();
        let (sockets, network) = match std::mem::replace(&mut *state, State::Stopped) {
            State::Bound(sockets, network) => (sockets, network),
            other => {
                *state = other;
                return Err(StartError::Started);
            }
        };
        let listeners = match sockets.listen() {
            Ok(listeners) => listeners,
            Err(error) => {
                network.close();
                return Err(error.into());
            }
        };
        let addresses = Addresses {
            http: local_address(listeners.http.as_ref()),
            grpc: local_address(listeners.grpc.as_ref()),
            metrics: local_address(listeners.metrics.as_ref()),
        };
        network.open(listeners);
        *state = State::Running(network);
        Ok(addresses)
    }

    /// Refuses what is new and waits for what is in; false where the deadline came first.
    pub fn drain(&self, deadline: Instant) -> bool {
        self.service.inflight.close();
        if let State::Running(network) = &*self.state.lock() {
            network.drain();
        }
        let empty = self.service.inflight.wait_empty(deadline);
        self.service.workers.stop(deadline) && empty
    }

    /// Ends everything.
    pub fn stop(&self) {
        self.service.control.close();
        self.service.workers.stop(Instant::now());
        let state = std::mem::replace(&mut *self.state.lock(), State::Stopped);
        if let State::Bound(_, network) | State::Running(network) = state {
            network.close();
        }
        self.service.events.close();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Half the cores, at least two: the other half computes.
fn network_threads(config: &ServerConfig) -> usize {
    match config.network_threads {
        0 => (thread::available_parallelism().map_or(1, usize::from) / 2).max(2),
        threads => threads,
    }
}
