//! The network threads: each runs its own event loop, and one of them accepts connections for all.
//!
//! A connection stays on its thread for life, so that threads share nothing on the request path but the model's queue.
//! Assigning connections in turn keeps a handful of busy ones spread evenly, which the kernel's own choice between
//! several listening sockets does not.

use std::io;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alipes_protocol::limits;
use alipes_spec::ConnectionSpec;
use alipes_stats::events::EventQueue;
use alipes_stats::priority::{self, Priority};
use alipes_stats::turn::{self, Task, TurnMeters, timed};
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::accept_pause::AcceptPause;
use super::acceptor::{Acceptor, Connection};
use super::capacity::Capacity;
use super::connection::{Accepted, Activity, Socket, TransportStream};
use super::idle::IdleClock;
use super::listener::Listener;
use super::phase::{Phase, Shutdown};
use super::phases::Phases;
use super::policy::ListenerKind;
use super::probation::Probation;
use super::steps::Steps;
use super::tls::Tls;
use super::turnover::Turnover;

/// Work of the server on each network thread, beside its connections.
#[derive(Clone, Copy)]
pub struct ThreadHooks {
    /// Called on the event loop before its first connection.
    pub start: fn(),
    /// Called on the thread after its event loop has ended.
    pub stop: fn(),
}

/// The settings of the network.
pub struct NetworkOptions {
    /// Network threads.
    pub threads: usize,
    /// Limits on connections.
    pub limits: ConnectionSpec,
    /// Where rejected connections, failed handshakes and reloaded certificates are logged.
    pub events: Arc<EventQueue>,
    /// Where the turns of the threads are counted.
    pub turns: Arc<TurnMeters>,
    /// What else runs on each thread.
    pub hooks: ThreadHooks,
    /// Counts the calls of clients, where the server ends once it is idle.
    pub idle: Option<Arc<IdleClock>>,
}

/// The running network threads.
pub struct Network {
    phases: Arc<Phases>,
    threads: Vec<JoinHandle<()>>,
    event_loops: Vec<runtime::Handle>,
    connections: Vec<mpsc::UnboundedSender<Connection>>,
    /// Connections of clients, once listeners are open.
    clients: OnceLock<Arc<Capacity>>,
    limits: ConnectionSpec,
    probation: Arc<Probation>,
    events: Arc<EventQueue>,
    idle: Option<Arc<IdleClock>>,
    pause: Arc<AcceptPause>,
}

impl Network {
    /// Starts the threads; nothing is accepted yet.
    ///
    /// # Errors
    ///
    /// The system refuses a thread or an event loop.
    pub fn start(options: NetworkOptions) -> io::Result<Network> {
        let NetworkOptions { threads, limits, events, turns, hooks, idle } = options;
        let (phases, watching) = Phases::new();
        let (connections, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::unbounded_channel()).unzip();
        let mut network = Network {
            phases: Arc::new(phases),
            threads: Vec::with_capacity(threads),
            event_loops: Vec::with_capacity(threads),
            connections,
            clients: OnceLock::new(),
            probation: Probation::new(&limits, Arc::clone(&events)),
            limits,
            events,
            idle,
            pause: Arc::default(),
        };
        for (number, receiver) in receivers.into_iter().enumerate() {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            network.event_loops.push(runtime.handle().clone());
            let (phase, events) = (watching.clone(), Arc::clone(&network.events));
            let handle = thread::Builder::new().name(format!("alipes-net-{number}"));
            let turns = Arc::clone(&turns);
            network.threads.push(handle.spawn(move || {
                priority::set(Priority::Network);
                turn::watch(&turns, number);
                runtime.block_on(timed(Task::Thread, async {
                    (hooks.start)();
                    serve_connections(receiver, phase, events).await;
                }));
                (hooks.stop)();
            })?);
        }
        Ok(network)
    }

    /// The event loops of the threads.
    pub fn event_loops(&self) -> &[runtime::Handle] {
        &self.event_loops
    }

    /// What takes the network through its phases.
    pub fn phases(&self) -> &Arc<Phases> {
        &self.phases
    }

    /// What has the acceptors of clients pause, where the server ends once it is idle.
    pub fn pause(&self) -> &Arc<AcceptPause> {
        &self.pause
    }

    /// Bounds the connections by another amount of memory, unless their number was given.
    pub fn limit_memory(&self, bytes: u64) {
        if let Some(clients) = self.clients.get() {
            clients.limit_memory(bytes);
        }
    }

    /// Begins to accept.
    pub fn open(&self, listeners: Vec<Listener>) {
        let Some(accepting) = self.event_loops.first() else { return };
        let clients = self.clients.get_or_init(|| match self.limits.max_connections {
            0 => Capacity::derived(self.limits.memory_bytes),
            most => Capacity::of(most),
        });
        for Listener { socket, protocol, tls } in listeners {
            let kind = protocol.policy().kind;
            // The metrics listener answers on a server that is full too: it has a capacity of its own, and old
            // connections give way to new ones.
            let (capacity, turnover) = match kind {
                ListenerKind::Metrics => (Capacity::of(limits::METRICS_MAX_CONNECTIONS), Some(Arc::default())),
                ListenerKind::Http | ListenerKind::Grpc => (Arc::clone(clients), None::<Arc<Turnover>>),
            };
            self.phases.count(kind, &capacity);
            let (probation, events) = (Arc::clone(&self.probation), Arc::clone(&self.events));
            let acceptor = Acceptor::new(protocol, tls, capacity, turnover, probation, events);
            let acceptor = match (kind, &self.idle) {
                (ListenerKind::Http | ListenerKind::Grpc, Some(idle)) => {
                    acceptor.that_pauses(Arc::clone(idle), Arc::clone(&self.pause))
                }
                _ => acceptor,
            };
            if let Some(reload) = acceptor.reload() {
                accepting.spawn(timed(Task::Certificates, reload));
            }
            let run = acceptor.run(socket, self.connections.clone(), self.phases.subscribe());
            accepting.spawn(timed(Task::Acceptor, run));
        }
    }

    /// Ends everything and waits for the threads.
    pub fn close(self) {
        self.phases.close();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Serves the connections that this thread is assigned, until everything ends.
async fn serve_connections(
    mut receiver: mpsc::UnboundedReceiver<Connection>,
    phase: watch::Receiver<Phase>,
    events: Arc<EventQueue>,
) {
    let mut connections = JoinSet::new();
    let shutdown = Shutdown::new(phase);
    let closed = shutdown.clone().reached(Phase::Closed);
    tokio::pin!(closed);
    let mut steps = Steps::new(limits::CONNECTIONS_PER_TURN);
    loop {
        tokio::select! {
            Some(connection) = receiver.recv() => {
                steps.begin().await;
                let serving = serve(connection, shutdown.clone(), Arc::clone(&events));
                connections.spawn(timed(Task::Connection, serving));
            }
            Some(_) = connections.join_next() => {}
            () = &mut closed => return,
        }
    }
}

/// Serves a connection until it ends, or has to give way to another.
async fn serve(connection: Connection, shutdown: Shutdown, events: Arc<EventQueue>) {
    let Connection { stream, protocol, tls, permit, origin, membership, idle } = connection;
    let peer = stream.address();
    let activity = match &membership {
        Some(membership) => Arc::clone(membership.activity()),
        None => Arc::new(Activity::of_server(idle)),
    };
    let serving = async {
        let timeouts = protocol.policy().timeouts;
        let socket = tokio::select! {
            biased;
            socket = encrypt(stream, tls.as_deref(), timeouts.head, &events) => socket,
            () = shutdown.clone().overdue(timeouts.drain) => None,
        };
        let Some(socket) = socket else { return };
        let transport = TransportStream::new(socket, timeouts.stall).with_origin(origin).with_peer(peer);
        protocol.serve(transport.counted_by(activity), shutdown).await;
    };
    match &membership {
        None => serving.await,
        Some(membership) => tokio::select! {
            () = serving => {}
            () = membership.evicted() => {}
        },
    }
    drop(permit);
}

/// The connection, encrypted where it has to be; none where the handshake fails or takes too long.
async fn encrypt(
    stream: Accepted,
    tls: Option<&Tls>,
    timeout: Option<Duration>,
    events: &EventQueue,
) -> Option<Socket> {
    let stream = stream.adopt().ok()?;
    let Some(tls) = tls else { return Some(Socket::Plain(stream)) };
    let client = stream.client();
    let outcome = tls.accept(stream, timeout).await;
    outcome.inspect_err(|failure| tls.log_failure(events, failure, &client)).ok()
}
