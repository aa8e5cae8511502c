//! One batch on its way through all steps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use alipes_engine::batch::{Gather, Member, Split, Views};
use alipes_engine::{EngineError, InputView, OutputTensor};
use alipes_protocol::{InferError, Origin, Tensor};
use alipes_request::check::CheckedInput;
use alipes_request::responder::{AnswerBatch, Reply};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_stats::statistics::{Execution, ExecutionTimes, FailureReason};

use super::super::step;
use super::claims::Claim;
use super::plan::{Plan, Planned, Source};
use super::refusal::{fits, refusals};

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

/// Why a batch has come no further.
enum Failure {
    /// Its tensors do not fit a step, whose model says so to each request.
    Refused(Vec<InferError>),
    /// A model has failed.
    Failed(InferError),
}

/// What all steps have the same of.
struct Way<'a> {
    model: &'a ModelVersion,
    plan: &'a Plan,
    claims: &'a [Claim],
    requests: &'a [Pending],
    rows: u32,
    claimed_at: Instant,
}

impl Batch {
    /// Rows of its requests together.
    pub fn rows(&self) -> u32 {
        self.requests.iter().map(|request| request.checked.rows).sum()
    }

    /// Takes the batch through all steps. Each request has an answer then, whatever happens, to be [sent](Self::send).
    pub fn go(&mut self, model: &ModelVersion, plan: &Plan, claims: &[Claim], claimed_at: Instant) {
        let rows = self.rows();
        let Batch { requests, gather, made, outputs, .. } = self;
        made.clear();
        made.resize(plan.tensors, None);
        let way = Way { model, plan, claims, requests, rows, claimed_at };
        match way.run(gather, made, outputs) {
            Ok(times) => self.succeed(model, plan, times),
            Err(Failure::Refused(errors)) => self.fail(model, errors),
            Err(Failure::Failed(error)) => {
                let errors = vec![error; self.requests.len()];
                self.fail(model, errors);
            }
        }
        self.made.clear();
    }

    /// Sends the answers off.
    pub fn send(&mut self) {
        self.outgoing.send();
    }

    fn succeed(&mut self, model: &ModelVersion, plan: &Plan, times: ExecutionTimes) {
        let last =
            |(index, &tensor): (usize, &usize)| self.made[tensor].take().map(|whole| OutputTensor { index, ..whole });
        let outputs: Vec<OutputTensor> = plan.outputs.iter().enumerate().filter_map(last).collect();
        let rows = (model.spec.max_batch_size > 0).then(|| self.rows() as usize);
        let mut split = match Split::new(&outputs, rows) {
            Ok(split) => split,
            Err(error) => return self.fail(model, vec![error.into(); self.requests.len()]),
        };
        let now = alipes_clock::now();
        let spent = |request: &Pending| (request.checked.rows, now.duration_since(request.arrived));
        // Recorded before the answers leave, so that statistics read after an answer include it.
        model.statistics.executed_each(times, self.requests.iter().map(spent));
        for request in self.requests.drain(..) {
            if let Some(outer) = &request.shares {
                outer.add(&times);
            }
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

    fn fail(&mut self, model: &ModelVersion, errors: Vec<InferError>) {
        let now = alipes_clock::now();
        for (request, error) in self.requests.drain(..).zip(errors) {
            model.statistics.failed(FailureReason::Other, now.duration_since(request.arrived));
            let message = format!("in ensemble '{}', {}", model.name, error.message);
            self.outgoing.add(request.responder, Err(InferError { message, ..error }.at(Origin::Model)));
        }
    }
}

impl Way<'_> {
    /// Runs the steps; what they took together.
    fn run(
        &self,
        gather: &mut Gather,
        made: &mut [Option<OutputTensor>],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<ExecutionTimes, Failure> {
        let inputs = self.requests.iter().map(|request| request.checked.inputs.iter().map(|input| self.view(input)));
        let gathered = gather.gather(inputs).map_err(|error| Failure::Failed(error.into()))?;
        let (mut total, mut began) = (ExecutionTimes::default(), self.claimed_at);
        for step in &self.plan.steps {
            let times = self.run_step(step, &gathered, made, outputs, began)?;
            total.input += times.input;
            total.infer += times.infer;
            total.output += times.output;
            began = alipes_clock::now();
        }
        Ok(total)
    }

    fn view<'a>(&self, input: &'a CheckedInput) -> Member<'a> {
        let datatype = self.model.spec.inputs[input.index].datatype;
        Member { index: input.index, datatype, shape: &input.shape, data: &input.data }
    }

    /// Runs a step and records it in the statistics of its model.
    fn run_step(
        &self,
        step: &Planned,
        gathered: &[InputView<'_>],
        made: &mut [Option<OutputTensor>],
        outputs: &mut Vec<OutputTensor>,
        began: Instant,
    ) -> Result<ExecutionTimes, Failure> {
        let claim = &self.claims[step.member];
        let model = &claim.model;
        claim.note(began, self.requests.len(), self.rows);
        let Some(computed) = self.compute(step, gathered, made, outputs) else {
            return Err(Failure::Refused(refusals(model, step, self.requests, made)));
        };
        let ended = alipes_clock::now();
        // With the request itself to the first step, to the others when those before had run.
        let came = |request: &Pending| if began == self.claimed_at { request.arrived } else { began };
        let waited = self.requests.iter().map(|request| began.duration_since(came(request)));
        let spent = self.requests.iter().map(|request| ended.duration_since(came(request)));
        if model.statistics.wants_first_responses() {
            spent.clone().for_each(|spent| model.statistics.first_response(spent));
        }
        let mut times = match computed {
            Ok(times) => times,
            Err(error) => {
                outputs.clear();
                spent.for_each(|spent| model.statistics.failed(FailureReason::Backend, spent));
                return Err(Failure::Failed(error.into()));
            }
        };
        times.input = (ended - began).saturating_sub(times.infer);
        let requests = self.requests.len() as u64;
        let execution = Execution { batch_size: self.rows, rows: self.rows, requests, times };
        model.statistics.executed(&execution, waited, spent);
        model.pace.note(ended - began);
        step.makes.iter().zip(outputs.drain(..)).for_each(|(&tensor, output)| made[tensor] = Some(output));
        Ok(times)
    }

    /// Has a step's model compute; none where what it is given does not fit it.
    fn compute(
        &self,
        step: &Planned,
        gathered: &[InputView<'_>],
        made: &[Option<OutputTensor>],
        outputs: &mut Vec<OutputTensor>,
    ) -> Option<Result<ExecutionTimes, EngineError>> {
        let Claim { model, instance, .. } = &self.claims[step.member];
        let batches = model.spec.max_batch_size > 0;
        let views: Views<'_> =
            step.inputs.iter().filter_map(|&(index, source)| view(index, source, gathered, made)).collect();
        if !views.iter().all(|view| fits(&model.spec.inputs[view.index], batches, view)) {
            return None;
        }
        let computed = catch_unwind(AssertUnwindSafe(|| instance.compute(&views, &step.wanted, outputs)));
        let rows = batches.then_some(self.rows as usize);
        Some(match computed {
            // Looked at as if it were split here, so that the model is named that gave too much or too little.
            Ok(Ok(times)) => Split::new(outputs, rows).map(|_| times),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(EngineError::internal(format!("model '{}' panicked, please report it", model.name))),
        })
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
