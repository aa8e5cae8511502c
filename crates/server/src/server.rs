//! The server as the control plane drives it: bind, start, drain, stop.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use thiserror::Error;

use crate::net::bind::{BindError, Bound};
use crate::net::door::Kind;
use crate::net::network::{Entrance, Network};
use crate::net::tls::{Tls, TlsError};
use crate::service::Service;
use crate::spec::{Endpoint, ServerConfig};

/// Why a server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A socket could not be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The system refuses threads or event loops.
    #[error("cannot start the network threads: {0}")]
    Threads(#[from] io::Error),
    /// It was started before.
    #[error("the server was started already")]
    Started,
}

/// The addresses that a server really listens on: `host:port`, or `unix:` and a path.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// Of HTTP, where it is offered.
    pub http: Option<String>,
    /// Of gRPC, where it is offered.
    pub grpc: Option<String>,
    /// Of metrics, where they are offered.
    pub metrics: Option<String>,
}

impl Addresses {
    fn of(entrances: &[Entrance]) -> Addresses {
        let address = |kind| entrances.iter().find(|entrance| entrance.kind == kind)?.listener.address();
        Addresses { http: address(Kind::Http), grpc: address(Kind::Grpc), metrics: address(Kind::Metrics) }
    }
}

/// A door whose socket is bound and whose certificate was read.
struct Prepared {
    kind: Kind,
    socket: Bound,
    tls: Option<Arc<Tls>>,
}

impl Prepared {
    /// Prepares the doors that are offered.
    fn all(config: &ServerConfig) -> Result<Vec<Prepared>, StartError> {
        let doors = [(Kind::Http, &config.http), (Kind::Grpc, &config.grpc), (Kind::Metrics, &config.metrics)];
        doors.into_iter().filter_map(|(kind, endpoint)| Prepared::new(kind, endpoint).transpose()).collect()
    }

    fn new(kind: Kind, endpoint: &Endpoint) -> Result<Option<Prepared>, StartError> {
        let Some(socket) = Bound::new(endpoint)? else { return Ok(None) };
        let tls = endpoint.tls.as_ref().map(|spec| Tls::new(kind, spec)).transpose()?.map(Arc::new);
        Ok(Some(Prepared { kind, socket, tls }))
    }

    fn listen(self) -> Result<Entrance, BindError> {
        Ok(Entrance { kind: self.kind, listener: self.socket.listen()?, tls: self.tls })
    }
}

/// Longest time that the last traces may take to be written, once the server has stopped.
const TRACES_TIMEOUT: Duration = Duration::from_secs(5);

enum State {
    Bound(Vec<Prepared>, Network),
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
    /// A port is taken, an address is not one of this machine, a certificate cannot be used, or the system refuses
    /// threads.
    pub fn bind(config: ServerConfig) -> Result<Server, StartError> {
        let doors = Prepared::all(&config)?;
        let service = Arc::new(Service::new(config));
        let network = Network::start(&service, network_threads(&service.config))?;
        Ok(Server { service, state: Mutex::new(State::Bound(doors, network)) })
    }

    /// Begins to accept connections.
    ///
    /// # Errors
    ///
    /// Another process took a port meanwhile.
    pub fn start(&self) -> Result<Addresses, StartError> {
        let mut state = self.state.lock();
        let (doors, network) = match std::mem::replace(&mut *state, State::Stopped) {
            State::Bound(doors, network) => (doors, network),
            other => {
                *state = other;
                return Err(StartError::Started);
            }
        };
        let entrances: Vec<Entrance> = match doors.into_iter().map(Prepared::listen).collect() {
            Ok(entrances) => entrances,
            Err(error) => {
                network.close();
                return Err(BindError::into(error));
            }
        };
        let addresses = Addresses::of(&entrances);
        network.open(entrances);
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
        self.service.traces.close(Instant::now() + TRACES_TIMEOUT);
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
