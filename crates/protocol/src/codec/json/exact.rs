//! The request of a document, field by field in Triton's order, with Triton's texts.

use compact_str::CompactString;

use super::DecodeContext;
use super::data;
use super::error::{Within, check_entries};
use super::explain::{self, Explained};
use super::parameters::{self, InputParameters, OutputParameters};
use super::value::{Value, existing};
use crate::codec::binary::Tail;
use crate::codec::requested;
use crate::limits::MAX_DIMENSIONS;
use crate::{Datatype, InferError, InferRequest, Regions, RequestedOutput, Shape, Tensor};

/// Reads the request; `tail` is what follows the JSON.
///
/// # Errors
///
/// The first thing that is wrong.
pub(super) fn decode(
    text: &[u8],
    mut tail: Tail,
    context: DecodeContext<'_>,
    regions: &mut impl Regions,
) -> Result<InferRequest, InferError> {
    let release = context.options.release;
    let document = explain::parse(text, release)?;
    let [id, parameters, inputs, outputs] = document.pick(["id", "parameters", "inputs", "outputs"]);
    let mut request = InferRequest::default();
    if let Some(id) = id {
        request.id = context.text(id).within("Unable to parse 'id'")?.into();
    }
    if let Some(parameters) = parameters {
        parameters::read_request(parameters, context, &mut request)?;
    }
    let inputs = existing(inputs, "inputs").and_then(Value::elements).within("Unable to parse 'inputs'");
    for (index, input) in inputs.explained(release, || explain::no_inputs(document))?.enumerate() {
        check_entries(index, "inputs")?;
        let read = read_input(input, &mut tail, context, regions);
        request.inputs.push(read.explained(release, || explain::input(input, index))?);
    }
    tail.finish(context.model)?;
    if let Some(outputs) = outputs {
        request.outputs = read_outputs(outputs, context, regions)?;
        requested::check_names_differ(&request.outputs, &request.id, context.options.release)?;
    }
    Ok(request)
}

fn read_input(
    input: Value<'_>,
    tail: &mut Tail,
    context: DecodeContext<'_>,
    regions: &mut impl Regions,
) -> Result<Tensor, InferError> {
    let [name, datatype, shape, parameters, data] = input.pick(["name", "datatype", "shape", "parameters", "data"]);
    let parameters = InputParameters::of(parameters);
    check_one_source(data, parameters)?;
    let text = |value, name| existing(value, name).and_then(|value| context.text(value));
    let name = CompactString::from(text(name, "name").within("Unable to parse 'name'")?);
    let datatype = text(datatype, "datatype").within("Unable to parse 'datatype'")?;
    let datatype = Datatype::from_name(&datatype);
    let shape = read_shape(shape, &name, context)?;
    if let Some(size) = parameters.binary_data_size {
        let size = size.as_u64().within("Unable to parse 'binary_data_size'")?;
        let data = tail.take(size, &name, context.model)?;
        let datatype = datatype.ok_or_else(|| data::unknown_datatype(&name))?;
        return Ok(Tensor { name, datatype, shape, data });
    }
    if let Some(slice) = parameters.slice(context)? {
        // A datatype that is unknown is refused behind this.
        let data = regions.input(slice, datatype.unwrap_or(Datatype::Bytes), &shape)?;
        let datatype = datatype.ok_or_else(|| data::unknown_datatype(&name))?;
        return Ok(Tensor { name, datatype, shape, data });
    }
    let data = data::read(data, datatype, &shape, &name, context)?;
    let datatype = datatype.ok_or_else(|| data::unknown_datatype(&name))?;
    Ok(Tensor { name, datatype, shape, data: data.into() })
}

/// # Errors
///
/// The tensor's data stands in no place, or in several.
fn check_one_source(data: Option<Value<'_>>, parameters: InputParameters<'_>) -> Result<(), InferError> {
    let sources = [
        (data.is_some(), "data"),
        (parameters.binary_data_size.is_some(), "binary_data_size"),
        (parameters.region.is_some(), "shared_memory_region"),
    ];
    let set: Vec<&str> = sources.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
    let seen = match set.as_slice() {
        [_] => return Ok(()),
        [] => "no field is set".to_owned(),
        _ => format!("set '{}'", set.join("' '")),
    };
    Err(InferError::invalid(format!(
        "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', \
         'shared_memory_region' in 'parameters'. But {seen}"
    )))
}

fn read_shape(shape: Option<Value<'_>>, input: &str, context: DecodeContext<'_>) -> Result<Shape, InferError> {
    const WHAT: &str = "Unable to parse 'shape'";
    let mut sizes = Shape::new();
    for size in existing(shape, "shape").and_then(Value::elements).within(WHAT)? {
        let size = size.as_u64().within(WHAT)?;
        if sizes.len() == MAX_DIMENSIONS {
            return Err(InferError::invalid(format!(
                "input '{input}' for model '{}' has more than {MAX_DIMENSIONS} dimensions",
                context.model
            )));
        }
        sizes.push(i64::try_from(size).map_err(|_| data::too_many_elements(input))?);
    }
    Ok(sizes)
}

/// The outputs that a request asks for.
///
/// # Errors
///
/// The first thing that is wrong, in Triton's order.
pub(super) fn read_outputs(
    outputs: Value<'_>,
    context: DecodeContext<'_>,
    regions: &mut impl Regions,
) -> Result<Vec<RequestedOutput>, InferError> {
    let mut read = Vec::new();
    for (index, output) in outputs.elements().within("Unable to parse 'outputs'")?.enumerate() {
        check_entries(index, "outputs")?;
        let output_read = read_output(output, context, regions);
        read.push(output_read.explained(context.options.release, || explain::output(output, index))?);
    }
    Ok(read)
}

fn read_output(
    output: Value<'_>,
    context: DecodeContext<'_>,
    regions: &mut impl Regions,
) -> Result<RequestedOutput, InferError> {
    let [name, parameters] = output.pick(["name", "parameters"]);
    let parameters = OutputParameters::of(parameters);
    parameters.check_exclusions()?;
    let name = existing(name, "name").and_then(|name| context.text(name)).within("Unable to parse 'name'")?;
    let name = CompactString::from(name);
    let classification = parameters.classes()?;
    let slice = parameters.slice(context)?;
    let in_region = slice.is_some();
    if let Some(slice) = slice {
        regions.output(slice, &name)?;
    }
    let binary = parameters.binary()?;
    Ok(RequestedOutput { name, binary, classification, in_region })
}
