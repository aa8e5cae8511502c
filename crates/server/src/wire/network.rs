//! The network threads: each runs its own event loop, and one of them accepts and deals connections out in turn.
//!
//! A connection stays on its thread for life, so nothing on the way of a request is shared between threads but the
//! model's queue. Dealing in turn keeps a handful of busy connections spread evenly, which the kernel's own choice
//! between several listening sockets does not.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{future, io};

use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::{grpc, http};
use crate::executor::desk::Desk;
use crate::handlers::Service;
use crate::priority::{self, Priority};

/// Pause after a failed accept, which mostly means that descriptors have run out: the loop must not spin on it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Which door a connection came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Http,
    Grpc,
    Metrics,
}

/// The listening sockets of a server.
#[derive(Default)]
pub struct Listeners {
    /// For HTTP.
    pub http: Option<TcpListener>,
    /// For gRPC.
    pub grpc: Option<TcpListener>,
    /// For metrics.
    pub metrics: Option<TcpListener>,
}

impl Listeners {
    fn doors(self) -> Vec<(Door, TcpListener)> {
        let doors = [(Door::Http, self.http), (Door::Grpc, self.grpc), (Door::Metrics, self.metrics)];
        doors.into_iter().filter_map(|(door, listener)| Some((door, listener?))).collect()
    }
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
        let mut network = Network { phase, threads: Vec::with_capacity(threads), loops: Vec::new(), dealers };
        for (number, receiver) in receivers.into_iter().enumerate() {
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            network.loops.push(runtime.handle().clone());
            let thread = NetworkThread { service: Arc::clone(service), phase: watching.clone(), receiver };
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
    pub fn open(&self, listeners: Listeners) {
        let Some(accepting) = self.loops.first() else { return };
        for (door, listener) in listeners.doors() {
            accepting.spawn(accept(door, listener, self.dealers.clone(), self.phase.subscribe()));
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

type Connection = (Door, std::net::TcpStream);

struct NetworkThread {
    service: Arc<Service>,
    phase: watch::Receiver<Phase>,
    receiver: mpsc::UnboundedReceiver<Connection>,
}

impl NetworkThread {
    async fn run(self) {
        let desk = Desk::open();
        tokio::spawn(desk.serve());
        serve_connections(self.service, self.receiver, self.phase).await;
    }
}

/// Takes connections from a listening socket and deals them out to the threads in turn.
async fn accept(
    door: Door,
    listener: TcpListener,
    threads: Vec<mpsc::UnboundedSender<Connection>>,
    mut phase: watch::Receiver<Phase>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    // Metrics tell about a drain while it lasts.
    let last = if door == Door::Metrics { Phase::Closed } else { Phase::Draining };
    for thread in threads.iter().cycle() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = phase.wait_for(|phase| *phase >= last) => return,
        };
        match accepted.and_then(|(stream, _)| stream.into_std()) {
            Ok(stream) => drop(thread.send((door, stream))),
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves the connections that this thread is dealt, until everything ends.
async fn serve_connections(
    service: Arc<Service>,
    mut receiver: mpsc::UnboundedReceiver<Connection>,
    mut phase: watch::Receiver<Phase>,
) {
    let mut connections = JoinSet::new();
    let watching = phase.clone();
    let closed = async move { drop(phase.wait_for(|phase| *phase == Phase::Closed).await) };
    tokio::pin!(closed);
    loop {
        tokio::select! {
            Some((door, stream)) = receiver.recv() => {
                if let Ok(stream) = adopt(stream) {
                    connections.spawn(serve(door, stream, Arc::clone(&service), watching.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
            () = &mut closed => return,
        }
    }
}

fn adopt(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}

async fn serve(door: Door, stream: TcpStream, service: Arc<Service>, mut phase: watch::Receiver<Phase>) {
    let draining = async move { drop(phase.wait_for(|phase| *phase >= Phase::Draining).await) };
    match door {
        Door::Http => http::serve_connection(stream, service, draining).await,
        Door::Grpc => grpc::serve_connection(stream, service, draining).await,
        Door::Metrics => http::metrics::serve_connection(stream, service, future::pending()).await,
    }
}

/// The address that a listening socket really has.
pub fn local_address(listener: Option<&TcpListener>) -> Option<SocketAddr> {
    listener.and_then(|listener| listener.local_addr().ok())
}
