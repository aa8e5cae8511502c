//! Whether a model file is what its configuration says it is. Source: the recorded texts of Triton's load failures.

use std::collections::BTreeSet;

use alipes_protocol::{Datatype, shape};

use super::signature::{Port, Signature};
use crate::EngineError;

/// An input or output as the configuration declares it.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredPort<'a> {
    /// Name of the tensor.
    pub name: &'a str,
    /// Element type.
    pub datatype: Datatype,
    /// Sizes that the model sees: after reshape, without the batch dimension; -1 stands for any.
    pub dims: &'a [i64],
    /// A request may leave it out (inputs only).
    pub optional: bool,
    /// Requests of different shapes are put behind one another in one dimension. An output that is cut up by requests
    /// may have any shape.
    pub ragged: bool,
}

/// A model as its configuration declares it.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'a> {
    /// Name of the model.
    pub model_name: &'a str,
    /// Largest batch in rows; 0 where the model has no batch dimension.
    pub max_batch_size: u32,
    /// Inputs in the configuration's order, which is the order of `InputView::index`.
    pub inputs: &'a [DeclaredPort<'a>],
    /// Outputs in the configuration's order, which is the order of `OutputTensor::index`.
    pub outputs: &'a [DeclaredPort<'a>],
}

/// Checks a configuration against the model file.
///
/// # Errors
///
/// `InvalidArgument` with Triton's text for the first thing that does not fit.
pub fn check_against(signature: &Signature, declared: &Declared<'_>) -> Result<(), EngineError> {
    let (expected, provided) = (declared.inputs.len(), signature.inputs.len());
    if expected != provided {
        return Err(EngineError::invalid(format!(
            "unable to load model '{}', configuration expects {expected} inputs, model provides {provided}",
            declared.model_name
        )));
    }
    for port in declared.inputs {
        Side::INPUT.check(declared, port, &signature.inputs)?;
    }
    for port in declared.outputs {
        Side::OUTPUT.check(declared, port, &signature.outputs)?;
    }
    Ok(())
}

/// What differs between inputs and outputs.
struct Side {
    word: &'static str,
    /// Whether a size that the model leaves open must be open in the configuration, too.
    exact: bool,
}

impl Side {
    const INPUT: Side = Side { word: "input", exact: false };
    const OUTPUT: Side = Side { word: "output", exact: true };

    fn check(&self, declared: &Declared<'_>, port: &DeclaredPort<'_>, provided: &[Port]) -> Result<(), EngineError> {
        if port.optional && declared.max_batch_size > 0 {
            return Err(unable(
                declared,
                format!("optional input '{}' is not supported for models that support batching", port.name),
            ));
        }
        let model = self.find(port.name, provided)?;
        if model.datatype != port.datatype {
            return Err(unable(
                declared,
                format!(
                    "configuration expects datatype {} for {} '{}', model provides TYPE_{}",
                    config_name(port.datatype),
                    self.word,
                    port.name,
                    model.datatype
                ),
            ));
        }
        if port.ragged {
            if self.exact { Ok(()) } else { check_ragged(declared, port, &model.shape) }
        } else if model.shape.is_empty() {
            check_scalar(declared, port)
        } else {
            self.check_dims(declared, port, &model.shape)
        }
    }

    fn find<'s>(&self, name: &str, provided: &'s [Port]) -> Result<&'s Port, EngineError> {
        provided.iter().find(|port| port.name == name).ok_or_else(|| {
            let word = self.word;
            let allowed: BTreeSet<&str> = provided.iter().map(|port| port.name.as_str()).collect();
            let allowed: Vec<&str> = allowed.into_iter().collect();
            EngineError::invalid(format!(
                "unexpected inference {word} '{name}', allowed {word}s are: {}",
                allowed.join(", ")
            ))
        })
    }

    fn check_dims(&self, declared: &Declared<'_>, port: &DeclaredPort<'_>, model: &[i64]) -> Result<(), EngineError> {
        let batches = declared.max_batch_size > 0;
        let tensor = format!("model '{}', tensor '{}'", declared.model_name, port.name);
        if batches && model[0] != -1 {
            return Err(EngineError::invalid(format!(
                "{tensor}: for the model to support batching the shape should have at least 1 dimension and the first \
                 dimension must be -1; but shape expected by the model is {}",
                shape::text(model)
            )));
        }
        let batch: &[i64] = if batches { &[-1] } else { &[] };
        let complete = [batch, port.dims].concat();
        let agrees = |(&model, &size): (&i64, &i64)| model == size || (model == -1 && !self.exact);
        if complete.len() == model.len() && model.iter().zip(&complete).all(agrees) {
            return Ok(());
        }
        let explained = if batches {
            "an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete \
             shape "
        } else {
            "shape "
        };
        Err(EngineError::invalid(format!(
            "{tensor}: the model expects {} dimensions (shape {}) but the model configuration specifies {} dimensions \
             ({explained}{})",
            model.len(),
            shape::text(model),
            complete.len(),
            shape::text(&complete)
        )))
    }
}

/// Ragged requests form one long row, so the model must take any number of elements.
fn check_ragged(declared: &Declared<'_>, port: &DeclaredPort<'_>, model: &[i64]) -> Result<(), EngineError> {
    if model == [-1] {
        return Ok(());
    }
    Err(unable(
        declared,
        format!(
            // The two spaces are Triton's.
            "configuration expects model provides input with shape [-1]  for ragged input '{}', model provides {}",
            port.name,
            shape::text(model)
        ),
    ))
}

/// A tensor without dimensions holds one element, and so must the declared shape.
fn check_scalar(declared: &Declared<'_>, port: &DeclaredPort<'_>) -> Result<(), EngineError> {
    if port.dims.iter().all(|&size| size == 1) {
        return Ok(());
    }
    Err(unable(
        declared,
        format!(
            "scalar tensor '{}', should only provide 1 in the model configuration when the model doesn't support \
             batching. Model configuration provided: {}.",
            port.name,
            shape::text(port.dims)
        ),
    ))
}

fn unable(declared: &Declared<'_>, why: String) -> EngineError {
    EngineError::invalid(format!("unable to load model '{}', {why}", declared.model_name))
}

/// The datatype under its name in configuration files.
fn config_name(datatype: Datatype) -> String {
    match datatype {
        Datatype::Bytes => "TYPE_STRING".to_owned(),
        other => format!("TYPE_{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(ports: &[(&str, Datatype, &[i64])]) -> Vec<Port> {
        let port = |&(name, datatype, shape): &(&str, Datatype, &[i64])| Port {
            name: name.to_owned(),
            datatype,
            shape: shape.into(),
            symbols: vec![String::new(); shape.len()],
        };
        ports.iter().map(port).collect()
    }

    const fn port<'a>(name: &'a str, datatype: Datatype, dims: &'a [i64]) -> DeclaredPort<'a> {
        DeclaredPort { name, datatype, dims, optional: false, ragged: false }
    }

    const X: DeclaredPort<'static> = port("X", Datatype::Fp32, &[2]);

    /// The text that a configuration with these inputs gets from a batching model with FP32 X [-1,2] and Y [-1,-1].
    fn refusal(inputs: &[DeclaredPort<'_>], outputs: &[DeclaredPort<'_>]) -> String {
        let signature = Signature {
            inputs: model(&[("X", Datatype::Fp32, &[-1, 2])]),
            outputs: model(&[("Z", Datatype::Bytes, &[-1]), ("Y", Datatype::Fp32, &[-1, -1])]),
        };
        let declared = Declared { model_name: "m", max_batch_size: 4, inputs, outputs };
        match check_against(&signature, &declared) {
            Ok(()) => String::new(),
            Err(error) => error.message,
        }
    }

    #[test]
    fn a_model_as_declared_is_fine() {
        assert_eq!(refusal(&[X], &[port("Y", Datatype::Fp32, &[-1])]), "");
        assert_eq!(refusal(&[X], &[]), "");
    }

    #[test]
    fn the_number_of_inputs_must_agree() {
        let text = "unable to load model 'm', configuration expects 2 inputs, model provides 1";
        assert_eq!(refusal(&[X, X], &[]), text);
    }

    #[test]
    fn names_must_be_the_models() {
        let unknown = port("Q", Datatype::Fp32, &[2]);
        assert_eq!(refusal(&[unknown], &[]), "unexpected inference input 'Q', allowed inputs are: X");
        assert_eq!(refusal(&[X], &[unknown]), "unexpected inference output 'Q', allowed outputs are: Y, Z");
    }

    #[test]
    fn datatypes_must_be_the_models() {
        assert_eq!(
            refusal(&[port("X", Datatype::Bytes, &[2])], &[]),
            "unable to load model 'm', configuration expects datatype TYPE_STRING for input 'X', model provides TYPE_FP32"
        );
        assert_eq!(
            refusal(&[X], &[port("Z", Datatype::Int32, &[])]),
            "unable to load model 'm', configuration expects datatype TYPE_INT32 for output 'Z', model provides TYPE_BYTES"
        );
    }

    #[test]
    fn sizes_must_be_the_models() {
        assert_eq!(
            refusal(&[port("X", Datatype::Fp32, &[3])], &[]),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,2]) but the model configuration specifies 2 \
             dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, \
             making complete shape [-1,3])"
        );
        // An output may not promise what the model leaves open; an input may.
        assert!(refusal(&[X], &[port("Y", Datatype::Fp32, &[5])]).contains("making complete shape [-1,5]"));
    }

    #[test]
    fn optional_and_ragged_inputs_have_their_own_rules() {
        assert_eq!(
            refusal(&[DeclaredPort { optional: true, ..X }], &[]),
            "unable to load model 'm', optional input 'X' is not supported for models that support batching"
        );
        assert_eq!(
            refusal(&[DeclaredPort { ragged: true, ..X }], &[]),
            "unable to load model 'm', configuration expects model provides input with shape [-1]  for ragged input 'X', \
             model provides [-1,2]"
        );
    }

    fn refusal_of_one(max_batch_size: u32, shape: &[i64], dims: &[i64]) -> String {
        let signature = Signature { inputs: model(&[("X", Datatype::Fp32, shape)]), outputs: Vec::new() };
        let inputs = [port("X", Datatype::Fp32, dims)];
        let declared = Declared { model_name: "m", max_batch_size, inputs: &inputs, outputs: &[] };
        check_against(&signature, &declared).map_or_else(|error| error.message, |()| String::new())
    }

    #[test]
    fn a_batching_model_needs_an_open_first_dimension() {
        assert_eq!(
            refusal_of_one(4, &[3, 2], &[2]),
            "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the \
             first dimension must be -1; but shape expected by the model is [3,2]"
        );
    }

    #[test]
    fn without_batching_the_whole_shape_is_declared() {
        assert_eq!(refusal_of_one(0, &[3, -1], &[3, 7]), "");
        assert_eq!(
            refusal_of_one(0, &[3, 2], &[2]),
            "model 'm', tensor 'X': the model expects 2 dimensions (shape [3,2]) but the model configuration specifies 1 \
             dimensions (shape [2])"
        );
    }

    #[test]
    fn a_scalar_is_declared_as_one_element() {
        assert_eq!(refusal_of_one(0, &[], &[1]), "");
        assert_eq!(
            refusal_of_one(0, &[], &[2]),
            "unable to load model 'm', scalar tensor 'X', should only provide 1 in the model configuration when the model \
             doesn't support batching. Model configuration provided: [2]."
        );
    }
}
