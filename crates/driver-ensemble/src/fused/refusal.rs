//! The errors of requests whose tensors do not fit a step: those that the step's model gives to a single request.

use alipes_engine::batch::Split;
use alipes_engine::{InputView, OutputTensor};
use alipes_protocol::{InferError, InferRequest, Tensor};
use alipes_request::check::check_request;
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_spec::Port;
use bytes::Bytes;

use super::plan::{Planned, Source};

/// Whether an input is what a model declares.
pub fn fits(port: &Port, batches: bool, view: &InputView<'_>) -> bool {
    let sizes = view.shape.get(usize::from(batches)..).unwrap_or_default();
    view.datatype == port.datatype
        && view.shape.len() == port.dims.len() + usize::from(batches)
        && port.dims.iter().zip(sizes).all(|(&declared, &size)| declared < 0 || declared == size)
}

/// The error of each request of a batch whose inputs do not fit a step.
#[cold]
pub fn refusals<'a>(
    member: &ModelVersion,
    step: &Planned,
    requests: impl Iterator<Item = &'a Pending>,
    made: &[Option<OutputTensor>],
) -> Vec<InferError> {
    let batches = member.spec.max_batch_size > 0;
    requests.scan(0, |row, request| Some(refusal(member, step, request, made, batches, row))).collect()
}

fn refusal(
    member: &ModelVersion,
    step: &Planned,
    request: &Pending,
    made: &[Option<OutputTensor>],
    batches: bool,
    row: &mut usize,
) -> InferError {
    let rows = request.checked.rows as usize;
    let tensor = |&(position, source): &(usize, Source)| {
        let name = member.spec.inputs[position].name.as_str().into();
        match source {
            Source::Request(input) => {
                let input = &request.checked.inputs[input];
                let datatype = member.spec.inputs[position].datatype;
                Tensor { name, datatype, shape: input.shape.clone(), data: input.data.clone() }
            }
            Source::Made(tensor) => {
                let piece = made[tensor].as_ref().and_then(|whole| piece(whole, batches, *row, rows));
                let OutputTensor { datatype, shape, data, .. } = piece.unwrap_or_else(nothing);
                Tensor { name, datatype, shape, data }
            }
        }
    };
    let inputs = step.inputs.iter().map(tensor).collect();
    *row += rows;
    let request = InferRequest { id: request.checked.terms.id.clone(), inputs, ..Default::default() };
    let text = "a tensor did not fit a step, and did when it was looked at again";
    check_request(&member.spec, request, &member.budget).err().unwrap_or_else(|| InferError::internal(text))
}

fn piece(whole: &OutputTensor, batches: bool, row: usize, rows: usize) -> Option<OutputTensor> {
    if !batches {
        return Some(whole.clone());
    }
    let all = usize::try_from(*whole.shape.first()?).ok()?;
    let mut split = Split::new(std::slice::from_ref(whole), Some(all)).ok()?;
    drop(split.take(row));
    split.take(rows).next()
}

fn nothing() -> OutputTensor {
    OutputTensor { index: 0, datatype: alipes_protocol::Datatype::Fp32, shape: Default::default(), data: Bytes::new() }
}
