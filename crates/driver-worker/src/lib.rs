//! Models that run in processes of their own: placing their requests, taking their answers, keeping them alive.
//!
//! The model's queue knows *turns* instead of instances: each worker has several, numbered level by level, so that the
//! lowest idle turn belongs to the worker with the least to do. A turn brings one request (or one batch, where the
//! configuration forms batches by delay or preferred sizes) to its worker and is free again when all of it is over.
//! What a worker has not claimed yet can be taken back: for a worker that has nothing to do, or after a crash.
//!
//! - `place`: from the queue into a worker's ring, on the network thread that took the request in.
//! - `receive`: from the ring of answers to the callers, on a network thread, when the doorbell rings or on the way.
//! - `supervise`: one task per worker, from its start to its end, over every restart.
//! - `exits`: what a process that has ended leaves: lost requests, those that go back to the queue, a line of the log.
//! - `claims`: whether a worker claims what it is given.
//! - `waiting`: processes that have imported an app already, and go on as its first worker.
//! - `warmup`: what a worker executes before it takes requests.
//! - `change`: more workers, or fewer, while the others go on.

mod answers;
mod caller;
mod calls;
mod change;
pub mod checks;
mod claims;
mod control;
mod driver;
mod executions;
mod exits;
pub mod faults;
mod frames;
mod held;
mod packet;
mod peer;
pub mod place;
mod process;
mod readiness;
mod receive;
mod received;
mod request_slots;
mod script;
mod spawner;
mod starts;
mod supervise;
pub mod supervisor;
pub mod waiting;
mod warmup;
pub mod worker;
pub mod worker_set;
mod worker_turns;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use alipes_link::{Geometry, RequestArena, ServerEnd};
use alipes_protocol::{Code, InferError};
use alipes_runtime::context::Context;
use alipes_runtime::executor::park::Parker;
use alipes_runtime::model::Pending;
use alipes_runtime::model::policy;
use alipes_scheduler::Scheduler;
use alipes_spec::{ModelSpec, Placement, Scheduling, WorkerMemory, WorkerSpec};
use alipes_stats::events::Source;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use tokio::sync::Notify;

use calls::Calls;
use checks::Checks;
pub use driver::WorkerFactory;
use held::Held;
use peer::Host;
use process::Program;
use request_slots::RequestSlots;
use script::Script;
use supervisor::Supervisor;
use worker::{Damage, Limits, State, Stopping, Tickets, Worker};
use worker_set::WorkerSet;
use worker_turns::{Numbers, WorkerTurns};

/// Address space of a version's request arena: what is not written costs nothing.
const REQUEST_ARENA_BYTES: u64 = 16 << 30;

/// Address space of a worker's response arena.
const RESPONSE_ARENA_BYTES: u64 = 8 << 30;

/// Either arena, where it is to be small.
const SMALL_ARENA_BYTES: u64 = 64 << 20;

/// Requests that a worker without batching holds at most: enough that a model of a few microseconds never waits for
/// the next one. The rest waits in the model's queue.
const PLAIN_DEPTH: u32 = 32;

/// Requests that a decoupled worker holds at most: those that are still being answered count as well.
const DECOUPLED_DEPTH: u32 = 1024;

/// Requests that a decoupled worker holds at most where memory is to be small. More than one: requests that are still
/// being answered may wait for calls of their own model, which need a place beside them.
const SMALL_DECOUPLED_DEPTH: u32 = 8;

/// Most slots that a batching model gets.
const MAX_SLOTS: u32 = 4096;

/// The workers of one model version.
pub struct Workers {
    /// Those in service and those that are leaving.
    set: ArcSwap<WorkerSet>,
    /// Those that have loaded the model and get no requests.
    passive: Vec<Arc<Worker>>,
    /// Where the requests of all of them are written.
    arena: Arc<RequestArena>,
    /// Batches that are too large for a network thread to write, by their turns; a thread of the pool comes for each.
    left: Mutex<Vec<(usize, Vec<Pending>)>>,
    /// Most rows that a worker claims at once; 0 for one request.
    pub max_rows: u32,
    /// Where instances come from.
    host: Host,
    /// Batches are formed by the queue, not by the worker.
    forms_batches: bool,
    levels: usize,
    slots: u32,
    response_bytes: u64,
    tickets: Arc<Tickets>,
    context: Weak<Context>,
    supervisor: Arc<Supervisor>,
}

impl Workers {
    /// Workers as the specification says; none is started yet.
    ///
    /// # Errors
    ///
    /// The system refuses shared memory.
    fn new(
        spec: &ModelSpec,
        worker: &WorkerSpec,
        context: &Weak<Context>,
        supervisor: &Arc<Supervisor>,
    ) -> Result<Workers, InferError> {
        let memory = context.upgrade().map(|context| context.config.paths.worker_memory).unwrap_or_default();
        let (request_bytes, response_bytes) = match memory {
            WorkerMemory::Full => (REQUEST_ARENA_BYTES, RESPONSE_ARENA_BYTES),
            WorkerMemory::Small => (SMALL_ARENA_BYTES, SMALL_ARENA_BYTES),
        };
        let host = host(worker)?;
        let arena = RequestArena::create(request_bytes).map_err(|error| no_memory(&error))?;
        let forms_batches = forms_batches(spec);
        let max_rows = claim_limit(spec);
        let depth = slots_for(spec, worker.side_by_side, forms_batches, memory);
        let levels = if forms_batches { 1 } else { depth as usize };
        let largest_sample = spec.warmup.iter().map(|sample| sample.batch_size).max().unwrap_or(0);
        let slots = depth.max(largest_sample);
        let set = ArcSwap::from_pointee(WorkerSet::new(Vec::new(), Vec::new(), levels));
        let (tickets, passive, left) = Default::default();
        let (context, supervisor) = (Weak::clone(context), Arc::clone(supervisor));
        let mut workers = Workers {
            set,
            passive,
            arena,
            left,
            max_rows,
            host,
            forms_batches,
            levels,
            slots,
            response_bytes,
            tickets,
            context,
            supervisor,
        };
        let siblings = spec.instances.len();
        let names = spec.instances.iter().chain(&spec.passive_instances).enumerate();
        let made = |place| new_worker(spec, worker, place, &workers, Numbers::among(siblings, place.0));
        let mut list: Vec<_> = names.map(|place| Arc::new(made(place))).collect();
        workers.passive = list.split_off(siblings);
        workers.set.store(Arc::new(WorkerSet::new(list, Vec::new(), levels)));
        Ok(workers)
    }

    /// Those that are started with the version, at work or passive.
    pub fn everyone(&self) -> Vec<Arc<Worker>> {
        self.set().list.iter().chain(&self.passive).map(Arc::clone).collect()
    }

    /// Those in service and those that are leaving now.
    pub fn set(&self) -> Guard<Arc<WorkerSet>> {
        self.set.load()
    }

    /// Turns of all workers together: what the queue takes for instances.
    pub fn turns(&self) -> usize {
        self.levels * self.set().list.len()
    }

    /// Whether any worker takes requests.
    pub fn is_up(&self) -> bool {
        self.set().list.iter().any(|worker| worker.is_up())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.set().all().chain(&self.passive).for_each(|worker| worker.stopping.ask());
    }
}

/// How the queue of a model with workers orders its requests.
///
/// Without a delay the worker itself takes what is there when it becomes free, so that no batch is closed early; the
/// queue only keeps the order. With a delay, with preferred sizes below the largest batch, or where who waits is not
/// simply who came first, the queue forms the batches, and a worker is brought the next one when it is done with the
/// last.
fn scheduler(spec: &ModelSpec) -> Scheduler<Pending> {
    match &spec.scheduling {
        Scheduling::Dynamic(dynamic) if forms_batches(spec) => {
            Scheduler::dynamic(policy::of(dynamic, spec.max_batch_size))
        }
        _ => Scheduler::direct(),
    }
}

fn forms_batches(spec: &ModelSpec) -> bool {
    // What a worker holds ahead would keep the resources that its executions take.
    let limited = spec.limits.iter().any(|limit| !limit.resources.is_empty());
    let dynamic = match &spec.scheduling {
        Scheduling::Direct {} => return limited,
        Scheduling::Dynamic(dynamic) => dynamic,
        // The queue knows which sequence belongs to which worker.
        Scheduling::Sequence(_) => return true,
    };
    // The largest batch is what a worker takes anyway, and every configuration prefers it that names no other size.
    let aims = spec.tuning.is_some()
        || dynamic.max_queue_delay_us > 0
        || dynamic.preferred_batch_sizes.iter().any(|&rows| rows != spec.max_batch_size);
    limited || (aims && spec.max_batch_size > 1) || !policy::is_plain(dynamic)
}

fn claim_limit(spec: &ModelSpec) -> u32 {
    match &spec.scheduling {
        Scheduling::Dynamic(_) | Scheduling::Sequence(_) => spec.max_batch_size,
        Scheduling::Direct {} => 0,
    }
}

/// Requests that a worker holds at most: as many as it works on side by side, whatever the memory, for they may wait
/// for each other.
fn slots_for(spec: &ModelSpec, side_by_side: u32, forms_batches: bool, memory: WorkerMemory) -> u32 {
    let (plain, decoupled) = match memory {
        WorkerMemory::Full => (PLAIN_DEPTH, DECOUPLED_DEPTH),
        WorkerMemory::Small => (1, SMALL_DECOUPLED_DEPTH),
    };
    let slots = if spec.decoupled {
        decoupled.max(spec.max_batch_size)
    } else if forms_batches {
        spec.max_batch_size.max(1)
    } else {
        // One batch that runs and one that is ready to be claimed.
        plain.max(claim_limit(spec).saturating_mul(2))
    };
    slots.max(side_by_side).min(MAX_SLOTS)
}

fn new_worker(
    spec: &ModelSpec,
    worker: &WorkerSpec,
    (index, name): (usize, &String),
    workers: &Workers,
    numbers: Numbers,
) -> Worker {
    let Workers { arena, tickets, slots, response_bytes, levels, context, supervisor, .. } = workers;
    let placement = spec.placement(name);
    let Placement { kind, device_id } = placement;
    let setup = serde_json::json!({
        "setup": worker.setup,
        "instance": {
            "name": name, "index": index, "kind": kind, "device_id": device_id, "max_rows": claim_limit(spec)
        },
    });
    Worker {
        source: Source { model: spec.name.clone(), version: spec.version, instance: name.clone() },
        placement,
        numbers,
        slots: *slots,
        response_bytes: *response_bytes,
        arena: Arc::clone(arena),
        limits: limits(worker),
        host: workers.host.clone(),
        setup: setup.to_string(),
        tickets: Arc::clone(tickets),
        calls: Calls::default(),
        checks: Checks::default(),
        delivering: Mutex::default(),
        state: Mutex::new(State {
            life: 0,
            link: None,
            open: false,
            watched: false,
            slots: RequestSlots::new(*slots),
            held: Held::default(),
            turns: WorkerTurns::new(numbers, *levels),
            parked: Vec::new(),
            mail: Default::default(),
            states: Default::default(),
            samples: Vec::new(),
        }),
        process: Mutex::default(),
        restarts: AtomicU64::new(0),
        up: false.into(),
        useful: false.into(),
        leaving: false.into(),
        parker: Parker::default(),
        stopping: Stopping::default(),
        damage: Damage::default(),
        placed: Notify::default(),
        model: Default::default(),
        context: Weak::clone(context),
        supervisor: Arc::downgrade(supervisor),
    }
}

fn host(worker: &WorkerSpec) -> Result<Host, InferError> {
    let Some(socket) = worker.attached else {
        let (command, environment, waiting) = (&worker.command, &worker.environment, &worker.waiting);
        let program = Program { command: command.clone(), environment: environment.clone(), waiting: waiting.clone() };
        return Ok(Host::Process(program));
    };
    let script = Script::at(socket);
    let script =
        script.map_err(|error| InferError::new(Code::Unavailable, format!("no script is attached: {error}")))?;
    Ok(Host::Script(Arc::new(script)))
}

fn limits(worker: &WorkerSpec) -> Limits {
    let span = |seconds: f64| (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    Limits {
        start_timeout: span(worker.start_timeout_s),
        execute_timeout: span(worker.execute_timeout_s),
        stop_timeout: span(worker.stop_timeout_s).unwrap_or(Duration::ZERO),
        max_memory_bytes: (worker.max_memory_bytes > 0).then_some(worker.max_memory_bytes),
        max_leased_bytes: usize::try_from(worker.max_leased_bytes).unwrap_or(usize::MAX),
    }
}

/// A new link for a worker that is about to be started.
fn new_link(slots: u32, response_bytes: u64) -> std::io::Result<ServerEnd> {
    ServerEnd::create(Geometry { slots, response_bytes })
}

fn no_memory(error: &std::io::Error) -> InferError {
    InferError::new(Code::Unavailable, format!("cannot reserve shared memory for a worker: {error}"))
}
