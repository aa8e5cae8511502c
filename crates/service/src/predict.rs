//! A request of the V1 protocol: any number of instances, as many at a time as the model takes.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use alipes_predict::{InstanceAxis, PredictInput, PredictModel, split};
use alipes_protocol::limits::{PREDICT_MAX_REQUESTS, PREDICT_REQUESTS_AT_ONCE};
use alipes_protocol::{Code, InferError, InferRequest, InferResponse, RequestedOutput, Tensor};
use alipes_runtime::model::ModelVersion;
use alipes_shared_memory::Held;
use alipes_spec::{ModelSpec, Port};
use serde::Serialize;

use super::Service;
use super::graph::GRAPH_VERSION;

/// The output that `:predict` gives alone where a model has it: models of scikit-learn and of its like have outputs
/// named after their methods, and KServe's servers of them answer with what this method gives, a value for each row.
const METHOD: &str = "predict";

/// The reason that the index gives for a version that was taken out of service.
const UNLOADED: &str = "unloaded";

/// A model and whether it is ready, as KServe says it.
#[derive(Clone, Debug, Serialize)]
pub struct PredictStatus {
    /// Its name.
    pub name: String,
    /// Whether it answers: a model that does not is an error.
    pub ready: bool,
}

/// A version of a model, as TensorFlow Serving says it.
#[derive(Clone, Debug, Serialize)]
pub struct VersionStatus {
    /// Its number.
    pub version: String,
    /// `AVAILABLE`: a version that is not is an error.
    pub state: &'static str,
    /// That nothing is wrong.
    pub status: VersionFault,
}

/// What is wrong with a version.
#[derive(Clone, Debug, Serialize)]
pub struct VersionFault {
    /// `OK`.
    pub error_code: &'static str,
    /// Empty.
    pub error_message: &'static str,
}

impl Service {
    /// Runs the instances of a request, whose terms all of them share, and returns the responses in their order with
    /// the number of instances stacked in each; none where each is all of an answer.
    ///
    /// Dropping the future cancels the requests that are not answered.
    ///
    /// # Errors
    ///
    /// `TooLarge` for more requests than one body may become; the first refusal or failure of one of them.
    pub async fn predict(
        &self,
        model: &Arc<ModelVersion>,
        terms: InferRequest,
        stacked: Option<usize>,
    ) -> Result<(Vec<InferResponse>, Option<Vec<usize>>), InferError> {
        let axis = instance_axis(&model.spec);
        let outputs = outputs(&model.spec);
        let (requests, rows) = parts(&model.spec, &terms.inputs, stacked, axis)?;
        // All of them were admitted with the first, so that a server that stops answers them all.
        let _inflight = self.admit(&terms)?;
        let mut requests = requests.into_iter();
        let mut submitted = VecDeque::new();
        let mut responses = Vec::with_capacity(requests.len());
        let mut trace = terms.trace.clone();
        loop {
            if submitted.len() < PREDICT_REQUESTS_AT_ONCE
                && let Some(inputs) = requests.next()
            {
                let request = InferRequest {
                    id: terms.id.clone(),
                    inputs,
                    outputs: outputs.clone(),
                    parameters: terms.parameters.clone(),
                    // The moments of one request are traced.
                    trace: trace.take(),
                    ..InferRequest::default()
                };
                submitted.push_back(pin!(self.submit(model, request, Held::default())).await);
            } else if let Some(first) = submitted.pop_front() {
                let mut response = pin!(self.finish(first)).await?;
                let elements = |output: &&mut Tensor| !outputs.is_empty() || is_element(&model.spec, &output.name);
                response.outputs.iter_mut().filter(elements).for_each(drop_last_one);
                responses.push(response);
            } else {
                return Ok((responses, rows));
            }
        }
    }

    /// The version of a model for a request of the V1 protocol, with KServe's texts.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown model or version, `Unavailable` for one that does not serve yet or any more.
    pub fn lookup_predictor(&self, name: &str, version: &str) -> Result<Arc<ModelVersion>, InferError> {
        self.lookup(name, version).map_err(|error| match error.code {
            Code::Unavailable => not_ready(name),
            Code::NotFound if self.is_known(name, version) => not_ready(name),
            Code::NotFound if version.is_empty() => {
                InferError::new(Code::NotFound, format!("Model with name {name} does not exist."))
            }
            _ => error,
        })
    }

    /// Whether the index names a model, or a version of it, that loads or could not be loaded.
    fn is_known(&self, name: &str, version: &str) -> bool {
        self.registry.index().iter().any(|entry| {
            entry.name == name
                && !entry.state.is_empty()
                && entry.reason != UNLOADED
                && (version.is_empty() || entry.version == version)
        })
    }

    /// The names of the models that are loaded, load or could not be loaded, and of the graph, each once.
    pub fn predictor_names(&self) -> Vec<String> {
        let index = self.registry.index();
        let known = index.iter().filter(|entry| !entry.state.is_empty() && entry.reason != UNLOADED);
        let graph = self.graph_entry().map(|entry| entry.name);
        let mut names: Vec<String> = known.map(|entry| entry.name.clone()).chain(graph).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a model is ready, or the graph.
    ///
    /// # Errors
    ///
    /// As for `lookup_predictor`, `Unavailable` for one that is not ready now too.
    pub async fn predictor_status(&self, name: &str) -> Result<PredictStatus, InferError> {
        self.check_version(name, "").await?;
        Ok(PredictStatus { name: name.to_owned(), ready: true })
    }

    /// The state of a version.
    ///
    /// # Errors
    ///
    /// As for `predictor_status`.
    pub async fn version_status(&self, name: &str, version: &str) -> Result<VersionStatus, InferError> {
        Ok(VersionStatus {
            version: self.check_version(name, version).await?.to_string(),
            state: "AVAILABLE",
            status: VersionFault { error_code: "OK", error_message: "" },
        })
    }

    /// The number of a version that is ready.
    async fn check_version(&self, name: &str, version: &str) -> Result<i64, InferError> {
        if let Some(graph) = self.graph(name, version)? {
            return if self.graph_ready(graph).await { Ok(GRAPH_VERSION) } else { Err(not_ready(name)) };
        }
        let model = self.lookup_predictor(name, version)?;
        let is_ready = model.is_ready()
            && match model.ask_ready() {
                Some(answer) => answer.await,
                None => true,
            };
        if is_ready { Ok(model.spec.version) } else { Err(not_ready(&model.name)) }
    }

    /// The explanation of a model's answers.
    ///
    /// # Errors
    ///
    /// As for `lookup_predictor`; `Unsupported` for a model without an explainer: one with an explainer is asked by a
    /// call.
    pub fn explain_prediction(&self, name: &str, version: &str) -> Result<(), InferError> {
        let model = self.lookup_predictor(name, version)?;
        let text = format!("model '{}' has no explainer: ':explain' is for models that have one", model.name);
        Err(InferError::new(Code::Unsupported, text))
    }
}

/// What a model declares, for the reader of a body.
pub fn predict_model(model: &ModelVersion) -> PredictModel {
    let (spec, axis) = (&model.spec, instance_axis(&model.spec));
    let first = usize::from(axis == InstanceAxis::First);
    let input = |port: &Port| PredictInput {
        name: port.name.as_str().into(),
        datatype: port.datatype,
        instance: port.dims.iter().skip(first).copied().collect(),
        optional: port.optional,
    };
    PredictModel { name: spec.name.clone(), inputs: spec.inputs.iter().map(input).collect(), axis }
}

/// What an instance is to a model: a row where it batches, or where the first dimension of all its tensors is open.
fn instance_axis(spec: &ModelSpec) -> InstanceAxis {
    if spec.max_batch_size > 0 {
        return InstanceAxis::Batch;
    }
    let mut ports = spec.inputs.iter().chain(&spec.outputs);
    if ports.all(|port| port.dims.first() == Some(&-1)) { InstanceAxis::First } else { InstanceAxis::Whole }
}

/// The outputs to ask for; empty asks for all of them.
fn outputs(spec: &ModelSpec) -> Vec<RequestedOutput> {
    let has_method = spec.outputs.iter().any(|port| port.name == METHOD);
    has_method.then(|| RequestedOutput { name: METHOD.into(), ..RequestedOutput::default() }).into_iter().collect()
}

/// Whether a model gives one element for each row, which its declaration has as an axis of one.
fn is_element(spec: &ModelSpec, output: &str) -> bool {
    let port = spec.outputs.iter().find(|port| port.name == output);
    port.is_some_and(|port| port.reshape.as_ref().is_some_and(Vec::is_empty))
}

/// Makes rows of one element elements.
fn drop_last_one(output: &mut Tensor) {
    if output.shape.len() > 1 && output.shape.last() == Some(&1) {
        output.shape.pop();
    }
}

/// The inputs of each request, and how many instances are stacked in each.
type Parts = (Vec<Vec<Tensor>>, Option<Vec<usize>>);

fn parts(spec: &ModelSpec, inputs: &[Tensor], stacked: Option<usize>, axis: InstanceAxis) -> Result<Parts, InferError> {
    let Some(instances) = stacked else { return Ok((vec![inputs.to_vec()], None)) };
    let (most, is_whole) = match axis {
        InstanceAxis::Batch => (usize::try_from(spec.max_batch_size).unwrap_or(usize::MAX), false),
        InstanceAxis::First => (instances, false),
        InstanceAxis::Whole => (1, true),
    };
    let count = instances.div_ceil(most);
    if count > PREDICT_MAX_REQUESTS {
        return Err(InferError::new(
            Code::TooLarge,
            format!(
                "{instances} instances are {count} requests for model '{}', which takes {most} at a time: a body may \
                 become {PREDICT_MAX_REQUESTS} of them",
                spec.name
            ),
        ));
    }
    let requests = split(inputs, instances, most, is_whole);
    let rows = (!is_whole).then(|| (0..count).map(|index| most.min(instances - index * most)).collect());
    Ok((requests, rows))
}

fn not_ready(name: &str) -> InferError {
    InferError::new(Code::Unavailable, format!("Model with name {name} is not ready."))
}
