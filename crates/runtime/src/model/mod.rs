//! One version of a model: its declaration, its queue, its instances and its statistics.

mod configuration;
pub mod driver;
mod gone;
pub mod layout;
pub mod pace;
pub mod policy;
mod queueing;
pub mod sizes;
mod visit;
pub mod waiting;
pub mod warmup;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use alipes_engine::batch::Layout;
use alipes_link::RequestArena;
use alipes_protocol::limits::CHECKED_AT_ONCE_BYTES;
use alipes_protocol::trace::{Moment, Side, Subject, Trace};
use alipes_protocol::{Code, Datatype, InferError, InferRequest, Origin};
use alipes_request::budget::Budget;
use alipes_request::chain::Chain;
use alipes_request::check::{Checked, check_request};
use alipes_request::order::Order;
use alipes_request::responder::{Presence, Responder, answer_one};
use alipes_scheduler::sequence::SequenceQueue;
use alipes_scheduler::{Effect, ModelQueue, Queue};
use alipes_spec::ModelSpec;
use alipes_stats::Log;
use alipes_stats::clock;
use alipes_stats::events::EventQueue;
use alipes_stats::metrics::Labels;
use alipes_stats::statistics::{Shares, Statistics};
use alipes_stats::trace::underway::Underway;
use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::cache::Cached;
use crate::limiter::Limited;
use crate::sequences::{self, Sequences};
use crate::tuning::tuner::Tuning;
use configuration::Configuration;
use driver::{Driver, Readiness, Rejection};
pub use gone::Departure;
pub use gone::Gone;
use pace::Pace;
use waiting::{Callee, Servers};
use warmup::Sample;

/// A request that waits for an instance or is being executed: boxed, since it has half a kilobyte, and is moved some
/// ten times on its way through the queue.
pub type Pending = Box<PendingRequest>;

/// What there is of it.
pub struct PendingRequest {
    /// What the model needs of it.
    pub checked: Checked,
    /// When it was taken in.
    pub arrived: Instant,
    /// Who waits for the answer.
    pub responder: Responder,
    /// Whose calls led to it, where a model sent it.
    pub chain: Option<Arc<Chain>>,
    /// Where it is a step of an ensemble: what the ensemble's steps have computed.
    pub shares: Option<Arc<Shares>>,
    /// Its record, where it is traced.
    pub trace: Option<Underway>,
    /// When it has waited too long, where the queue policy says so.
    pub deadline: Option<Instant>,
}

impl PendingRequest {
    /// A request that came from no model, and is not traced.
    pub fn alone(checked: Checked, arrived: Instant, responder: Responder) -> Pending {
        Box::new(PendingRequest { checked, arrived, responder, chain: None, shares: None, trace: None, deadline: None })
    }

    /// Bytes of its tensors.
    pub fn bytes(&self) -> usize {
        self.checked.inputs.iter().map(|input| input.data.len()).sum()
    }
}

/// The queue of a version, of whichever kind.
pub type PendingQueue = dyn Queue<Pending> + Send;

/// How a request arrives: from a client, or from a model or an ensemble on a client's behalf.
pub struct Arrival {
    /// When it was taken in.
    pub at: Instant,
    /// The models that wait for it, where a model sent it.
    pub chain: Option<Arc<Chain>>,
    /// Where it is a step of an ensemble: what the ensemble's steps have computed.
    pub shares: Option<Arc<Shares>>,
}

impl From<Instant> for Arrival {
    /// From a client.
    fn from(at: Instant) -> Arrival {
        Arrival { at, chain: None, shares: None }
    }
}

/// One version of a model. Requests pin it; when the registry and the last request have let go, it is gone.
pub struct ModelVersion {
    /// Its specification, from the control plane.
    pub spec: ModelSpec,
    /// Name, shared with every answer.
    pub name: Arc<str>,
    /// Labels of its metrics.
    pub labels: Labels,
    /// What it did.
    pub statistics: Statistics,
    /// Answers that are kept, where it wants that and the server does it.
    pub cache: Option<Cached>,
    /// Its instances as the rate limiter knows them, where any of them takes resources.
    pub limited: Option<Limited>,
    /// The log for what callers do to it; none in tests.
    pub events: Option<Arc<EventQueue>>,
    /// What that log shows; none in tests.
    pub log: Option<Arc<Log>>,
    /// How long it took to load; set once it is loaded.
    pub load_time: OnceLock<Duration>,
    /// What tunes it, where it tunes itself.
    pub tuning: Option<Tuning>,
    /// How long its executions take.
    pub pace: Pace,
    /// Where the memory that inputs take in another datatype is counted; without a limit in tests.
    pub budget: Arc<Budget>,
    /// What waits and which instances come for it; held briefly, never while anything runs.
    queue: Mutex<Box<PendingQueue>>,
    /// The controls and states of its sequences, where it has any.
    pub sequences: Option<Sequences>,
    /// What is unusual about its batches; almost always nothing.
    pub layout: Option<Box<Layout>>,
    /// Whose turn it is to be answered, where the model promises to answer in the order of requests.
    order: Option<Arc<Order>>,
    /// Executes its requests.
    pub driver: Arc<dyn Driver>,
    /// No worker is up, and the last start of one has failed.
    pub failing: AtomicBool,
    /// What each instance executes before it serves.
    pub samples: Vec<Sample>,
    /// Held by the thread that gives the version other instances, and by the tuner while it looks at the version.
    pub changing: Mutex<()>,
    configuration: ArcSwap<Configuration>,
    /// Each request that it has taken in and not answered yet has a clone of it.
    presence: Presence,
    gone: Arc<Gone>,
}

impl ModelVersion {
    /// A version around what executes it.
    ///
    /// # Errors
    ///
    /// `Internal` where the specification's configuration is not base64, and what is wrong with its samples.
    ///
    /// # Panics
    ///
    /// If there is no instance.
    pub fn new(spec: ModelSpec, driver: Arc<dyn Driver>) -> Result<ModelVersion, InferError> {
        let configuration = ArcSwap::from_pointee(Configuration::of(&spec)?);
        let sequences = spec.scheduling.sequences().map(|wanted| Sequences::new(&spec, wanted)).transpose()?;
        Ok(ModelVersion {
            name: spec.name.as_str().into(),
            labels: Labels::of_model(&spec.name, spec.version, &spec.namespace, &spec.metric_tags),
            statistics: Statistics::default(),
            cache: None,
            limited: None,
            events: None,
            log: None,
            load_time: OnceLock::new(),
            tuning: Tuning::of(&spec, driver.instances()),
            pace: Pace::default(),
            budget: Budget::new(u64::MAX),
            layout: layout::of(&spec),
            order: policy::keeps_order(&spec.scheduling).then(Arc::default),
            queue: Mutex::new(queue(&spec, &*driver)),
            sequences,
            driver,
            failing: AtomicBool::new(false),
            samples: warmup::samples(&spec)?,
            changing: Mutex::default(),
            configuration,
            presence: Presence::default(),
            gone: Arc::default(),
            spec,
        })
    }

    /// The configuration as HTTP answers it.
    pub fn config_json(&self) -> Bytes {
        self.configuration.load().json.clone()
    }

    /// The configuration as gRPC answers it: a serialized `inference.ModelConfig`.
    pub fn config_proto(&self) -> Bytes {
        self.configuration.load().proto.clone()
    }

    /// From now on answers with the configuration of this specification.
    ///
    /// # Errors
    ///
    /// As for [`ModelVersion::new`].
    pub fn set_configuration(&self, spec: &ModelSpec) -> Result<(), InferError> {
        self.configuration.store(Arc::new(Configuration::of(spec)?));
        Ok(())
    }

    /// Requests waiting for an instance.
    pub fn waiting(&self) -> usize {
        self.driver.waiting().unwrap_or_else(|| self.queue.lock().waiting())
    }

    /// Requests that it has taken in and not answered yet: those that wait, and those that are executed.
    pub fn requests(&self) -> usize {
        Arc::strong_count(&self.presence) - 1
    }

    /// When the request came that has waited longest for an instance; none where nothing waits in the queue.
    pub fn longest_waiting(&self) -> Option<Instant> {
        let mut earliest = None;
        self.queue.lock().look_at_heads(&mut |pending| {
            earliest = Some(earliest.map_or(pending.arrived, |known: Instant| known.min(pending.arrived)));
        });
        earliest
    }

    /// Tells when the version is gone: no longer published, its last request answered, its engines freed.
    pub fn departure(&self) -> Departure {
        self.gone.departure()
    }

    /// Whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.spec.decoupled
    }

    /// Whether requests of the inference protocols reach it as calls, whatever they hold.
    pub fn is_whole(&self) -> bool {
        self.spec.endpoint.as_ref().is_some_and(|endpoint| endpoint.whole)
    }

    /// Whether plain requests to a path of its own reach it as calls.
    pub fn has_path(&self) -> bool {
        self.spec.endpoint.as_ref().is_some_and(|endpoint| !endpoint.methods.is_empty())
    }

    /// Whether requests of V1 for explanations reach it as calls.
    pub fn explains(&self) -> bool {
        self.spec.endpoint.as_ref().is_some_and(|endpoint| endpoint.whole || endpoint.explain)
    }

    /// Whether requests of V1 for predictions reach it as calls.
    pub fn predicts_by_call(&self) -> bool {
        self.spec.endpoint.as_ref().is_some_and(|endpoint| endpoint.whole || endpoint.predict)
    }

    /// Whether a network thread may submit a request itself: checking the request's strings, and comparing the request
    /// with those whose answers are cached, reads all of their bytes.
    pub fn submits_at_once(&self, request: &InferRequest) -> bool {
        let all = self.cache.is_some();
        let looked_at = request.inputs.iter().filter(|tensor| all || tensor.datatype == Datatype::Bytes || request.raw);
        looked_at.map(|tensor| tensor.data.len()).sum::<usize>() <= CHECKED_AT_ONCE_BYTES
    }

    /// Checks a request and queues it. `respond` makes its two ends once it is accepted: the responder, to which every
    /// answer goes, and what the caller keeps to receive them.
    ///
    /// # Errors
    ///
    /// What `check_request` refuses, and `Unavailable` while the version drains.
    pub fn submit<R>(
        self: &Arc<Self>,
        request: InferRequest,
        arrival: impl Into<Arrival>,
        respond: impl FnOnce() -> (Responder, R),
    ) -> Result<R, InferError> {
        let Arrival { at: arrived, chain, shares } = arrival.into();
        let (trace, checked) = self.check(request, arrived)?;
        let (mut responder, receiver) = respond();
        responder.count_in(&self.presence);
        self.enqueue(Box::new(PendingRequest { checked, arrived, responder, chain, shares, trace, deadline: None }))?;
        Ok(receiver)
    }

    fn check(&self, mut request: InferRequest, arrived: Instant) -> Result<(Option<Underway>, Checked), InferError> {
        let trace = request.trace.take().map(Underway::new);
        if let Some(trace) = &trace {
            self.note_arrival(trace, &request, arrived);
        }
        if self.failing.load(Ordering::Acquire) {
            return Err(InferError::new(Code::Unavailable, self.failing_text()));
        }
        Ok((trace, check_request(&self.spec, request, &self.budget)?))
    }

    fn note_arrival(&self, trace: &Trace, request: &InferRequest, arrived: Instant) {
        let version = self.spec.version;
        trace.about(|| Subject { model: self.name.to_string(), version, request_id: request.id.to_string() });
        trace.note(Moment::RequestStart, clock::ns(arrived));
        trace.note_tensors(Side::QueueInput, &request.inputs);
    }

    fn enqueue(self: &Arc<Self>, pending: Pending) -> Result<(), InferError> {
        if let Some(trace) = &pending.trace {
            trace.note(Moment::QueueStart, clock::now_ns());
        }
        // What a call is answered may depend on any of its headers.
        let pending = match self.cache().filter(|_| !pending.checked.is_call) {
            None => pending,
            Some(cache) => match cache.answer(self, pending) {
                Some(pending) => pending,
                None => return Ok(()),
            },
        };
        self.schedule(pending).map_err(|(error, responder)| {
            responder.dismiss();
            error
        })
    }

    /// Has a request computed that waited for the answer to another, and was not given one.
    pub fn compute(self: &Arc<Self>, pending: Pending) {
        let pending = match self.cache() {
            None => Some(pending),
            Some(cache) => cache.answer_alone(self, pending),
        };
        if let Some(Err((error, responder))) = pending.map(|pending| self.schedule(pending)) {
            answer_one(responder, Err(error.at(Origin::Model)));
        }
    }

    /// Queues a request, or has the driver execute it where it is not queued.
    fn schedule(self: &Arc<Self>, mut pending: Pending) -> Result<(), Rejection> {
        if let Some(unqueued) = self.driver.unqueued(&pending, &self.spec) {
            return unqueued.begin(self, pending);
        }
        let submit = |queue: &mut PendingQueue, now| {
            // Under the queue's mutex, so that both orders are the same.
            self.take_turn(&mut pending.responder);
            queue.submit(now, pending).map_err(Box::new)
        };
        match self.with_queue(submit) {
            Ok(effect) => {
                self.carry_out(effect);
                Ok(())
            }
            Err(refused) => {
                let error = queueing::refusal(&self.name, refused.reason, &refused.work);
                Err((error, refused.work.responder))
            }
        }
    }

    /// Has a request answered behind all that came before it, where the model promises to answer in their order.
    pub fn take_turn(&self, responder: &mut Responder) {
        if let Some(order) = &self.order {
            responder.keep_order(order);
        }
    }

    /// The cache, where an answer in it can be given at once: the model answers without regard to the order of
    /// requests, and it has not failed.
    pub fn ready_answers(&self) -> Option<&Cached> {
        self.cache().filter(|_| self.order.is_none() && !self.failing.load(Ordering::Acquire))
    }

    /// The cache, where an answer depends on its request alone: what an ensemble answers depends on the state of its
    /// models, which may come and go. A model that keeps a state itself has no cache.
    fn cache(&self) -> Option<&Cached> {
        self.cache.as_ref().filter(|_| self.driver.is_cacheable())
    }

    /// Does what the queue asked for, now that its lock is released.
    pub fn carry_out(self: &Arc<Self>, effect: Effect) {
        match effect {
            Effect::None => {}
            Effect::Start(instance) => self.driver.start(self, instance),
            Effect::Wake(instance) => self.driver.unpark(instance),
        }
    }

    /// Returns a claimed instance to the queue. If requests wait, the queue starts an instance for them.
    pub fn release(self: &Arc<Self>, instance: usize) {
        let effect = self.with_queue(|queue, now| queue.finish(now, instance));
        self.carry_out(effect);
    }

    /// Whether the model keeps state between the requests of a sequence, which therefore must arrive in order.
    pub fn keeps_state(&self) -> bool {
        self.driver.keeps_state(self)
    }

    /// The memory in which large request bodies are best received: the memory that worker processes map.
    pub fn body_memory(&self) -> Option<&Arc<RequestArena>> {
        self.driver.body_memory()
    }

    /// Whether the model can answer: workers while one is up or starting again, an ensemble if all its models can.
    pub fn is_ready(&self) -> bool {
        self.driver.is_ready()
    }

    /// Asks the model itself, or an ensemble's models, whether they are ready; none where none of them takes part.
    pub fn ask_ready(&self) -> Option<Readiness> {
        self.driver.ask_ready()
    }

    /// The error while no worker can be started.
    pub fn failing_text(&self) -> String {
        format!("Model '{}' is not ready: {}, see the log", self.name, self.driver.failing_text())
    }

    /// Kept by those whose end is the version's end as well.
    pub fn gone(&self) -> Arc<Gone> {
        Arc::clone(&self.gone)
    }
}

impl Callee for ModelVersion {
    fn servers(&self) -> Servers {
        // Whether a request may have to wait though an instance is free. That of a decoupled model does not look for
        // work while requests of earlier executions are answered.
        let is_selective =
            self.sequences.is_some() || self.limited.is_some() || self.order.is_some() || self.spec.decoupled;
        match self.driver.holders() {
            None => Servers::Always,
            Some(holders) if is_selective => Servers::Each(holders),
            Some(holders) => Servers::Any(holders),
        }
    }

    fn name(&self) -> &str {
        &self.name
    }
}

fn queue(spec: &ModelSpec, driver: &dyn Driver) -> Box<PendingQueue> {
    let instances = driver.instances();
    match spec.scheduling.sequences() {
        Some(wanted) => Box::new(SequenceQueue::new(sequences::policy(spec, wanted), instances)),
        None => Box::new(ModelQueue::new(driver.scheduler(spec), instances)),
    }
}
