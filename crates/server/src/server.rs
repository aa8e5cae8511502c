//! The server as the control plane drives it: bind, start, drain, stop.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use alipes_grpc::GrpcProtocol;
use alipes_http::{HttpProtocol, MetricsProtocol};
use alipes_net::accept_pause::AcceptPause;
use alipes_net::api_keys::ApiKeys;
use alipes_net::bind::{BindError, BoundSocket};
use alipes_net::idle::IdleClock;
use alipes_net::listener::Listener;
use alipes_net::network::{Network, NetworkOptions, ThreadHooks};
use alipes_net::phases::Phases;
use alipes_net::policy::ListenerKind;
use alipes_net::protocol::Protocol;
use alipes_net::tls::{Tls, TlsError};
use alipes_runtime::executor::run_queue::RunQueue;
use alipes_service::Service;
use alipes_spec::{Endpoint, ServerConfig};
use parking_lot::Mutex;
use thiserror::Error;

use crate::compose;

/// Why a server could not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// A socket could not be had. In Triton's words, which name services in their own way.
    #[error("failed to start {} service: Unavailable - {cause}", service_name(*kind))]
    Bind {
        /// Whose it was to be.
        kind: ListenerKind,
        /// Why.
        cause: BindError,
    },
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

fn service_name(kind: ListenerKind) -> &'static str {
    match kind {
        ListenerKind::Http => "HTTP",
        ListenerKind::Grpc => "GRPC",
        ListenerKind::Metrics => "Metrics",
    }
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
    fn of(listeners: &[Listener]) -> Addresses {
        let address = |kind| {
            let listener = listeners.iter().find(|listener| listener.protocol.policy().kind == kind)?;
            listener.socket.address()
        };
        Addresses {
            http: address(ListenerKind::Http),
            grpc: address(ListenerKind::Grpc),
            metrics: address(ListenerKind::Metrics),
        }
    }
}

/// Listening sockets that another process made, and goes on to hold; each takes the place of an endpoint's own.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    /// For HTTP.
    pub http: Option<OwnedFd>,
    /// For gRPC.
    pub grpc: Option<OwnedFd>,
    /// For metrics.
    pub metrics: Option<OwnedFd>,
}

/// A listener whose socket is bound and whose certificate was read.
struct Prepared {
    kind: ListenerKind,
    socket: BoundSocket,
    tls: Option<Arc<Tls>>,
}

impl Prepared {
    /// Prepares the listeners of all endpoints that are enabled, in Triton's order: of several that cannot be had, the
    /// first is reported.
    fn all(config: &ServerConfig, inherited: InheritedSockets) -> Result<Vec<Prepared>, StartError> {
        let endpoints = [
            (ListenerKind::Grpc, &config.grpc, inherited.grpc),
            (ListenerKind::Http, &config.http, inherited.http),
            (ListenerKind::Metrics, &config.metrics, inherited.metrics),
        ];
        let prepare = |(kind, endpoint, socket)| Prepared::new(kind, endpoint, socket).transpose();
        endpoints.into_iter().filter_map(prepare).collect()
    }

    fn new(kind: ListenerKind, endpoint: &Endpoint, socket: Option<OwnedFd>) -> Result<Option<Prepared>, StartError> {
        let bound = match socket {
            Some(socket) => BoundSocket::inherited(socket).map(Some),
            None => BoundSocket::new(endpoint),
        };
        let bound = bound.map_err(|cause| StartError::Bind { kind, cause })?;
        let Some(socket) = bound else { return Ok(None) };
        let tls = endpoint.tls.as_ref().map(|spec| Tls::new(kind, spec)).transpose()?.map(Arc::new);
        Ok(Some(Prepared { kind, socket, tls }))
    }

    fn listen(self, service: &Arc<Service>, api_keys: &Arc<ApiKeys>) -> Result<Listener, StartError> {
        let kind = self.kind;
        let socket = self.socket.listen().map_err(|cause| StartError::Bind { kind, cause })?;
        Ok(Listener { socket, protocol: protocol(kind, service, api_keys), tls: self.tls })
    }
}

/// The protocol of each listener.
fn protocol(kind: ListenerKind, service: &Arc<Service>, api_keys: &Arc<ApiKeys>) -> Arc<dyn Protocol> {
    let service = Arc::clone(service);
    match kind {
        ListenerKind::Http => Arc::new(HttpProtocol::new(service, api_keys)),
        ListenerKind::Grpc => Arc::new(GrpcProtocol::new(service, api_keys)),
        ListenerKind::Metrics => Arc::new(MetricsProtocol::new(service, api_keys)),
    }
}

/// The run-to-completion queue of each network thread.
const HOOKS: ThreadHooks =
    ThreadHooks { start: || drop(tokio::spawn(RunQueue::open().serve())), stop: RunQueue::close };

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
    phases: Arc<Phases>,
    /// Keys that clients show, on all of its listeners.
    api_keys: Arc<ApiKeys>,
    /// Certificates of its listeners.
    encryption: Vec<Arc<Tls>>,
    /// Counts the calls of clients.
    idle: Arc<IdleClock>,
    /// Has the acceptors of clients pause.
    pause: Arc<AcceptPause>,
    state: Mutex<State>,
}

impl Server {
    /// Binds the sockets, so that a port in use is reported before any model is loaded, and starts the network threads,
    /// which watch worker processes from the first load on.
    ///
    /// # Errors
    ///
    /// A port is taken, an address is not one of this machine, a certificate cannot be used, or the system refuses
    /// threads.
    pub fn bind(config: ServerConfig, inherited: InheritedSockets) -> Result<Server, StartError> {
        let prepared = Prepared::all(&config, inherited)?;
        let idle = Arc::new(IdleClock::new(alipes_clock::now()));
        let api_keys = Arc::new(ApiKeys::new(config.api_keys.as_ref()));
        let service = Arc::new(compose::service(config));
        let network = Network::start(NetworkOptions {
            threads: network_threads(&service.config),
            limits: service.config.connections.clone(),
            events: Arc::clone(&service.events),
            turns: Arc::clone(&service.turns),
            hooks: HOOKS,
            idle: service.config.ends_idle.then(|| Arc::clone(&idle)),
        })?;
        service.reactors.set(network.event_loops().to_vec());
        let (phases, pause) = (Arc::clone(network.phases()), Arc::clone(network.pause()));
        let encryption = prepared.iter().filter_map(|prepared| prepared.tls.clone()).collect();
        let state = Mutex::new(State::Bound(prepared, network));
        Ok(Server { service, phases, api_keys, encryption, idle, pause, state })
    }

    /// Begins to accept connections.
    ///
    /// # Errors
    ///
    /// Another process took a port meanwhile.
    pub fn start(&self) -> Result<Addresses, StartError> {
        let mut state = self.state.lock();
        let (prepared, network) = match std::mem::replace(&mut *state, State::Stopped) {
            State::Bound(prepared, network) => (prepared, network),
            other => {
                *state = other;
                return Err(StartError::Started);
            }
        };
        let listen = |prepared: Prepared| prepared.listen(&self.service, &self.api_keys);
        let listeners: Vec<Listener> = match prepared.into_iter().map(listen).collect() {
            Ok(listeners) => listeners,
            Err(error) => {
                network.close();
                return Err(error);
            }
        };
        let addresses = Addresses::of(&listeners);
        if let Some(metrics) = &addresses.metrics {
            let _ = self.service.metrics_address.set(metrics.clone());
        }
        network.open(listeners);
        *state = State::Running(network);
        Ok(addresses)
    }

    /// Reads certificates again, and lets go of files that were moved away. What goes wrong is logged.
    pub fn reload(&self) {
        self.encryption.iter().for_each(|tls| self.service.events.push(tls.renew()));
        self.service.traces.reopen();
    }

    /// Takes other keys of clients in the place of all, where it asks for keys.
    pub fn set_api_keys(&self, keys: Vec<String>) {
        self.api_keys.replace(keys);
    }

    /// Bounds what is in flight, and connections where their number is derived, by other amounts of memory in bytes.
    pub fn limit_memory(&self, inflight_bytes: u64, connection_bytes: u64) {
        self.service.budget.set_limit(inflight_bytes);
        if let State::Running(network) = &*self.state.lock() {
            network.limit_memory(connection_bytes);
        }
    }

    /// For how long no client has asked for anything, where the configuration says that the server ends then.
    pub fn idle_for(&self) -> Duration {
        self.idle.idle_for(alipes_clock::now())
    }

    /// Accepts no connection of clients any more, for a while. Clients that connect wait in the queue of the listening
    /// socket. False where a listener did not pause by the deadline; then accepting goes on.
    pub fn pause_accepting(&self, deadline: Instant) -> bool {
        self.pause.begin(deadline)
    }

    /// Accepts connections again.
    pub fn resume_accepting(&self) {
        self.pause.end();
    }

    /// Lets clients go and serves whatever they still ask for, until none is connected; false where the deadline came
    /// first.
    pub fn retire(&self, deadline: Instant) -> bool {
        self.phases.drain(deadline.saturating_duration_since(alipes_clock::now()), deadline)
    }

    /// Lets clients go, refuses what comes later, and finishes what came before; false where the deadline came first.
    /// Then what is not finished is answered with an error.
    pub fn drain(&self, deadline: Instant) -> bool {
        let grace = Duration::try_from_secs_f64(self.service.config.connections.exit_grace_s).unwrap_or_default();
        self.phases.drain(grace, deadline);
        let answered = self.phases.refuse(deadline);
        self.service.inflight.close();
        let done = self.service.inflight.wait_empty(deadline) && answered;
        if done {
            self.phases.close_listeners(grace, deadline);
        }
        self.cut();
        self.service.stop_drivers(deadline) && done
    }

    /// Answers what is not finished with an error, and gives clients a moment to read that.
    pub fn cut(&self) {
        self.service.inflight.close();
        self.phases.cut();
    }

    /// Ends everything.
    pub fn stop(&self) {
        self.service.control.close();
        self.service.stop_drivers(alipes_clock::now());
        let state = std::mem::replace(&mut *self.state.lock(), State::Stopped);
        if let State::Bound(_, network) | State::Running(network) = state {
            network.close();
        }
        self.service.traces.close(alipes_clock::now() + TRACES_TIMEOUT);
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
