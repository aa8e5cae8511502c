//! What the steps of a graph exchange: tensors, responses that follow each other, or an error.

use std::collections::HashMap;
use std::sync::Arc;

use alipes_protocol::codec::json::encode_response;
use alipes_protocol::{InferError, InferResponse, Tensor};
use alipes_spec::Port;
use compact_str::{CompactString, format_compact};
use parking_lot::Mutex;

use crate::model_responses::ModelResponses;

/// What steps are sent and answer.
#[derive(Clone)]
pub(super) enum Body {
    /// Tensors; those of the request are inputs, all others outputs.
    Tensors { tensors: Arc<[Tensor]>, are_inputs: bool },
    /// The responses of a decoupled model, which are the graph's own: the caller takes them out.
    Stream(Arc<Mutex<Option<Box<ModelResponses>>>>),
    /// What a step answered in their place.
    Failed(Box<InferError>),
}

impl Body {
    /// The responses of a decoupled model.
    pub(super) fn of_responses(responses: ModelResponses) -> Body {
        Body::Stream(Arc::new(Mutex::new(Some(Box::new(responses)))))
    }
}

/// How many steps of an ensemble have an output of each name.
pub(super) fn output_counts<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts
}

/// The name of a step's output among all outputs of an ensemble: `step.output` where several steps have it.
pub(super) fn merged_name(key: &str, output: &str, counts: &HashMap<&str, usize>) -> CompactString {
    if counts.get(output) > Some(&1) { format_compact!("{key}.{output}") } else { output.into() }
}

/// The tensors that a model takes: those of its inputs' names; of one tensor and one input the names need not be equal.
pub(super) fn fitted(tensors: &[Tensor], inputs: &[Port]) -> Vec<Tensor> {
    if let ([tensor], [input]) = (tensors, inputs) {
        return vec![Tensor { name: input.name.as_str().into(), ..tensor.clone() }];
    }
    let is_named = |tensor: &&Tensor| inputs.iter().any(|input| *input.name == *tensor.name);
    let named: Vec<Tensor> = tensors.iter().filter(is_named).cloned().collect();
    // Where a model takes none of them, it says so itself.
    if named.is_empty() { tensors.to_vec() } else { named }
}

/// All tensors of an ensemble's parts.
pub(super) fn merged(parts: &[(&str, Body)]) -> Body {
    let tensors = |body: &Body| match body {
        Body::Tensors { tensors, .. } => Arc::clone(tensors),
        Body::Stream(_) | Body::Failed(_) => Arc::default(),
    };
    let parts_tensors: Vec<(&str, Arc<[Tensor]>)> = parts.iter().map(|(key, body)| (*key, tensors(body))).collect();
    let counts = output_counts(parts_tensors.iter().flat_map(|(_, all)| all.iter()).map(|tensor| &*tensor.name));
    let mut all = Vec::new();
    for (key, tensors) in &parts_tensors {
        all.extend(tensors.iter().map(|tensor| {
            let name = merged_name(key, &tensor.name, &counts);
            Tensor { name, ..tensor.clone() }
        }));
    }
    let failure = parts.iter().find(|(_, body)| matches!(body, Body::Failed(_)));
    match failure {
        Some((_, failed)) if all.is_empty() => failed.clone(),
        _ => Body::Tensors { tensors: all.into(), are_inputs: false },
    }
}

/// Tensors as the V2 protocol writes them, for conditions.
pub(super) fn json_of(body: &Body) -> Option<Vec<u8>> {
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
        let merge = merged(&[("a", body(&["y", "z"])), ("b", body(&["y", "w"])), ("c", error())]);
        assert_eq!(names(&merge), ["a.y", "z", "b.y", "w"]);
        assert!(matches!(merged(&[("c", error())]), Body::Failed(_)));
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
