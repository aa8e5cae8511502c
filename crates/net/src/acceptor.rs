//! Accepts the connections of one listener: admits them while there is capacity, and rejects the others.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use alipes_protocol::limits;
use alipes_stats::events::EventQueue;
use alipes_stats::turn::{Task, timed};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::accept_pause::AcceptPause;
use super::capacity::{Capacity, ConnectionPermit, reject, reject_at_once};
use super::connection::Accepted;
use super::idle::IdleClock;
use super::listener::{AcceptingSocket, ListeningSocket};
use super::notices::Notices;
use super::phase::Phase;
use super::policy::{ListenerKind, ListenerPolicy};
use super::probation::{Origin, Probation};
use super::protocol::Protocol;
use super::spare::{SpareDescriptor, is_exhausted};
use super::steps::Steps;
use super::tls::Tls;
use super::turnover::{Membership, Turnover};

/// Pause after a failed accept: the loop must not spin on it.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What a client is answered that comes when no descriptor is left.
const EXHAUSTED: &str = "the server has no file descriptor left and takes no connection now, try again later";

/// An admitted connection on its way to the network thread that serves it.
pub struct Connection {
    pub stream: Accepted,
    pub protocol: Arc<dyn Protocol>,
    pub tls: Option<Arc<Tls>>,
    pub permit: ConnectionPermit,
    /// What answers for floods on the connection.
    pub origin: Origin,
    /// Its place among those that make room for others, where the listener has such.
    pub membership: Option<Membership>,
    /// Where its calls count for a server that ends once it is idle.
    pub idle: Option<Arc<IdleClock>>,
}

/// Accepts the connections of one listener.
pub struct Acceptor {
    protocol: Arc<dyn Protocol>,
    tls: Option<Arc<Tls>>,
    capacity: Arc<Capacity>,
    probation: Arc<Probation>,
    /// The open connections, one of which gives way to a new one where there is no capacity; without this list, the new
    /// one is rejected.
    turnover: Option<Arc<Turnover>>,
    events: Arc<EventQueue>,
    /// Permits to send a rejected client the reason.
    rejections: Arc<Semaphore>,
    /// Lines about rejections.
    notices: Notices,
    /// Where clients count for a server that ends once it is idle.
    idle: Option<Arc<IdleClock>>,
    /// What has it pause; none where it never does.
    pause: Option<Arc<AcceptPause>>,
}

impl Acceptor {
    /// An acceptor whose connections count against `capacity`, and whose floods put addresses on `probation`.
    pub fn new(
        protocol: Arc<dyn Protocol>,
        tls: Option<Arc<Tls>>,
        capacity: Arc<Capacity>,
        turnover: Option<Arc<Turnover>>,
        probation: Arc<Probation>,
        events: Arc<EventQueue>,
    ) -> Acceptor {
        let rejections = Arc::new(Semaphore::new(limits::REFUSALS_AT_A_TIME));
        Acceptor {
            protocol,
            tls,
            capacity,
            turnover,
            probation,
            events,
            rejections,
            notices: Notices::default(),
            idle: None,
            pause: None,
        }
    }

    /// The same acceptor, of a server that ends once it is idle.
    #[must_use]
    pub fn that_pauses(self, idle: Arc<IdleClock>, pause: Arc<AcceptPause>) -> Acceptor {
        Acceptor { idle: Some(idle), pause: Some(pause), ..self }
    }

    fn policy(&self) -> &ListenerPolicy {
        self.protocol.policy()
    }

    /// Reloads the listener's certificate when its files change; none where it is never reloaded.
    pub fn reload(&self) -> Option<impl Future<Output = ()> + use<>> {
        let tls = Arc::clone(self.tls.as_ref()?);
        Some(tls.reload(self.policy().tls_reload_interval()?, Arc::clone(&self.events)))
    }

    /// Accepts connections and assigns them to the network threads in turn, until the listener closes.
    pub async fn run(
        self,
        socket: ListeningSocket,
        threads: Vec<mpsc::UnboundedSender<Connection>>,
        mut phase: watch::Receiver<Phase>,
    ) {
        let inherited = socket.is_inherited();
        let Ok(socket) = socket.adopt() else { return };
        let mut spare = SpareDescriptor::of(socket.as_fd());
        // Clients that come to an inherited socket from then on are served by the next server.
        let last = match self.policy().kind {
            ListenerKind::Http | ListenerKind::Grpc if inherited => Phase::Draining,
            kind => kind.closes_in(),
        };
        let mut pauses = self.pause.as_ref().map(|pause| pause.subscribe());
        let mut steps = Steps::new(limits::CONNECTIONS_PER_TURN);
        for thread in threads.iter().cycle() {
            steps.begin().await;
            let accepted = tokio::select! {
                biased;
                _ = phase.wait_for(|phase| *phase >= last) => break,
                () = wanted(&mut pauses, true) => None,
                accepted = socket.accept() => Some(accepted),
            };
            match accepted {
                None => {
                    let _paused = self.pause.as_ref().map(|pause| pause.hold());
                    tokio::select! {
                        () = wanted(&mut pauses, false) => {}
                        _ = phase.wait_for(|phase| *phase >= last) => {}
                    }
                }
                Some(Ok(stream)) => self.admit(stream, thread),
                Some(Err(error)) if is_exhausted(&error) => {
                    self.log_rejection("the process has no descriptor left, see `ulimit -n`");
                    spare.give_up();
                    refuse_one(&socket, self.tls.is_some()).await;
                    spare = SpareDescriptor::of(socket.as_fd());
                }
                Some(Err(_)) => sleep(ACCEPT_PAUSE).await,
            }
        }
        if !inherited {
            self.admit_rest(&socket, &threads).await;
        }
    }

    /// Admits whom the system has let in already, so that they get an answer: a closed socket would send them away.
    async fn admit_rest(&self, socket: &AcceptingSocket, threads: &[mpsc::UnboundedSender<Connection>]) {
        tokio::task::yield_now().await;
        for thread in threads.iter().cycle() {
            let Some(Ok(stream)) = accept_now(socket).await else { return };
            self.admit(stream, thread);
        }
    }

    fn admit(&self, stream: Accepted, thread: &mpsc::UnboundedSender<Connection>) {
        match self.capacity.acquire().or_else(|| self.exchange()) {
            Some(permit) => {
                let (protocol, tls) = (Arc::clone(&self.protocol), self.tls.clone());
                let origin = self.probation.origin(stream.address());
                let membership = self.turnover.as_ref().map(Turnover::enter);
                let idle = self.idle.clone();
                if let Some(idle) = &idle {
                    idle.note(alipes_clock::now());
                }
                let _ = thread.send(Connection { stream, protocol, tls, permit, origin, membership, idle });
            }
            None => {
                self.log_rejection(&format!("{} are open, see --max-connections", self.capacity.most()));
                self.reject(stream);
            }
        }
    }

    /// A permit for a new connection, at the cost of one that is open.
    fn exchange(&self) -> Option<ConnectionPermit> {
        self.turnover.as_ref().filter(|turnover| turnover.evict())?;
        self.capacity.acquire_in_exchange()
    }

    /// Logs that connections are rejected.
    fn log_rejection(&self, why: &str) {
        self.notices.log(&self.events, || format!("{} connections are refused: {why}", self.policy().kind.name()));
    }

    /// Sends the client the reason; closes without one while too many clients are being sent theirs.
    fn reject(&self, stream: Accepted) {
        let Ok(permit) = Arc::clone(&self.rejections).try_acquire_owned() else { return };
        let (encrypted, most) = (self.tls.is_some(), self.capacity.most());
        if let Ok(stream) = stream.adopt() {
            tokio::spawn(timed(Task::Rejection, async move {
                reject(encrypted, most, stream).await;
                drop(permit);
            }));
        }
    }
}

/// Ends once a pause is wanted, or is not; never where there is none.
async fn wanted(pauses: &mut Option<watch::Receiver<bool>>, wanted: bool) {
    match pauses {
        Some(pauses) => drop(pauses.wait_for(|one| *one == wanted).await),
        None => std::future::pending().await,
    }
}

/// The next connection that the system has let in; none where there is none.
async fn accept_now(socket: &AcceptingSocket) -> Option<io::Result<Accepted>> {
    let mut accepted = pin!(socket.accept());
    poll_fn(|cx| match accepted.as_mut().poll(cx) {
        Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Takes one waiting client in, says why it is not served, and lets it go. Where others were quicker to take the
/// descriptor, it pauses.
async fn refuse_one(socket: &AcceptingSocket, encrypted: bool) {
    match timeout(ACCEPT_PAUSE, socket.accept()).await {
        Ok(Ok(stream)) if !encrypted => reject_at_once(&stream, EXHAUSTED),
        Ok(Ok(_)) | Err(_) => {}
        Ok(Err(_)) => sleep(ACCEPT_PAUSE).await,
    }
}
