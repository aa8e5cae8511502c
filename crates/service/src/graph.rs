//! The graph as a model: its requests are tensors, which go from step to step as they are.
//!
//! That takes a graph whose steps are all models of this server. Any other is asked in JSON alone, over HTTP.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use alipes_graph::{Condition, Destination, Failure, Graph, NoJson, Reply, Services, first_holding, run};
use alipes_protocol::codec::json::encode_response;
use alipes_protocol::{Code, InferError, InferRequest, InferResponse, Tensor};
use alipes_runtime::model::ModelVersion;
use alipes_shared_memory::Held;
use alipes_spec::Port;
use compact_str::{CompactString, format_compact};
use tokio::time::timeout;

use super::Service;

/// A graph, and the model of each of its services.
pub struct TensorGraph {
    /// The graph.
    pub graph: Arc<Graph>,
    models: Vec<Arc<ModelVersion>>,
}

impl Service {
    /// The graph of a name, where no model has it; none where a step is no model of this server, or there is no graph.
    #[inline]
    pub fn tensor_graph(&self, name: &str) -> Option<TensorGraph> {
        let graph = self.config.graph.as_ref().filter(|graph| graph.name == name)?;
        self.graph_of_models(graph)
    }

    #[cold]
    fn graph_of_models(&self, graph: &Arc<Graph>) -> Option<TensorGraph> {
        if self.lookup(&graph.name, "").is_ok() {
            return None;
        }
        let model = |destination: &Destination| match destination {
            Destination::Model(model) => self.lookup(model, "").ok(),
            Destination::Url(url) => self.lookup(url.service_name(), "").ok(),
        };
        let models = graph.services().iter().map(model).collect::<Option<Vec<_>>>()?;
        Some(TensorGraph { graph: Arc::clone(graph), models })
    }

    /// Runs a request through a graph.
    ///
    /// Dropping the future withdraws the requests of its steps.
    ///
    /// # Errors
    ///
    /// The error of a step that fails its node, `NotFound` where no condition holds, `DeadlineExceeded`, and
    /// `Unavailable` while the server drains.
    pub async fn infer_graph(&self, graph: &TensorGraph, request: InferRequest) -> Result<InferResponse, InferError> {
        let _inflight = self.admit(&request)?;
        if request.raw {
            return Err(InferError::invalid("a graph declares no input: name each, with its datatype and shape"));
        }
        let InferRequest { id, inputs, outputs, parameters, .. } = request;
        let calls = TensorCalls { service: self, graph, id: id.clone(), parameters };
        let first = Body::Tensors { tensors: inputs.into(), are_inputs: true };
        let outcome = timeout(graph.graph.timeout, run(&graph.graph, &calls, first)).await;
        let reply = outcome.map_err(|_| too_long(&graph.graph))?.map_err(|failure| error_of(&failure))?;
        let tensors = match reply.body {
            Body::Tensors { tensors, .. } => tensors,
            Body::Failed(error) => return Err(*error),
        };
        let wanted = |tensor: &&Tensor| outputs.is_empty() || outputs.iter().any(|output| output.name == *tensor.name);
        let found: Vec<Tensor> = tensors.iter().filter(wanted).cloned().collect();
        if let Some(absent) = outputs.iter().find(|output| found.iter().all(|tensor| *tensor.name != output.name)) {
            let text = format!("unexpected inference output '{}' for graph '{}'", absent.name, graph.graph.name);
            return Err(InferError::invalid(text));
        }
        let model_name = graph.graph.name.as_str().into();
        Ok(InferResponse { id, model_name, model_version: 1, parameters: Vec::new(), outputs: found })
    }
}

fn too_long(graph: &Graph) -> InferError {
    let seconds = graph.timeout.as_secs_f64();
    let text = format!("the graph was not done in {seconds} s: its timeout, or serverWrite of routerTimeouts");
    InferError::new(Code::DeadlineExceeded, text)
}

fn error_of(failure: &Failure) -> InferError {
    let code = if failure.status == 404 { Code::NotFound } else { Code::Internal };
    InferError::new(code, failure.cause.clone())
}

/// What steps are sent and answer.
#[derive(Clone)]
enum Body {
    /// Tensors; those of the request are inputs, all others outputs.
    Tensors { tensors: Arc<[Tensor]>, are_inputs: bool },
    /// What a step answered in their place.
    Failed(Box<InferError>),
}

struct TensorCalls<'a> {
    service: &'a Service,
    graph: &'a TensorGraph,
    id: CompactString,
    parameters: Vec<(String, alipes_protocol::Parameter)>,
}

impl Services for TensorCalls<'_> {
    type Body = Body;

    async fn call(&self, service: usize, body: Body) -> Result<Reply<Body>, Failure> {
        let tensors = match body {
            Body::Tensors { tensors, .. } => tensors,
            Body::Failed(error) => return Ok(failed(*error)),
        };
        let model = &self.graph.models[service];
        let request = InferRequest {
            id: self.id.clone(),
            inputs: fitted(&tensors, &model.spec.inputs),
            parameters: self.parameters.clone(),
            admitted: true,
            ..InferRequest::default()
        };
        Ok(match Box::pin(self.service.infer(model, request, Held::default())).await {
            Ok(response) => {
                Reply { status: 200, body: Body::Tensors { tensors: response.outputs.into(), are_inputs: false } }
            }
            Err(error) => failed(error),
        })
    }

    async fn first(&self, conditions: Vec<Option<Condition>>, body: &Body) -> Result<Option<usize>, NoJson> {
        first_holding(&conditions, &json_of(body).ok_or(NoJson)?)
    }

    async fn instances(&self, body: Body) -> Body {
        // Outputs become inputs in any case.
        body
    }

    async fn part(&self, body: Body) -> Result<Body, Failure> {
        Ok(body)
    }

    fn merge(&self, parts: Vec<(&str, Body)>) -> Result<Body, Failure> {
        Ok(merged(parts))
    }

    fn percent(&self) -> u32 {
        // A hasher of this call alone: its keys are random.
        u32::try_from(RandomState::new().hash_one(0) % 100).unwrap_or_default()
    }
}

fn failed(error: InferError) -> Reply<Body> {
    Reply { status: error.code.row().http_status, body: Body::Failed(Box::new(error)) }
}

/// The tensors that a model takes: those of its inputs' names; of one tensor and one input the names need not be equal.
fn fitted(tensors: &[Tensor], inputs: &[Port]) -> Vec<Tensor> {
    if let ([tensor], [input]) = (tensors, inputs) {
        return vec![Tensor { name: input.name.as_str().into(), ..tensor.clone() }];
    }
    let is_named = |tensor: &&Tensor| inputs.iter().any(|input| *input.name == *tensor.name);
    let named: Vec<Tensor> = tensors.iter().filter(is_named).cloned().collect();
    // Where a model takes none of them, it says so itself.
    if named.is_empty() { tensors.to_vec() } else { named }
}

/// All tensors of an ensemble's parts: those whose names several of them have are named `step.output`.
fn merged(parts: Vec<(&str, Body)>) -> Body {
    let mut counts: HashMap<CompactString, usize> = HashMap::new();
    for (_, body) in &parts {
        if let Body::Tensors { tensors, .. } = body {
            tensors.iter().for_each(|tensor| *counts.entry(tensor.name.clone()).or_default() += 1);
        }
    }
    let mut all = Vec::new();
    let mut failure = None;
    for (key, body) in parts {
        match body {
            Body::Tensors { tensors, .. } => all.extend(tensors.iter().map(|tensor| match counts[&tensor.name] {
                1 => tensor.clone(),
                _ => Tensor { name: format_compact!("{key}.{}", tensor.name), ..tensor.clone() },
            })),
            Body::Failed(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) if all.is_empty() => Body::Failed(error),
        _ => Body::Tensors { tensors: all.into(), are_inputs: false },
    }
}

/// Tensors as the V2 protocol writes them, for conditions.
fn json_of(body: &Body) -> Option<Vec<u8>> {
    let Body::Tensors { tensors, are_inputs } = body else { return None };
    let response = InferResponse {
        id: CompactString::default(),
        model_name: "".into(),
        model_version: 1,
        parameters: Vec::new(),
        outputs: tensors.to_vec(),
    };
    let text = encode_response(&response, &[], false).ok()?.head;
    if !are_inputs {
        return Some(text);
    }
    let behind = text.windows(OUTPUTS.len()).position(|window| window == OUTPUTS)? + OUTPUTS.len();
    Some([b"{\"inputs\":", &text[behind..]].concat())
}

/// The member of a response's JSON with its tensors, behind its names, which are empty here.
const OUTPUTS: &[u8] = b"\"outputs\":";

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;
    use bytes::Bytes;

    use super::*;

    fn tensor(name: &str) -> Tensor {
        let shape = [2_i64].into_iter().collect();
        Tensor { name: name.into(), datatype: Datatype::Uint8, shape, data: Bytes::from_static(&[1, 2]) }
    }

    fn body(names: &[&str]) -> Body {
        Body::Tensors { tensors: names.iter().map(|name| tensor(name)).collect(), are_inputs: false }
    }

    fn names(body: &Body) -> Vec<String> {
        let Body::Tensors { tensors, .. } = body else { panic!("tensors") };
        tensors.iter().map(|tensor| tensor.name.to_string()).collect()
    }

    #[test]
    fn outputs_whose_names_collide_have_the_names_of_their_steps() {
        let error = || Body::Failed(Box::new(InferError::invalid("no luck")));
        let merge = merged(vec![("a", body(&["y", "z"])), ("b", body(&["y", "w"])), ("c", error())]);
        assert_eq!(names(&merge), ["a.y", "z", "b.y", "w"]);
        assert!(matches!(merged(vec![("c", error())]), Body::Failed(_)));
    }

    #[test]
    fn a_model_gets_the_tensors_that_it_takes() {
        let port = |name: &str| -> Port {
            serde_json::from_str(&format!(r#"{{"name": "{name}", "datatype": "UINT8", "dims": [2]}}"#)).unwrap()
        };
        let fitted = |tensors: &[&str], inputs: &[&str]| -> Vec<String> {
            let tensors: Vec<Tensor> = tensors.iter().map(|name| tensor(name)).collect();
            let inputs: Vec<Port> = inputs.iter().map(|name| port(name)).collect();
            super::fitted(&tensors, &inputs).into_iter().map(|tensor| tensor.name.to_string()).collect()
        };
        assert_eq!(fitted(&["y"], &["x"]), ["x"]);
        assert_eq!(fitted(&["y", "x"], &["x"]), ["x"]);
        assert_eq!(fitted(&["y", "x"], &["x", "z"]), ["x"]);
        assert_eq!(fitted(&["y", "v"], &["x", "z"]), ["y", "v"]);
    }

    #[test]
    fn conditions_see_the_json_of_v2() {
        let Body::Tensors { tensors, .. } = body(&["outputs"]) else { panic!("tensors") };
        let of = |are_inputs| {
            let json = json_of(&Body::Tensors { tensors: Arc::clone(&tensors), are_inputs }).unwrap();
            String::from_utf8(json).unwrap()
        };
        assert_eq!(of(true), r#"{"inputs":[{"name":"outputs","datatype":"UINT8","shape":[2],"data":[1,2]}]}"#);
        assert!(of(false).contains(r#""outputs":[{"name":"outputs","#));
    }
}
