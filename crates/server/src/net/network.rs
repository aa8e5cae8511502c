//! The network threads: each runs its own event loop, and one of them accepts and deals connections out in turn.
//!
//! A connection stays on its thread for life, so nothing on the way of a request is shared between threads but the
//! model's queue. Dealing in turn keeps a handful of busy connections spread evenly, which the kernel's own choice
//! between several listening sockets does not.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alipes_protocol::limits;
use tokio::runtime;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::capacity::{Capacity, Place, turn_away};
use super::connection::{Accepted, Line, Socket};
use super::door::{Door, Kind};
use super::listener::Listener;
use super::tls::Tls;
use crate::events::Event;
use crate::executor::desk::Desk;
use crate::priority::{self, Priority};
use crate::service::Service;
use crate::{grpc, http};

/// Pause after a failed accept, which mostly means that descriptors have run out: the loop must not spin on it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Time between two lines of the log about connections that are refused.
const NOTICE_PAUSE: Duration = Duration::from_secs(60);

/// A door with its socket.
pub struct Entrance {
    /// Which door.
    pub kind: Kind,
    /// Where connections come from.
    pub listener: Listener,
    /// How they are encrypted; none leaves them plain.
    pub tls: Option<Arc<Tls>>,
}

/// How far the network has come with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Phase {
    /// Connections are accepted and requests served.
    Open,
    /// Nothing is accepted; connections end after the request they are in. Metrics stay up.
    Draining,
    /// Everything ends now.
    Closed,
}

/// The running network threads.
pub struct Network {
    phase: watch::Sender<Phase>,
    threads: Vec<JoinHandle<()>>,
    loops: Vec<runtime::Handle>,
    dealers: Vec<mpsc::UnboundedSender<Connection>>,
    service: Arc<Service>,
}

impl Network {
    /// Starts the threads; nothing is accepted yet, but worker processes are watched from here on.
    ///
    /// # Errors
    ///
    /// The system refuses a thread or an event loop.
    pub fn start(service: &Arc<Service>, threads: usize) -> io::Result<Network> {
        let (phase, watching) = watch::channel(Phase::Open);
        let (dealers, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| mpsc::unbounded_channel()).unzip();
        let mut network = Network {
            phase,
            threads: Vec::with_capacity(threads),
            loops: Vec::new(),
            dealers,
            service: Arc::clone(service),
        };
        for (number, receiver) in receivers.into_iter().enumerate() {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            network.loops.push(runtime.handle().clone());
            let thread = NetworkThread { phase: watching.clone(), receiver };
            let handle = thread::Builder::new().name(format!("alipes-net-{number}"));
            network.threads.push(handle.spawn(move || {
                priority::set(Priority::Network);
                runtime.block_on(thread.run());
                Desk::close();
            })?);
        }
        service.reactors.set(network.loops.clone());
        Ok(network)
    }

    /// Begins to accept.
    pub fn open(&self, entrances: Vec<Entrance>) {
        let Some(accepting) = self.loops.first() else { return };
        let capacity = Capacity::new(self.service.config.connections.max_connections);
        for entrance in entrances {
            // Metrics tell about a server that is full.
            let capacity = match entrance.kind {
                Kind::Metrics => Capacity::new(limits::METRICS_MAX_CONNECTIONS),
                _ => Arc::clone(&capacity),
            };
            let porter = Porter {
                door: Arc::new(Door::new(entrance.kind, Arc::clone(&self.service))),
                tls: entrance.tls,
                capacity,
                farewells: Arc::new(Semaphore::new(limits::REFUSALS_AT_A_TIME)),
                told: Cell::new(None),
            };
            if let Some(reload) = porter.reload() {
                accepting.spawn(reload);
            }
            accepting.spawn(porter.accept(entrance.listener, self.dealers.clone(), self.phase.subscribe()));
        }
    }

    /// Accepts nothing more and lets connections end after the request they are in.
    pub fn drain(&self) {
        self.phase.send_replace(Phase::Draining);
    }

    /// Ends everything and waits for the threads.
    pub fn close(self) {
        self.phase.send_replace(Phase::Closed);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// A connection on its way to the thread that serves it.
struct Connection {
    stream: Accepted,
    door: Arc<Door>,
    tls: Option<Arc<Tls>>,
    place: Place,
}

struct NetworkThread {
    phase: watch::Receiver<Phase>,
    receiver: mpsc::UnboundedReceiver<Connection>,
}

impl NetworkThread {
    async fn run(self) {
        let desk = Desk::open();
        tokio::spawn(desk.serve());
        serve_connections(self.receiver, self.phase).await;
    }
}

/// Stands at a door: lets connections in while there is room.
struct Porter {
    door: Arc<Door>,
    tls: Option<Arc<Tls>>,
    capacity: Arc<Capacity>,
    farewells: Arc<Semaphore>,
    /// When the log was last told that there is no room.
    told: Cell<Option<Instant>>,
}

impl Porter {
    /// Takes connections from a listening socket and deals them out to the threads in turn.
    async fn accept(
        self,
        listener: Listener,
        threads: Vec<mpsc::UnboundedSender<Connection>>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let Ok(listener) = listener.adopt() else { return };
        // Metrics tell about a drain while it lasts.
        let last = if self.door.kind == Kind::Metrics { Phase::Closed } else { Phase::Draining };
        for thread in threads.iter().cycle() {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = phase.wait_for(|phase| *phase >= last) => return,
            };
            match accepted {
                Ok(stream) => self.let_in(stream, thread),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn let_in(&self, stream: Accepted, thread: &mpsc::UnboundedSender<Connection>) {
        match self.capacity.take() {
            Some(place) => {
                let (door, tls) = (Arc::clone(&self.door), self.tls.clone());
                let _ = thread.send(Connection { stream, door, tls, place });
            }
            None => {
                self.tell();
                self.turn_away(stream);
            }
        }
    }

    /// Tells the log, now and then.
    fn tell(&self) {
        if self.told.get().is_some_and(|told| told.elapsed() < NOTICE_PAUSE) {
            return;
        }
        self.told.set(Some(Instant::now()));
        let (door, most) = (self.door.kind.name(), self.capacity.most());
        let text = format!("{door} connections are refused: {most} are open, see --max-connections");
        self.door.service.events.tell(Event::Notice { level: 1, text });
    }

    /// Says why; where too many are told already, says nothing.
    fn turn_away(&self, stream: Accepted) {
        let Ok(farewell) = Arc::clone(&self.farewells).try_acquire_owned() else { return };
        let (encrypted, most) = (self.tls.is_some(), self.capacity.most());
        if let Ok(stream) = stream.adopt() {
            tokio::spawn(async move {
                turn_away(encrypted, most, stream).await;
                drop(farewell);
            });
        }
    }

    /// Looks after the certificate, where there is one and it may change.
    fn reload(&self) -> Option<impl Future<Output = ()> + use<>> {
        let tls = Arc::clone(self.tls.as_ref()?);
        let every = Duration::try_from_secs_f64(self.door.limits.tls_reload_s).ok().filter(|every| !every.is_zero())?;
        Some(tls.reload(every, Arc::clone(&self.door.service)))
    }
}

/// Serves the connections that this thread is dealt, until everything ends.
async fn serve_connections(mut receiver: mpsc::UnboundedReceiver<Connection>, mut phase: watch::Receiver<Phase>) {
    let mut connections = JoinSet::new();
    let watching = phase.clone();
    let closed = async move { drop(phase.wait_for(|phase| *phase == Phase::Closed).await) };
    tokio::pin!(closed);
    loop {
        tokio::select! {
            Some(connection) = receiver.recv() => {
                connections.spawn(serve(connection, watching.clone()));
            }
            Some(_) = connections.join_next() => {}
            () = &mut closed => return,
        }
    }
}

async fn serve(connection: Connection, mut phase: watch::Receiver<Phase>) {
    let Connection { stream, door, tls, place } = connection;
    let Some(socket) = encrypt(stream, tls.as_deref(), door.patience.head).await else { return };
    let line = Line::new(socket, door.patience.stall);
    let last = if door.kind == Kind::Metrics { Phase::Closed } else { Phase::Draining };
    let draining = async move { drop(phase.wait_for(|phase| *phase >= last).await) };
    match door.kind {
        Kind::Http => http::serve_connection(line, door, draining).await,
        Kind::Grpc => grpc::serve_connection(line, door, draining).await,
        Kind::Metrics => http::metrics::serve_connection(line, door, draining).await,
    }
    drop(place);
}

/// The connection, encrypted where it has to be; none where the client does not agree in time.
async fn encrypt(stream: Accepted, tls: Option<&Tls>, patience: Option<Duration>) -> Option<Socket> {
    let stream = stream.adopt().ok()?;
    let Some(tls) = tls else { return Some(Socket::Plain(stream)) };
    let agreement = tls.accept(stream);
    match patience {
        Some(patience) => tokio::time::timeout(patience, agreement).await.ok()?.ok(),
        None => agreement.await.ok(),
    }
}
