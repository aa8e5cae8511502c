//! Models whose state lives here: each live sequence has a slot, and a request costs little more than its bytes.
//!
//! No request is queued that can be answered at once: the thread that brings a request executes it, unless another
//! request of the same sequence has its turn. Then the thread that executes the other request executes this one next.
//! Only where an update writes so much that a network thread would be held up does a helper of the pool drive the slot.

#![forbid(unsafe_code)]

mod checkpoint;
mod driver;
mod reaper;

pub use driver::StreamingFactory;

use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use alipes_engine::OutputTensor;
use alipes_engine::streaming::{Averager, AveragerShape, Snapshotter, SnapshotterShape, State, StreamingModel};
use alipes_protocol::{Code, CorrelationId, InferError, Origin, SequenceInfo, Tensor};
use alipes_request::check::has_id;
use alipes_request::completion;
use alipes_request::responder::{Answer, Reply, Responder, answer_one};
use alipes_runtime::context::Context;
use alipes_runtime::executor::record::note_execution;
use alipes_runtime::executor::{Run, Step, pool};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_scheduler::streams::{Flags, NextRequest, Refusal, Streams};
use alipes_spec::{ModelSpec, StreamingSpec, Update};
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Most bytes that an update may write on a network thread: about as long as a quick model may run there.
const AT_ONCE_BYTES: usize = 1 << 20;

/// A streaming model and its live sequences.
pub struct Streaming {
    model: StreamingModel,
    sequences: Mutex<Sequences>,
    limit: usize,
    /// Updates are too long for a network thread.
    is_long: bool,
    /// Most helpers.
    helpers: usize,
    context: Weak<Context>,
    /// For the reaper, which does not keep it alive.
    itself: Weak<Streaming>,
    reaping: AtomicBool,
    /// For the reaper: there are sequences again, or no model any more.
    changed: Arc<Notify>,
}

struct Sequences {
    streams: Streams<CorrelationId, State, Pending>,
    /// Slots that helpers are to drive.
    ready: VecDeque<usize>,
    helping: usize,
}

impl Streaming {
    /// The model that a specification describes.
    ///
    /// # Errors
    ///
    /// A size is zero or too large. The control plane has checked that already, so that its texts can name more.
    pub fn new(
        spec: &ModelSpec,
        engine: &StreamingSpec,
        context: &Weak<Context>,
    ) -> Result<Arc<Streaming>, InferError> {
        let datatype = spec.inputs.first().map(|port| port.datatype);
        let datatype = datatype.ok_or_else(|| InferError::invalid(format!("model '{}' has no input", spec.name)))?;
        let model = match engine.update.clone() {
            Update::Snapshotter { stride, snapshot, batch, channels } => {
                StreamingModel::Snapshotter(Snapshotter::new(SnapshotterShape {
                    datatype,
                    stride,
                    snapshot,
                    batch,
                    channels,
                })?)
            }
            Update::Averager { update, updates, batch, channels, kernel, unbiased } => {
                StreamingModel::Averager(Averager::new(AveragerShape {
                    datatype,
                    update,
                    updates,
                    batch,
                    channels,
                    kernel,
                    unbiased,
                })?)
            }
        };
        let streams = Streams::new(engine.max_sequences, Duration::from_micros(engine.max_idle_us));
        Ok(Arc::new_cyclic(|itself| Streaming {
            is_long: model.output_bytes() > AT_ONCE_BYTES,
            model,
            limit: engine.max_sequences,
            sequences: Mutex::new(Sequences { streams, ready: VecDeque::new(), helping: 0 }),
            helpers: thread::available_parallelism().map_or(1, usize::from),
            context: Weak::clone(context),
            itself: Weak::clone(itself),
            reaping: AtomicBool::new(false),
            changed: Arc::default(),
        }))
    }

    /// Executes a request; it may have been answered when this returns.
    ///
    /// # Errors
    ///
    /// It names no sequence, or its sequence cannot go on or begin.
    fn begin(&self, model: &Arc<ModelVersion>, mut pending: Pending) -> Result<(), InferError> {
        let context = pending.checked.context.take();
        let sequence = context.map(|context| context.sequence).unwrap_or_default();
        if !has_id(&sequence) {
            pending.responder.dismiss();
            return Err(without_sequence(&model.name));
        }
        let SequenceInfo { correlation_id, start, end } = sequence;
        if !self.reaping.load(Ordering::Relaxed) {
            reaper::start(self);
        }
        // Kept for the text of a refusal: a number costs nothing, and texts are rare.
        let named = correlation_id.clone();
        match self.enter(model, correlation_id, Flags { start, end }, pending) {
            Entered::NextRequest(place, turn) => self.drive(model, place, turn),
            Entered::Left => {}
            Entered::Refused(refusal, refused) => {
                refused.responder.dismiss();
                return Err(self.refused(model, &named, refusal));
            }
        }
        Ok(())
    }

    /// Takes a request into its sequence.
    fn enter(&self, model: &Arc<ModelVersion>, id: CorrelationId, flags: Flags, pending: Pending) -> Entered {
        let mut sequences = self.sequences.lock();
        let before = sequences.streams.live();
        let place = match sequences.streams.enter(alipes_clock::now(), id, flags, pending) {
            Ok(place) => place,
            Err((refusal, refused)) => return Entered::Refused(refusal, refused),
        };
        let is_first = before == 0 && sequences.streams.live() > 0;
        let (turn, help) = match place {
            Some(place) if self.is_long && completion::is_network_thread() => {
                (None, sequences.call_for_help(place, self.helpers))
            }
            Some(place) => (sequences.streams.take(place).map(|turn| (place, turn)), false),
            None => (None, false),
        };
        drop(sequences);
        if is_first {
            self.changed.notify_one();
        }
        if help {
            // The pool drives any slot that is ready: it knows the model, not the slot.
            pool::drive(Run { model: Arc::clone(model), instance: 0 });
        }
        turn.map_or(Entered::Left, |(place, turn)| Entered::NextRequest(place, turn))
    }

    /// Drives a slot until nothing waits there.
    fn drive(&self, model: &ModelVersion, place: usize, first: NextRequest<State, Pending>) {
        let mut next = Some(first);
        while let Some(turn) = next {
            let (state, done) = self.run(model, turn);
            let mut sequences = self.sequences.lock();
            sequences.streams.give_back(alipes_clock::now(), place, state);
            next = sequences.streams.take(place);
            drop(sequences);
            done.announce();
        }
    }

    /// One turn of a slot that is ready, by a helper.
    fn help(&self, model: &ModelVersion) -> Step {
        let mut sequences = self.sequences.lock();
        let Some(place) = sequences.ready.pop_front() else {
            sequences.helping -= 1;
            return Step::Idle;
        };
        let Some(turn) = sequences.streams.take(place) else { return Step::Again };
        drop(sequences);
        let (state, done) = self.run(model, turn);
        let mut sequences = self.sequences.lock();
        sequences.streams.give_back(alipes_clock::now(), place, state);
        // Behind the others, so that a sequence in a hurry does not hold up the rest.
        sequences.ready.push_back(place);
        drop(sequences);
        done.announce();
        Step::Again
    }

    /// Executes a request and records it; the caller sends the answer once no lock is held.
    fn run(&self, model: &ModelVersion, turn: NextRequest<State, Pending>) -> (State, Done) {
        let NextRequest { mut state, work } = turn;
        let claimed_at = alipes_clock::now();
        // The update counts even if its caller has gone: those that follow it in its sequence build on it.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.update(&mut state, &work)));
        let outcome = outcome.unwrap_or_else(|_| {
            state = State::default();
            Err(InferError::internal(format!("model '{}' panicked, please report it", model.name)))
        });
        let answered = alipes_clock::now();
        let answer = outcome.map(|outputs| outputs_of(model, &work, outputs));
        if work.responder.is_cancelled() {
            model.statistics.failed(FailureReason::Canceled, answered.duration_since(work.arrived));
            work.responder.dismiss();
            return (state, Done(None));
        }
        let answer = answer.map_err(|error| error.at(Origin::Model));
        record(model, &work, claimed_at, answered, &answer);
        let answer = answer.map(|outputs| Reply { outputs, parameters: Vec::new() });
        (state, Done(Some((work.responder, answer))))
    }

    fn update(&self, state: &mut State, work: &Pending) -> Result<Vec<OutputTensor>, InferError> {
        let update = work.checked.inputs.first().map_or(&[][..], |input| &input.data);
        let mut outputs = Vec::with_capacity(work.checked.outputs.len());
        self.model.run(state, update, &mut outputs)?;
        Ok(outputs)
    }

    fn refused(&self, model: &ModelVersion, id: &CorrelationId, refusal: Refusal) -> InferError {
        let name = &model.name;
        match (refusal, id) {
            (Refusal::Full, _) => self.full(name),
            (Refusal::NotStarted, CorrelationId::Number(id)) => not_started(name, id),
            (Refusal::NotStarted, CorrelationId::Text(id)) => not_started(name, id),
        }
    }
}

impl Streaming {
    fn full(&self, model: &str) -> InferError {
        let text = format!(
            "model '{model}' has {} live sequences and takes no more; end some, or start the server with a larger \
             --streaming-max-sequences",
            self.limit
        );
        InferError::new(Code::Unavailable, text)
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

impl Sequences {
    /// Leaves a slot to a helper; returns whether one has to be called.
    fn call_for_help(&mut self, place: usize, most: usize) -> bool {
        self.ready.push_back(place);
        let call = self.helping < most;
        self.helping += usize::from(call);
        call
    }
}

/// What became of a request that wanted to go on with its sequence.
enum Entered {
    /// It has its turn in this slot, on this thread.
    NextRequest(usize, NextRequest<State, Pending>),
    /// It is left to the thread that drives its slot.
    Left,
    /// It may not.
    Refused(Refusal, Pending),
}

/// An answer that is ready; none where nobody wants it any more.
struct Done(Option<(Responder, Answer)>);

impl Done {
    fn announce(self) {
        if let Some((responder, answer)) = self.0 {
            answer_one(responder, answer);
        }
    }
}

/// The outputs that a request asked for, under their names.
fn outputs_of(model: &ModelVersion, work: &Pending, mut outputs: Vec<OutputTensor>) -> Vec<Tensor> {
    outputs.retain(|output| work.checked.outputs.contains(&output.index));
    let named = |output: OutputTensor| {
        let OutputTensor { index, datatype, shape, data } = output;
        Tensor { name: model.spec.outputs[index].name.as_str().into(), datatype, shape, data }
    };
    outputs.into_iter().map(named).collect()
}

/// Records a request before it is answered, so that statistics read after the answer include it.
fn record(
    model: &ModelVersion,
    work: &Pending,
    claimed_at: Instant,
    answered: Instant,
    answer: &Result<Vec<Tensor>, InferError>,
) {
    let spent = answered.duration_since(work.arrived);
    match answer {
        Ok(outputs) => {
            let times = ExecutionTimes { infer: answered.duration_since(claimed_at), ..ExecutionTimes::default() };
            let execution = Execution { batch_size: 1, rows: 1, requests: 1, times };
            model.statistics.executed(&execution, [claimed_at.duration_since(work.arrived)], [spent]);
            if let Some(shares) = &work.shares {
                shares.add(&times);
            }
            if let Some(trace) = &work.trace {
                note_execution(trace, claimed_at, times, outputs);
            }
        }
        Err(_) => {
            model.statistics.failed(FailureReason::Backend, spent);
        }
    }
    if model.statistics.wants_first_responses() {
        model.statistics.first_response(spent);
    }
}

// Source of both texts: Triton's sequence batcher.

fn without_sequence(model: &str) -> InferError {
    let text = format!("inference request to model '{model}' must specify a non-zero or non-empty correlation ID");
    InferError::invalid(text)
}

fn not_started(model: &str, id: impl Display) -> InferError {
    InferError::invalid(format!(
        "inference request for sequence {id} to model '{model}' must specify the START flag on the first request of the \
         sequence"
    ))
}
