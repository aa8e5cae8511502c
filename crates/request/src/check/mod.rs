//! The check of a request: it either fits its declared inputs and outputs or is refused with Triton's text.
//!
//! The order of the checks is Triton's, since a request may be wrong in several ways and clients match on the first.
//! Inputs are looked at last to first, the order in which Triton's recorded answers name them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use alipes_protocol::call::element;
use alipes_protocol::codec::elements;
use alipes_protocol::request::first_repeated;
use alipes_protocol::shape::{self, Shape};
use alipes_protocol::{Code, Datatype, InferError, InferRequest, Origin, Parameter, SequenceInfo, Tensor};
use alipes_scheduler::SlotId;
use alipes_spec::{EngineSpec, ModelSpec, Port};
use bytes::Bytes;
use compact_str::CompactString;
use smallvec::SmallVec;

use crate::budget::{Budget, Charge};
use crate::visit::{StateTensor, Visit};

mod explain;
mod numbers;
mod sequence;

pub use explain::explain_refusal;
use explain::{UNEXPECTED_INPUT, UNEXPECTED_OUTPUT};
pub use sequence::{check_id, has_id};

/// Name that Triton gives to the only input of a raw request in its error texts.
const RAW_INPUT: &str = "raw_input";

const BATCH_NOTE: &str = "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be \
prepended to each input shape. If you want to specify the full shape including the batch dim in your input dims \
config, try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

/// An input as the backend will see it.
#[derive(Clone, Debug)]
pub struct CheckedInput {
    /// Position among the model's inputs.
    pub index: usize,
    /// Sizes after reshape, with the batch dimension where the model batches.
    pub shape: Shape,
    /// Row-major bytes; their number fits the shape.
    pub data: Bytes,
}

/// What a model needs of a request that fits it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Inputs, by ascending position.
    pub inputs: SmallVec<[CheckedInput; 2]>,
    /// Positions of the outputs to give, ascending.
    pub outputs: SmallVec<[usize; 4]>,
    /// Rows that the request adds to a batch; 1 where the model does not batch.
    pub rows: u32,
    /// Requests with different keys never share a batch.
    pub key: u64,
    /// What the queue needs of it.
    pub terms: Terms,
    /// It is a call: its input stands behind the declared ones, its output as well.
    pub is_call: bool,
    /// What the model sees of the request besides its tensors; only models that look have it.
    pub context: Option<Box<RequestContext>>,
}

/// Who asks, how urgently, and how long the caller would have it wait.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The caller's id; empty where none was given.
    pub id: CompactString,
    /// 1 is highest; 0 means the model's default level.
    pub priority: u64,
    /// Longest wait in the queue in microseconds; 0 means none was given.
    pub timeout_us: u64,
}

impl Terms {
    /// How Triton's texts about a request begin.
    pub fn prefix(&self) -> String {
        prefix(&self.id)
    }
}

/// What a request says about itself to the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestContext {
    /// Parameters that are the model's business, in the caller's order.
    pub parameters: Vec<(String, Parameter)>,
    /// Sequence membership.
    pub sequence: SequenceInfo,
    /// The slot that its sequence has, once it has one.
    pub slot_id: SlotId,
    /// It only fills the row of a sequence that has no request now.
    pub is_filler: bool,
    /// Its sequence is of it alone: the id, which may be the server's, is for the model.
    pub is_alone: bool,
    /// It executes nothing: it came for the states of its sequence.
    pub visit: Option<Visit>,
    /// Controls and states that a warm-up sample brings, by name; all others are the server's.
    pub overrides: Vec<(String, StateTensor)>,
}

/// Checks a request against a model's declaration. Inputs that a bare model is given in another datatype are charged
/// for the memory that they take in its own.
///
/// # Errors
///
/// `InvalidArgument` with Triton's text for the first thing that does not fit; `Overloaded` where an input in the
/// model's datatype does not fit into the budget.
pub fn check_request(
    model: &ModelSpec,
    mut request: InferRequest,
    budget: &Arc<Budget>,
) -> Result<Checked, InferError> {
    if request.call {
        return check_call(model, request);
    }
    check_id(&request.sequence)?;
    let check = RequestCheck { model, id: &request.id };
    let mut tensors = request.inputs;
    if request.raw {
        check.name_raw_input(&mut tensors)?;
    }
    if model.is_bare {
        check.take_as_declared(&mut tensors, budget)?;
    }
    check.check_names_differ(&tensors)?;
    let outputs = check.check_outputs(request.outputs.iter().map(|output| output.name.as_str()))?;
    check.check_input_count(&tensors)?;
    let rows = check.check_rows(&tensors)?;
    let mut inputs: SmallVec<[CheckedInput; 2]> = SmallVec::with_capacity(tensors.len());
    for tensor in tensors.into_iter().rev() {
        inputs.push(check.check_input(tensor, request.raw)?);
    }
    inputs.sort_unstable_by_key(|input| input.index);
    let key = batching_key(model, &inputs);
    let sequences = model.scheduling.sequences();
    let is_alone = match sequences {
        Some(spec) => sequence::check_membership(model, spec, rows, &mut request.sequence)?,
        None => false,
    };
    let context = (model.engine.sees_requests() || sequences.is_some()).then(|| {
        let (parameters, sequence) = (request.parameters, request.sequence);
        Box::new(RequestContext { parameters, sequence, is_alone, ..RequestContext::default() })
    });
    let terms = Terms { id: request.id, priority: request.priority, timeout_us: request.timeout_us };
    Ok(Checked { inputs, outputs, rows, key, terms, is_call: false, context })
}

/// A call as the model will see it: one row, whose body only the model can judge.
///
/// # Errors
///
/// `Unsupported` where the model has no endpoint, or keeps sequences, of which a call can be no part.
fn check_call(model: &ModelSpec, request: InferRequest) -> Result<Checked, InferError> {
    let has_endpoint = model.endpoint.is_some() && matches!(model.engine, EngineSpec::Worker(_));
    if !has_endpoint || model.scheduling.sequences().is_some() {
        let text = format!("model '{}' has no endpoint for plain requests", model.name);
        return Err(InferError::new(Code::Unsupported, text));
    }
    let input = |tensor: Tensor| CheckedInput { index: model.inputs.len(), shape: tensor.shape, data: tensor.data };
    let context = RequestContext { parameters: request.parameters, ..RequestContext::default() };
    Ok(Checked {
        inputs: request.inputs.into_iter().map(input).collect(),
        outputs: SmallVec::from_slice(&[model.outputs.len()]),
        rows: 1,
        key: 0,
        terms: Terms { id: request.id, priority: request.priority, timeout_us: request.timeout_us },
        is_call: true,
        context: Some(Box::new(context)),
    })
}

/// The request's side of the checks: which model was asked, and under which id.
struct RequestCheck<'a> {
    model: &'a ModelSpec,
    id: &'a str,
}

impl RequestCheck<'_> {
    fn refuse(&self, message: String) -> InferError {
        InferError::invalid(prefix(self.id) + &message)
    }

    fn batches(&self) -> bool {
        self.model.max_batch_size > 0
    }

    /// Gives the only tensor of a raw request the name, datatype and shape that the model declares.
    fn name_raw_input(&self, tensors: &mut [Tensor]) -> Result<(), InferError> {
        let ([tensor], [port]) = (&mut tensors[..], &self.model.inputs[..]) else {
            return Err(self.refuse(format!(
                "Raw request must only have 1 input (found {}) to be deduced but got {} inputs in '{}' model configuration",
                tensors.len(),
                self.model.inputs.len(),
                self.model.name
            )));
        };
        let wildcards = port.dims.iter().filter(|&&size| size < 0).count();
        if wildcards > 1 {
            return Err(self.refuse(format!(
                "The shape of the raw input '{}' can not be deduced because there are more than one variable-sized dimension",
                port.name
            )));
        }
        let fixed: i64 = port.dims.iter().filter(|&&size| size >= 0).product();
        if let Some(size) = port.datatype.size() {
            let row_bytes = usize::try_from(fixed).unwrap_or(0).saturating_mul(size);
            let deduced = tensor.data.len().checked_div(row_bytes).unwrap_or(0);
            let deduced = i64::try_from(deduced).unwrap_or(i64::MAX);
            tensor.shape = port.dims.iter().map(|&dim| if dim < 0 { deduced } else { dim }).collect();
        } else if wildcards == 0 && fixed == 1 {
            tensor.shape = port.dims.iter().copied().collect();
            tensor.data = element(&tensor.data);
        } else {
            return Err(self
                .refuse(format!("For BYTE datatype raw input '{}', the model must have input shape [1]", port.name)));
        }
        if self.batches() {
            tensor.shape.insert(0, 1);
        }
        tensor.name = port.name.as_str().into();
        tensor.datatype = port.datatype;
        Ok(())
    }

    /// Takes the only tensor of a request for the model's only input, whatever its name, numbers of any datatype for
    /// those of each input, and a column without the axis of its one element.
    fn take_as_declared(&self, tensors: &mut [Tensor], budget: &Arc<Budget>) -> Result<(), InferError> {
        if let ([tensor], [port]) = (&mut *tensors, &self.model.inputs[..])
            && tensor.name != port.name
        {
            tensor.name = port.name.as_str().into();
        }
        for tensor in tensors {
            if let Some(port) = self.model.inputs.iter().find(|port| port.name == tensor.name) {
                self.take_numbers(tensor, port, budget)?;
                let rank = usize::from(self.batches()) + port.dims.len();
                if port.dims.last() == Some(&1) && tensor.shape.len() + 1 == rank {
                    tensor.shape.push(1);
                }
            }
        }
        Ok(())
    }

    fn take_numbers(&self, tensor: &mut Tensor, port: &Port, budget: &Arc<Budget>) -> Result<(), InferError> {
        if tensor.datatype == port.datatype || !numbers::may_convert(tensor.datatype, port.datatype) {
            return Ok(());
        }
        self.check_bytes(&port.name, tensor.datatype, tensor)?;
        // Up to eight times what was sent, which stays charged until its bytes are dropped.
        let bytes = numbers::converted_bytes(tensor.data.len(), tensor.datatype, port.datatype);
        let charge = Charge::of_conversion(budget, bytes)?;
        let converted = numbers::convert(&tensor.data, tensor.datatype, port.datatype).map_err(|misfit| {
            self.refuse(format!(
                "input '{}' of model '{}' takes {}, and element {} is {}: send values that fit",
                port.name, self.model.name, port.datatype, misfit.position, misfit.value
            ))
        })?;
        tensor.data = charge.over(converted);
        tensor.datatype = port.datatype;
        Ok(())
    }

    fn check_names_differ(&self, tensors: &[Tensor]) -> Result<(), InferError> {
        match first_repeated(tensors.iter().map(|tensor| tensor.name.as_str())) {
            Some(name) => Err(self.refuse(format!("input '{name}' already exists in request"))),
            None => Ok(()),
        }
    }

    fn check_outputs<'r>(
        &self,
        names: impl ExactSizeIterator<Item = &'r str>,
    ) -> Result<SmallVec<[usize; 4]>, InferError> {
        if names.len() == 0 {
            return Ok((0..self.model.outputs.len()).collect());
        }
        let mut wanted = SmallVec::new();
        for name in names {
            match self.model.outputs.iter().position(|port| port.name == name) {
                Some(index) if wanted.contains(&index) => {}
                Some(index) => wanted.push(index),
                None => {
                    return Err(InferError::invalid(format!(
                        "{UNEXPECTED_OUTPUT}{name}' for model '{}'",
                        self.model.name
                    )));
                }
            }
        }
        wanted.sort_unstable();
        Ok(wanted)
    }

    fn check_input_count(&self, tensors: &[Tensor]) -> Result<(), InferError> {
        let declared = &self.model.inputs;
        let required = declared.iter().filter(|port| !port.optional).count();
        if (required..=declared.len()).contains(&tensors.len()) {
            return Ok(());
        }
        let expected = if required == declared.len() {
            format!("expected {required} inputs but")
        } else {
            format!("expected number of inputs between {required} and {} but", declared.len())
        };
        let named = list(tensors.iter().rev().map(|tensor| tensor.name.as_str()));
        let absent = |port: &&Port| !port.optional && !tensors.iter().any(|tensor| tensor.name == port.name);
        let missing = list(declared.iter().filter(absent).map(|port| port.name.as_str()));
        Err(self.refuse(format!(
            "{expected} got {} inputs for model '{}'. Got input(s) {named}, but missing required input(s) {missing}. \
             Please provide all required input(s).",
            tensors.len(),
            self.model.name
        )))
    }

    /// Rows of the request: the size of the batch dimension, which all inputs share.
    fn check_rows(&self, tensors: &[Tensor]) -> Result<u32, InferError> {
        if !self.batches() {
            return Ok(1);
        }
        let mut rows = None;
        for tensor in tensors.iter().rev() {
            let Some(&size) = tensor.shape.first() else {
                return Err(self.refuse(format!(
                    "input '{}' has no shape but model requires batch dimension for '{}'",
                    tensor.name, self.model.name
                )));
            };
            if *rows.get_or_insert(size) != size {
                return Err(self.refuse(format!(
                    "input '{}' batch size does not match other inputs for '{}'",
                    tensor.name, self.model.name
                )));
            }
        }
        let rows = rows.unwrap_or(0);
        if rows > i64::from(self.model.max_batch_size) {
            return Err(self.refuse(format!(
                "inference request batch-size must be <= {} for '{}'",
                self.model.max_batch_size, self.model.name
            )));
        }
        // A negative size is refused with the other wildcards when the input itself is checked.
        Ok(u32::try_from(rows).unwrap_or(0))
    }

    fn check_input(&self, tensor: Tensor, raw: bool) -> Result<CheckedInput, InferError> {
        let Some(index) = self.model.inputs.iter().position(|port| port.name == tensor.name) else {
            return Err(InferError::invalid(format!(
                "{UNEXPECTED_INPUT}{}' for model '{}'",
                tensor.name, self.model.name
            )));
        };
        let port = &self.model.inputs[index];
        let shown = if raw { RAW_INPUT } else { port.name.as_str() };
        if tensor.datatype != port.datatype {
            return Err(self.refuse(format!(
                "inference input '{shown}' data-type is '{}', but model '{}' expects '{}'",
                tensor.datatype, self.model.name, port.datatype
            )));
        }
        self.check_shape(shown, port, &tensor.shape)?;
        self.check_bytes(shown, port.datatype, &tensor)?;
        let shape = self.backend_shape(port, tensor.shape);
        Ok(CheckedInput { index, shape, data: tensor.data })
    }

    /// Every size must be given, and must be the declared one where the model declares a size.
    fn check_shape(&self, shown: &str, port: &Port, actual: &[i64]) -> Result<(), InferError> {
        let sizes = &actual[usize::from(self.batches())..];
        let fits = port.dims.len() == sizes.len()
            && port.dims.iter().zip(sizes).all(|(&declared, &size)| declared < 0 || size < 0 || declared == size);
        if !fits {
            let batch: &[i64] = if self.batches() { &[-1] } else { &[] };
            let expected = shape::text(&[batch, &port.dims].concat());
            return Err(self.refuse(format!(
                "unexpected shape for input '{shown}' for model '{}'. Expected {expected}, got {}. {}",
                self.model.name,
                shape::text(actual),
                if self.batches() { BATCH_NOTE } else { "" }
            )));
        }
        if actual.iter().any(|&size| size < 0) {
            return Err(self.refuse(format!(
                "All input dimensions should be specified for input '{shown}' for model '{}', got {}",
                self.model.name,
                shape::text(actual)
            )));
        }
        Ok(())
    }

    fn check_bytes(&self, shown: &str, datatype: Datatype, tensor: &Tensor) -> Result<(), InferError> {
        let name = &self.model.name;
        let Some(elements) = shape::element_count(&tensor.shape) else {
            return Err(self.refuse(format!(
                "input '{shown}' for model '{name}' causes total element count to exceed maximum size of {}",
                i64::MAX
            )));
        };
        let Some(size) = datatype.size() else {
            return self.check_elements(shown, elements, &tensor.data);
        };
        match elements.checked_mul(size) {
            Some(expected) if expected == tensor.data.len() => Ok(()),
            Some(expected) => Err(self.refuse(format!(
                "input byte size mismatch for input '{shown}' for model '{name}'. Expected {expected}, got {}",
                tensor.data.len()
            ))),
            None => Err(self.refuse(format!("byte size overflow for input '{shown}' for model '{name}'"))),
        }
    }

    fn check_elements(&self, shown: &str, expected: usize, data: &[u8]) -> Result<(), InferError> {
        let name = &self.model.name;
        let found = elements::count(data)
            // Triton leaves this one to the backend, and labels the answer accordingly.
            .map_err(|broken| InferError::invalid(broken.text(shown)).at(Origin::Model))?;
        if found < expected {
            Err(self.refuse(format!(
                "expected {expected} string elements for inference input '{shown}' for model '{name}', got {found}"
            )))
        } else if found > expected {
            // Triton stops at the first element too many.
            Err(self.refuse(format!(
                "unexpected number of string elements {} for inference input '{shown}' for model '{name}', expecting {expected}",
                expected + 1
            )))
        } else {
            Ok(())
        }
    }

    /// The shape after the configured reshape: fixed sizes from it, wildcards from the request in their order.
    fn backend_shape(&self, port: &Port, shape: Shape) -> Shape {
        let Some(reshape) = &port.reshape else { return shape };
        let batch = usize::from(self.batches());
        let mut open =
            port.dims.iter().zip(&shape[batch..]).filter(|(declared, _)| **declared < 0).map(|(_, &size)| size);
        let mut reshaped: Shape = shape[..batch].iter().copied().collect();
        reshaped.extend(reshape.iter().map(|&size| if size < 0 { open.next().unwrap_or(size) } else { size }));
        reshaped
    }
}

/// Requests of a batch must agree in every input that has a wildcard, unless it may be ragged, and carry the same
/// optional inputs.
fn batching_key(model: &ModelSpec, inputs: &[CheckedInput]) -> u64 {
    let varies = |port: &Port| !port.allow_ragged_batch && port.dims.iter().any(|&size| size < 0);
    if !model.inputs.iter().any(|port| port.optional || varies(port)) {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        input.index.hash(&mut hasher);
        if varies(&model.inputs[input.index]) {
            input.shape.get(1..).hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn prefix(id: &str) -> String {
    format!("[request id: {}] ", if id.is_empty() { "<id_unknown>" } else { id })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    format!("[{}]", quoted.join(","))
}

#[cfg(test)]
mod tests;
