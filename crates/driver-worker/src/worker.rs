//! One worker as the server sees it: its link, what it holds, and its place in the life of its model.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use alipes_link::{LinkHandle, RequestArena, ServerEnd};
use alipes_request::chain::{Chain, Holder, WaitId};
use alipes_runtime::context::Context;
use alipes_runtime::executor::park::Parker;
use alipes_runtime::model::driver::HostProcess;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_runtime::sequences::StateTable;
use alipes_spec::Placement;
use alipes_stats::events::{Event, Source, WorkerState};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::calls::Calls;
use super::checks::Checks;
use super::held::Held;
use super::peer::Host;
use super::request_slots::{InFlight, RequestSlots};
use super::supervisor::Supervisor;
use super::worker_turns::{Numbers, WorkerTurns};

/// Numbers that are given once, among the workers of a model version.
#[derive(Debug, Default)]
pub struct Tickets(AtomicU64);

impl Tickets {
    /// The next number, from 1.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// What a worker may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time until it is ready; none where loading may take as long as it takes.
    pub start_timeout: Option<Duration>,
    /// Longest execution.
    pub execute_timeout: Option<Duration>,
    /// Longest time to finalize.
    pub stop_timeout: Duration,
    /// Most memory in RAM, in bytes.
    pub max_memory_bytes: Option<u64>,
    /// Most bytes of earlier inputs that it may keep in view.
    pub max_leased_bytes: usize,
}

/// What changes from request to request; locked briefly.
pub struct State {
    /// How many of its processes have ended: tells the calls of one from those of the next.
    pub life: u64,
    /// The link, from start to end of the process.
    pub link: Option<ServerEnd>,
    /// Requests are placed: the process is ready and was not asked to leave.
    pub open: bool,
    /// Its supervisor looks whether it claims what it is given.
    pub watched: bool,
    /// What it holds.
    pub slots: RequestSlots,
    /// Input memory that it holds beyond its requests.
    pub held: Held,
    /// Its turns that are in use.
    pub turns: WorkerTurns,
    /// Turns that wait for the worker to be ready, or for room in its ring.
    pub parked: Vec<usize>,
    /// Answers to its calls that wait for room in its mail ring.
    pub mail: VecDeque<u64>,
    /// What the server keeps for the sequences that the worker has.
    pub states: StateTable,
    /// Warm-up samples of which its model wants another round.
    pub samples: Vec<Pending>,
}

/// One instance of a model that runs in a process of its own.
pub struct Worker {
    /// Whose and which.
    pub source: Source,
    /// Where its instance runs.
    pub placement: Placement,
    /// The numbers of its turns.
    pub numbers: Numbers,
    /// Requests that it holds at most.
    pub slots: u32,
    /// Size of its response arena.
    pub response_bytes: u64,
    /// Where its requests are written.
    pub arena: Arc<RequestArena>,
    /// What it may use.
    pub limits: Limits,
    /// Where its instance comes from.
    pub host: Host,
    /// The configuration of the instance, as JSON.
    pub setup: String,
    /// Numbers for its requests and for the memory that it is lent.
    pub tickets: Arc<Tickets>,
    /// Calls that it has made.
    pub calls: Calls,
    /// Whether its model says that it is ready.
    pub checks: Checks,
    /// Held from a look into the ring of answers until they are delivered, so that two threads cannot swap their order.
    /// Taken before `state`, never while that is held.
    pub delivering: Mutex<()>,
    /// Requests in its hands, and the link.
    pub state: Mutex<State>,
    /// The process that runs it, from its start to its end.
    pub process: Mutex<Option<HostProcess>>,
    /// Starts after the first.
    pub restarts: AtomicU64,
    /// It takes requests.
    pub up: AtomicBool,
    /// It has answered since it was started.
    pub useful: AtomicBool,
    /// It is out of service, and goes once it holds nothing.
    pub leaving: AtomicBool,
    /// Where one of its turns waits for company; with a delay there is one.
    pub parker: Parker,
    /// Wakes its supervisor to let it leave.
    pub stopping: Stopping,
    /// Wakes its supervisor to end it.
    pub damage: Damage,
    /// Wakes its supervisor to look whether it claims what it was given.
    pub placed: Notify,
    /// What it serves.
    pub model: OnceLock<Weak<ModelVersion>>,
    /// Where its calls go.
    pub context: Weak<Context>,
    /// Removes it when its process has ended.
    pub supervisor: Weak<Supervisor>,
}

impl State {
    /// A request was taken out. The turn that is free now, where it was the last one of its turn.
    pub fn end_turn(&mut self, request: &InFlight) -> Option<usize> {
        request.turn.and_then(|group| self.turns.end(group))
    }

    /// The calls of other models that are executed now.
    pub fn executes(&mut self) -> Vec<WaitId> {
        let Some(link) = &self.link else { return Vec::new() };
        let waits = self.slots.all().filter(|(_, request)| !request.executed).filter_map(|(slot, request)| {
            let wait = wait_of(request)?;
            link.is_claimed(slot, request.ticket).then_some(wait)
        });
        waits.collect()
    }

    /// Puts answers to calls into the worker's mail ring, as far as there is room. Returns the link where there were
    /// some: once the lock is released, the caller has to wake the worker's thread that waits for them.
    #[must_use = "who waits for an answer sleeps until he is woken"]
    pub fn post_mail(&mut self) -> Option<LinkHandle> {
        let link = self.link.as_mut()?;
        let before = self.mail.len();
        while let Some(&lease) = self.mail.front() {
            if self.held.get(lease).is_some_and(|mail| !link.post(mail)) {
                break;
            }
            self.mail.pop_front();
        }
        (self.mail.len() < before).then(|| link.handle())
    }
}

/// The call that a request is, where somebody may have to wait for it in vain.
pub fn wait_of(request: &InFlight) -> Option<WaitId> {
    request.chain.as_deref().and_then(|chain: &Chain| chain.wait)
}

impl Worker {
    /// The model version, unless it is going.
    pub fn model(&self) -> Option<Arc<ModelVersion>> {
        self.model.get()?.upgrade()
    }

    /// Under which number the server keeps its metrics: unlike any other worker's.
    pub fn owner(&self) -> u64 {
        std::ptr::from_ref(self).addr() as u64
    }

    /// Who waits for the calls of its executions or, with a ticket, of a request that outlives its own.
    pub fn holder(&self, ticket: u64) -> Holder {
        Holder { instance: self.owner(), request: ticket }
    }

    /// A way to the link that needs no lock; none while the process is down.
    pub fn handle(&self) -> Option<LinkHandle> {
        self.state.lock().link.as_ref().map(ServerEnd::handle)
    }

    /// Has the process send verbose lines, or not, as the log wants it now.
    ///
    /// The log's wish is read under the lock: of two threads that pass it on, the later one passes on the later wish.
    pub fn pass_on_verbosity(&self) {
        let Some(context) = self.context.upgrade() else { return };
        let state = self.state.lock();
        if let Some(link) = &state.link {
            link.set_verbose(context.log.is_verbose());
        }
    }

    /// Tells the log about a turn in the worker's life.
    pub fn log(&self, state: WorkerState, text: String) {
        if let Some(context) = self.context.upgrade() {
            context.events.push(Event::Worker { source: self.source.clone(), state, text });
        }
    }

    /// Number of starts after the first.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Takes it out of service.
    pub fn set_leaving(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Whether it is out of service.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Lets one that is out of service go, if it holds nothing. What it is given in the same moment it does not claim,
    /// and goes back into the queue.
    pub fn leave_if_done(&self) {
        if self.is_leaving() && self.state.lock().slots.is_empty() {
            self.stopping.ask();
        }
    }

    /// Whether it takes requests.
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }
}

/// Word of a worker whose link makes no sense, from the thread that found out to the worker's supervisor.
#[derive(Default)]
pub struct Damage {
    what: Mutex<Option<String>>,
    found: Notify,
}

impl Damage {
    /// Reports it.
    pub fn report(&self, what: String) {
        self.what.lock().get_or_insert(what);
        self.found.notify_one();
    }

    /// Waits for a report.
    pub async fn wait(&self) -> String {
        loop {
            self.found.notified().await;
            if let Some(what) = self.what.lock().take() {
                return what;
            }
        }
    }
}

/// The wish that a worker leaves; it stays once made.
#[derive(Default)]
pub struct Stopping {
    requested: AtomicBool,
    immediate: AtomicBool,
    changed: Notify,
}

impl Stopping {
    /// Asks it to finish and leave.
    pub fn ask(&self) {
        self.requested.store(true, Ordering::Release);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Has it end at once, whatever it does: its load is cancelled.
    pub fn ask_now(&self) {
        self.immediate.store(true, Ordering::Release);
        self.ask();
    }

    /// Whether it is to end at once.
    pub fn is_immediate(&self) -> bool {
        self.immediate.load(Ordering::Acquire)
    }

    /// Whether it was asked.
    pub fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits until it is asked.
    pub async fn wait(&self) {
        while !self.is_requested() {
            self.changed.notified().await;
        }
    }
}
