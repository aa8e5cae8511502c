//! One execution: gather, run, split, record, answer.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use alipes_engine::batch::{Gather, Member, Split};
use alipes_engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
use alipes_protocol::{InferError, Origin, Tensor};
use alipes_request::responder::{AnswerBatch, Reply};
use alipes_runtime::executor;
use alipes_runtime::executor::record::{note_execution, withdraw_cancelled};
use alipes_runtime::executor::reshape::wire_shape;
use alipes_runtime::model::sizes::Sizes;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_runtime::sequences::rows::{Rows, add_state_outputs};
use alipes_runtime::sequences::visit;
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason};

/// Buffers that an instance reuses from one execution to the next, so that a warm one allocates little.
pub struct InstanceState {
    /// The requests of the batch that is being formed or executed.
    pub batch: Vec<Pending>,
    engine: Box<dyn Engine>,
    gather: Gather,
    wanted: Vec<usize>,
    outputs: Vec<OutputTensor>,
    /// Rows of the batch that the engine could not compute.
    refused: Vec<RefusedRow>,
    outgoing: AnswerBatch,
    /// For sequences: the rows of the batch, and the states of the sequences.
    rows: Option<Box<Rows>>,
}

impl InstanceState {
    /// The state of an instance that has not executed anything yet.
    pub fn new(engine: Box<dyn Engine>) -> InstanceState {
        InstanceState {
            batch: Vec::new(),
            engine,
            gather: Gather::default(),
            wanted: Vec::new(),
            outputs: Vec::new(),
            refused: Vec::new(),
            outgoing: AnswerBatch::default(),
            rows: None,
        }
    }

    /// The sizes of the batch; none where they do not tell how long it takes.
    pub fn sizes(&self, model: &ModelVersion) -> Option<Sizes> {
        let sizes =
            Sizes::of_requests(model.spec.max_batch_size > 0, self.batch.iter().map(|pending| &pending.checked))?;
        self.sizes_tell(sizes.bytes()).then_some(sizes)
    }

    /// Whether sizes tell how long inputs of so many bytes take.
    pub fn sizes_tell(&self, bytes: usize) -> bool {
        self.engine.sizes_tell(bytes)
    }

    /// Executes inputs that the caller has gathered; the caller splits the outputs and answers.
    ///
    /// # Errors
    ///
    /// The engine's error, also where it is about one row alone.
    pub fn compute(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<ExecutionTimes, EngineError> {
        let began = alipes_clock::now();
        // Copies nothing, but what is not aligned.
        let inputs = self.gather.gather([inputs.iter().copied()])?;
        let gathered = alipes_clock::now();
        self.engine.run(&inputs, wanted, outputs)?;
        if let Some(RefusedRow { row, error }) = self.engine.refused().into_iter().next() {
            outputs.clear();
            let rows = inputs.first().and_then(|input| input.shape.first()).copied().unwrap_or(1);
            return Err(if rows > 1 { of_row(row, rows, error) } else { error });
        }
        Ok(ExecutionTimes { input: gathered - began, infer: alipes_clock::elapsed(gathered), output: Duration::ZERO })
    }
}

/// Executes the batch of an instance and answers each of its requests, also where the engine fails or panics.
pub fn execute(model: &ModelVersion, state: &mut InstanceState) {
    let claimed_at = alipes_clock::now();
    match &model.sequences {
        // In a sequence what comes next would be wrong without it; the queue looks before each batch.
        None => withdraw_cancelled(model, &mut state.batch, claimed_at),
        Some(sequences) if state.batch.iter().any(|pending| pending.is_visit()) => {
            let rows = state.rows.get_or_insert_default();
            visit::receive_all(sequences, rows, &mut state.batch, &mut state.outgoing);
        }
        Some(_) => {}
    }
    if state.batch.is_empty() {
        return state.outgoing.send();
    }
    let sizes = state.sizes(model);
    let outcome = catch_unwind(AssertUnwindSafe(|| run(model, state)));
    match outcome {
        Ok(Ok(times)) => succeed(model, state, claimed_at, times),
        Ok(Err(error)) => fail(model, state, claimed_at, error.into()),
        Err(_) => {
            let text = format!("model '{}' panicked, please report it", model.name);
            fail(model, state, claimed_at, InferError::internal(text));
        }
    }
    // Without what readers do with the answers, such as the next steps of an ensemble: the model is no slower for it.
    let time = alipes_clock::elapsed(claimed_at);
    model.pace.note(time);
    model.pace.note_batch(time, sizes);
    executor::collect(|| state.outgoing.send());
}

/// Gathers the inputs and runs the engine; the outputs are left in the state.
fn run(model: &ModelVersion, state: &mut InstanceState) -> Result<ExecutionTimes, EngineError> {
    let began = alipes_clock::now();
    union_of_wanted(model, &state.batch, &mut state.wanted);
    let datatypes = |index: usize| model.spec.inputs[index].datatype;
    let members = state.batch.iter().map(|pending| {
        let inputs = &pending.checked.inputs;
        inputs.iter().map(|input| Member {
            index: input.index,
            datatype: datatypes(input.index),
            shape: &input.shape,
            data: &input.data,
        })
    });
    let inputs = match &model.sequences {
        None => match &model.layout {
            None => state.gather.gather(members)?,
            Some(layout) => state.gather.gather_laid_out(layout, members)?,
        },
        Some(sequences) => {
            add_state_outputs(sequences, &mut state.wanted);
            let rows = state.rows.get_or_insert_default();
            rows.lay_out(sequences, &state.batch);
            let joined = state.gather.gather(rows.members(&model.spec, sequences, &state.batch));
            joined.map_err(|error| rows.differing_states(sequences, &state.batch).unwrap_or(error))?
        }
    };
    let gathered = alipes_clock::now();
    state.engine.run(&inputs, &state.wanted, &mut state.outputs)?;
    state.refused = state.engine.refused();
    Ok(ExecutionTimes { input: gathered - began, infer: alipes_clock::elapsed(gathered), output: Duration::ZERO })
}

/// Outputs that any request of the batch wants, by name: the order in which Triton answers the outputs of ONNX models,
/// whatever order was asked for.
fn union_of_wanted(model: &ModelVersion, batch: &[Pending], wanted: &mut Vec<usize>) {
    wanted.clear();
    for &index in batch.iter().flat_map(|pending| &pending.checked.outputs) {
        if !wanted.contains(&index) {
            wanted.push(index);
        }
    }
    let name = |index: usize| model.spec.outputs[index].name.as_str();
    wanted.sort_unstable_by(|&one, &other| name(one).cmp(name(other)));
}

fn succeed(model: &ModelVersion, state: &mut InstanceState, claimed_at: Instant, mut times: ExecutionTimes) {
    let began = alipes_clock::now();
    let batches = model.spec.max_batch_size > 0;
    let rows: u32 = state.batch.iter().map(|pending| pending.checked.rows).sum();
    let laid_out = state.rows.as_mut().zip(model.sequences.as_ref());
    let batch_size = laid_out.as_ref().map_or(rows, |(laid_out, _)| laid_out.count() as u32);
    let split = split(model, &state.batch, &state.outputs, batches.then_some(batch_size as usize));
    let mut split = match split {
        Ok(split) => split,
        Err(error) => return fail(model, state, claimed_at, error.into()),
    };
    let mut answers = Vec::with_capacity(state.batch.len());
    match laid_out {
        None => state.batch.iter().for_each(|pending| {
            answers.push(outputs_of(model, pending, split.take(pending.checked.rows as usize)));
        }),
        Some((laid_out, sequences)) => laid_out.take(sequences, &state.batch, &mut split, |pending, pieces| {
            answers.push(outputs_of(model, pending, pieces.into_iter()));
        }),
    }
    times.output = alipes_clock::elapsed(began);
    drop(split);
    let answers = refuse(model, state, claimed_at, answers);
    if answers.is_empty() {
        return state.outputs.clear();
    }
    let rows: u32 = state.batch.iter().map(|pending| pending.checked.rows).sum();
    let requests = state.batch.len() as u64;
    let answered = alipes_clock::now();
    // Recorded before the answers leave, so that statistics read after an answer include it.
    let spent = state.batch.iter().map(|pending| answered.duration_since(pending.arrived));
    let waited = state.batch.iter().map(|pending| claimed_at.duration_since(pending.arrived));
    model.statistics.executed(&Execution { batch_size, rows, requests, times }, waited, spent);
    first_responses(model, state, answered);
    for (pending, answer) in state.batch.drain(..).zip(answers) {
        if let Some(shares) = &pending.shares {
            shares.add(&times);
        }
        if let Some(trace) = &pending.trace {
            note_execution(trace, claimed_at, times, &answer);
        }
        state.outgoing.add(pending.responder, Ok(Reply { outputs: answer, parameters: Vec::new() }));
    }
    state.outputs.clear();
}

/// Fails the requests whose rows the engine could not compute, and them alone; what is left of the batch keeps its
/// answers.
fn refuse(
    model: &ModelVersion,
    state: &mut InstanceState,
    claimed_at: Instant,
    answers: Vec<Vec<Tensor>>,
) -> Vec<Vec<Tensor>> {
    if state.refused.is_empty() {
        return answers;
    }
    let mut refused = mem::take(&mut state.refused).into_iter().peekable();
    let (mut end, mut kept) = (0, Vec::with_capacity(answers.len()));
    let batch = mem::take(&mut state.batch);
    for (pending, answer) in batch.into_iter().zip(answers) {
        let begin = end;
        // A model that does not batch has one request, whose row is the first.
        end += if model.spec.max_batch_size > 0 { pending.checked.rows as usize } else { 1 };
        let mut first = None;
        while let Some(row) = refused.next_if(|refused| refused.row < end) {
            first.get_or_insert(row);
        }
        match first {
            None => {
                state.batch.push(pending);
                kept.push(answer);
            }
            Some(RefusedRow { row, error }) => {
                let rows = pending.checked.rows;
                let error = if rows > 1 { of_row(row - begin, rows.into(), error) } else { error };
                fail_one(model, state, claimed_at, pending, error.into());
            }
        }
    }
    kept
}

/// The error of a row that is not alone in its request.
fn of_row(row: usize, rows: i64, error: EngineError) -> EngineError {
    EngineError { message: format!("row {row} of {rows}: {}", error.message), ..error }
}

fn split<'a>(
    model: &ModelVersion,
    batch: &[Pending],
    outputs: &'a [OutputTensor],
    rows: Option<usize>,
) -> Result<Split<'a>, EngineError> {
    let Some(layout) = model.layout.as_ref().filter(|_| model.sequences.is_none()) else {
        return Split::new(outputs, rows);
    };
    let shape_of = |pending: &Pending, source| {
        pending.checked.inputs.iter().find(|input| input.index == source).map(|input| input.shape.clone())
    };
    Split::laid_out(outputs, rows, |output| {
        let source = layout.source_of(output)?;
        Some(batch.iter().filter_map(|pending| shape_of(pending, source)).collect())
    })
}

/// The only response of a request is its first, too.
fn first_responses(model: &ModelVersion, state: &InstanceState, answered: Instant) {
    if model.statistics.wants_first_responses() {
        let spent = state.batch.iter().map(|pending| answered.duration_since(pending.arrived));
        spent.for_each(|spent| model.statistics.first_response(spent));
    }
}

/// A request's own rows of the outputs it asked for, under their wire shapes.
fn outputs_of(model: &ModelVersion, pending: &Pending, pieces: impl Iterator<Item = OutputTensor>) -> Vec<Tensor> {
    let requested = &pending.checked.outputs;
    pieces
        .filter(|piece| requested.contains(&piece.index))
        .map(|piece| {
            let port = &model.spec.outputs[piece.index];
            let shape = wire_shape(port, model.spec.max_batch_size > 0, piece.shape);
            Tensor { name: port.name.as_str().into(), datatype: piece.datatype, shape, data: piece.data }
        })
        .collect()
}

fn fail(model: &ModelVersion, state: &mut InstanceState, claimed_at: Instant, error: InferError) {
    for pending in mem::take(&mut state.batch) {
        fail_one(model, state, claimed_at, pending, error.clone());
    }
    state.outputs.clear();
    state.refused.clear();
}

fn fail_one(model: &ModelVersion, state: &mut InstanceState, claimed_at: Instant, pending: Pending, error: InferError) {
    let now = alipes_clock::now();
    let spent = now.duration_since(pending.arrived);
    if model.statistics.wants_first_responses() {
        model.statistics.first_response(spent);
    }
    if let Some(trace) = &pending.trace {
        // How far it came, only the engine knows.
        let infer = now.duration_since(claimed_at);
        note_execution(trace, claimed_at, ExecutionTimes { infer, ..ExecutionTimes::default() }, &[]);
    }
    model.statistics.failed(FailureReason::Backend, spent);
    state.outgoing.add(pending.responder, Err(error.at(Origin::Model)));
}
