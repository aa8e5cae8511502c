//! One batch on its way through all steps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_engine::batch::{Gather, Member, Split, Views};
use alipes_engine::{EngineError, InputView, OutputTensor};
use alipes_protocol::{InferError, Origin, Tensor};
use alipes_request::check::CheckedInput;
use alipes_request::completion;
use alipes_request::responder::{AnswerBatch, Reply};
use alipes_runtime::model::sizes::Sizes;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason};

use super::super::step;
use super::batched_request::{BatchedRequest, InnerRecord, Ran, joined};
use super::claims::{Claim, Claims};
use super::plan::{Plan, Planned, Source};
use super::refusal::{fits, refusals};

/// How long a network thread takes one request of a batch after the other through steps that take each by itself; the
/// others are left to the pool then.
const ALONE: Duration = Duration::from_millis(2);

/// A batch, and what it is made in, which is kept from one to the next.
#[derive(Default)]
pub struct Batch {
    /// Its requests.
    pub requests: Vec<Pending>,
    gather: Gather,
    /// By number: the tensors that steps have made.
    made: Vec<Option<OutputTensor>>,
    outputs: Vec<OutputTensor>,
    outgoing: AnswerBatch,
}

/// Why requests have come no further, and than which step.
struct Failure {
    step: usize,
    why: Why,
}

enum Why {
    /// Their tensors do not fit a step, whose model says so to each request.
    Refused(Vec<InferError>),
    /// A model has failed.
    Failed(InferError),
    /// This is a thread of the network, and the step is not known to be quick.
    Left,
}

/// What all steps have the same of.
pub struct Way<'a> {
    /// The ensemble.
    pub model: &'a ModelVersion,
    /// How it goes.
    pub plan: &'a Plan,
    /// The versions that it goes through.
    pub parts: &'a [Arc<ModelVersion>],
    /// Their instances.
    pub claims: &'a Claims,
    /// When the batch was taken.
    pub claimed_at: Instant,
}

/// The buffers of a batch.
struct Buffers<'a> {
    made: &'a mut [Option<OutputTensor>],
    outputs: &'a mut Vec<OutputTensor>,
}

impl Batch {
    /// Takes the batch through all steps. Each request has an answer then, whatever happens, to be [sent](Self::send);
    /// requests that are not for this thread are left in it, to be taken through all steps by another.
    pub fn go(&mut self, way: &Way<'_>) {
        self.made.clear();
        self.made.resize(way.plan.tensors, None);
        let batched = self.requests.drain(..).map(BatchedRequest::from).collect();
        if way.plan.alone == 0 {
            self.go_together(way, batched);
        } else {
            let groups = self.go_alone(way, batched);
            groups.into_iter().for_each(|group| self.go_together(way, group));
        }
        self.made.clear();
    }

    /// Sends the answers off.
    pub fn send(&mut self) {
        self.outgoing.send();
    }

    /// Takes each request by itself through the steps that take it so, and puts those together that may be a batch.
    fn go_alone(&mut self, way: &Way<'_>, batched: Vec<BatchedRequest>) -> Vec<Vec<BatchedRequest>> {
        let mut groups: Vec<Vec<BatchedRequest>> = Vec::with_capacity(1);
        for mut one in batched {
            if completion::is_network_thread() && alipes_clock::elapsed(way.claimed_at) > ALONE {
                self.requests.push(one.request);
                continue;
            }
            let buffers = Buffers { made: &mut self.made, outputs: &mut self.outputs };
            if let Err(failure) = way.run_alone(&mut one, buffers) {
                self.fail(way, vec![one], &[], failure);
                continue;
            }
            match groups.iter_mut().find(|group| group[0].goes_with(&one)) {
                Some(group) => group.push(one),
                None => groups.push(vec![one]),
            }
        }
        groups
    }

    /// Takes requests together through the other steps, and answers them.
    fn go_together(&mut self, way: &Way<'_>, batched: Vec<BatchedRequest>) {
        for (number, &(tensor, _)) in batched[0].made.iter().enumerate() {
            self.made[tensor] = joined(&batched, number);
        }
        let mut ran = Vec::with_capacity(way.plan.steps.len());
        let buffers = Buffers { made: &mut self.made, outputs: &mut self.outputs };
        match way.run_together(&batched, &mut self.gather, buffers, &mut ran) {
            Ok(()) => self.succeed(way, batched, &ran),
            Err(failure) => self.fail(way, batched, &ran, failure),
        }
    }

    fn succeed(&mut self, way: &Way<'_>, batched: Vec<BatchedRequest>, ran: &[Ran]) {
        let Way { model, plan, .. } = way;
        let last =
            |(index, &tensor): (usize, &usize)| self.made[tensor].take().map(|whole| OutputTensor { index, ..whole });
        let outputs: Vec<OutputTensor> = plan.outputs.iter().enumerate().filter_map(last).collect();
        let rows = (model.spec.max_batch_size > 0).then(|| rows_of(&batched) as usize);
        let mut split = match Split::new(&outputs, rows) {
            Ok(split) => split,
            Err(error) => {
                let failure = Failure { step: usize::MAX, why: Why::Failed(error.into()) };
                return self.fail(way, batched, ran, failure);
            }
        };
        record(way, &batched, ran);
        for one in batched {
            let request = one.request;
            let named = |piece: OutputTensor| {
                let OutputTensor { index, datatype, shape, data } = piece;
                Tensor { name: model.spec.outputs[index].name.as_str().into(), datatype, shape, data }
            };
            let outputs = split.take(request.checked.rows as usize).map(named).collect();
            let sequence = request.checked.context.map(|context| context.sequence).unwrap_or_default();
            let parameters = step::parameters(Some(sequence));
            self.outgoing.add(request.responder, Ok(Reply { outputs, parameters }));
        }
    }

    fn fail(&mut self, way: &Way<'_>, batched: Vec<BatchedRequest>, ran: &[Ran], Failure { step, why }: Failure) {
        let errors = match why {
            Why::Left => return self.requests.extend(batched.into_iter().map(|one| one.request)),
            Why::Refused(errors) => errors,
            Why::Failed(error) => vec![error; batched.len()],
        };
        way.record_steps(&batched, ran);
        let now = alipes_clock::now();
        for (one, mut error) in batched.into_iter().zip(errors) {
            way.record_inner(&one, ran, Some(step));
            way.model.statistics.failed(FailureReason::Other, now.duration_since(one.request.arrived));
            for ensemble in way.ensembles_of(step) {
                error.message = format!("in ensemble '{}', {}", ensemble.name, error.message);
            }
            self.outgoing.add(one.request.responder, Err(error.at(Origin::Model)));
        }
    }
}

/// Records requests that have come through all steps. Before the answers leave, so that statistics read after an answer
/// include it.
fn record(way: &Way<'_>, batched: &[BatchedRequest], ran: &[Ran]) {
    way.record_steps(batched, ran);
    let now = alipes_clock::now();
    let spent = |request: &Pending| (request.checked.rows, now.duration_since(request.arrived));
    let statistics = &way.model.statistics;
    if way.plan.alone == 0 {
        // All have the same times.
        let times = batched.first().map(|first| first.times(ran)).unwrap_or_default();
        statistics.executed_each(times, batched.iter().map(|one| spent(&one.request)));
    }
    for one in batched {
        way.record_inner(one, ran, None);
        let times = one.times(ran);
        if way.plan.alone > 0 {
            statistics.executed_each(times, [spent(&one.request)]);
        }
        if let Some(outer) = &one.request.shares {
            outer.add(&times);
        }
    }
}

fn rows_of(batched: &[BatchedRequest]) -> u32 {
    batched.iter().map(|one| one.request.checked.rows).sum()
}

impl Way<'_> {
    /// The ensembles that a step is part of, the innermost first.
    fn ensembles_of(&self, step: usize) -> impl Iterator<Item = &ModelVersion> {
        let inner = self.plan.inner.iter().filter(move |inner| inner.steps.contains(&step));
        inner.map(|inner| &*self.parts[inner.member]).chain([self.model])
    }

    /// Records the steps that were run in the statistics of their models: those that took a request by itself, and
    /// those that took them together.
    fn record_steps(&self, batched: &[BatchedRequest], together: &[Ran]) {
        for one in batched {
            one.ran.iter().enumerate().for_each(|(number, ran)| self.record_step(number, slice::from_ref(one), ran));
        }
        let numbers = self.plan.alone..;
        numbers.zip(together).for_each(|(number, ran)| self.record_step(number, batched, ran));
    }

    fn record_step(&self, number: usize, batched: &[BatchedRequest], ran: &Ran) {
        let statistics = &self.claim(&self.plan.steps[number]).model.statistics;
        let came = batched.iter().map(|one| one.came_to(number, ran.began));
        let waited = came.clone().map(|came| ran.began.duration_since(came));
        let spent = came.map(|came| ran.ended.duration_since(came));
        if statistics.wants_first_responses() {
            spent.clone().for_each(|spent| statistics.first_response(spent));
        }
        let (rows, requests) = (rows_of(batched), batched.len() as u64);
        let execution = Execution { batch_size: rows, rows, requests, times: ran.times };
        statistics.executed(&execution, waited, spent);
    }

    /// Records what has become of the ensembles that are steps, before the ensemble itself is.
    fn record_inner(&self, one: &BatchedRequest, ran: &[Ran], failed: Option<usize>) {
        for inner in &self.plan.inner {
            let statistics = &self.parts[inner.member].statistics;
            let inner = InnerRecord { statistics, steps: &inner.steps, alone: self.plan.alone };
            one.record_inner(inner, ran, failed);
        }
    }

    /// Runs the steps that take a request by itself.
    fn run_alone(&self, one: &mut BatchedRequest, buffers: Buffers<'_>) -> Result<(), Failure> {
        let Buffers { made, outputs } = buffers;
        for number in 0..self.plan.alone {
            let began = one.ran.last().map_or(self.claimed_at, |before| before.ended);
            let inputs: Views<'_> = one.request.checked.inputs.iter().map(|input| self.view(input)).collect();
            let buffers = Buffers { made: &mut *made, outputs: &mut *outputs };
            let ran = self.run_step(number, slice::from_ref(one), &inputs, buffers, began)?;
            drop(inputs);
            one.ran.push(ran);
            let tensors = self.plan.steps[number].makes.iter();
            one.made.extend(tensors.filter_map(|&tensor| Some((tensor, made[tensor].take()?))));
        }
        Ok(())
    }

    /// Runs the steps that take the batch.
    fn run_together(
        &self,
        batched: &[BatchedRequest],
        gather: &mut Gather,
        buffers: Buffers<'_>,
        ran: &mut Vec<Ran>,
    ) -> Result<(), Failure> {
        let Buffers { made, outputs } = buffers;
        let inputs = batched.iter().map(|one| one.request.checked.inputs.iter().map(|input| self.view(input)));
        let failed = |error: EngineError| Failure { step: self.plan.alone, why: Why::Failed(error.into()) };
        let gathered = gather.gather(inputs).map_err(failed)?;
        let mut began = if self.plan.alone == 0 { self.claimed_at } else { alipes_clock::now() };
        for number in self.plan.alone..self.plan.steps.len() {
            let buffers = Buffers { made: &mut *made, outputs: &mut *outputs };
            ran.push(self.run_step(number, batched, &gathered, buffers, began)?);
            began = alipes_clock::now();
        }
        Ok(())
    }

    fn view<'a>(&self, input: &'a CheckedInput) -> Member<'a> {
        let datatype = self.model.spec.inputs[input.index].datatype;
        Member { index: input.index, datatype, shape: &input.shape, data: &input.data }
    }

    /// Runs a step. Statistics of its model count it once it is known what becomes of the requests: those that are left
    /// to another thread go through all steps again, and count once.
    fn run_step(
        &self,
        number: usize,
        batched: &[BatchedRequest],
        gathered: &[InputView<'_>],
        buffers: Buffers<'_>,
        began: Instant,
    ) -> Result<Ran, Failure> {
        let step = &self.plan.steps[number];
        let Buffers { made, outputs } = buffers;
        let claim = self.claim(step);
        let (model, rows) = (&claim.model, rows_of(batched));
        let Some(views) = views(model, step, gathered, made) else {
            claim.note(began, batched.len(), rows);
            let requests = batched.iter().map(|one| &one.request);
            return Err(Failure { step: number, why: Why::Refused(refusals(model, step, requests, made)) });
        };
        let sizes = sizes(claim, rows, step, &views);
        if completion::is_network_thread() && !model.pace.runs_here(sizes.as_ref()) {
            return Err(Failure { step: number, why: Why::Left });
        }
        claim.note(began, batched.len(), rows);
        let computed = compute(claim, rows, step, &views, outputs);
        drop(views);
        let ended = alipes_clock::now();
        let mut times = match computed {
            Ok(times) => times,
            Err(error) => {
                outputs.clear();
                for one in batched {
                    let spent = ended.duration_since(one.came_to(number, began));
                    model.statistics.failed_unanswered(FailureReason::Backend, spent);
                }
                return Err(Failure { step: number, why: Why::Failed(error.into()) });
            }
        };
        times.input = (ended - began).saturating_sub(times.infer);
        model.pace.note(ended - began);
        model.pace.note_batch(ended - began, sizes);
        step.makes.iter().zip(outputs.drain(..)).for_each(|(&tensor, output)| made[tensor] = Some(output));
        Ok(Ran { began, ended, times })
    }

    fn claim(&self, step: &Planned) -> &Claim {
        self.claims[step.member].as_ref().expect("an instance of each model that is no ensemble is claimed")
    }
}

/// The inputs of a step; none where what it is given does not fit its model.
fn views<'a>(
    model: &ModelVersion,
    step: &Planned,
    gathered: &[InputView<'a>],
    made: &'a [Option<OutputTensor>],
) -> Option<Views<'a>> {
    let batches = model.spec.max_batch_size > 0;
    let views: Views<'_> =
        step.inputs.iter().filter_map(|&(index, source)| view(index, source, gathered, made)).collect();
    views.iter().all(|view| fits(&model.spec.inputs[view.index], batches, view)).then_some(views)
}

/// The sizes of a step's execution; none where they do not tell how long it takes.
fn sizes(claim: &Claim, rows: u32, step: &Planned, views: &[InputView<'_>]) -> Option<Sizes> {
    let sizes = Sizes::of_views(claim.model.spec.max_batch_size > 0, rows, views, &step.wanted);
    claim.instance.sizes_tell(sizes.bytes()).then_some(sizes)
}

/// Has a step's model compute.
fn compute(
    claim: &Claim,
    rows: u32,
    step: &Planned,
    views: &[InputView<'_>],
    outputs: &mut Vec<OutputTensor>,
) -> Result<ExecutionTimes, EngineError> {
    let Claim { model, instance, .. } = claim;
    let computed = catch_unwind(AssertUnwindSafe(|| instance.compute(views, &step.wanted, outputs)));
    let rows = (model.spec.max_batch_size > 0).then_some(rows as usize);
    match computed {
        // Looked at as if it were split here, so that the model is named that gave too much or too little.
        Ok(Ok(times)) => Split::new(outputs, rows).map(|_| times),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(EngineError::internal(format!("model '{}' panicked, please report it", model.name))),
    }
}

/// A step's input out of the batch.
fn view<'a>(
    index: usize,
    source: Source,
    gathered: &[InputView<'a>],
    made: &'a [Option<OutputTensor>],
) -> Option<InputView<'a>> {
    match source {
        Source::Request(input) => gathered.get(input).map(|gathered| InputView { index, ..*gathered }),
        Source::Made(tensor) => {
            let OutputTensor { datatype, shape, data, .. } = made[tensor].as_ref()?;
            Some(InputView { index, datatype: *datatype, shape, data })
        }
    }
}
