//! A body of `:predict` as tensors: instances one by one, or columns.

use std::cell::Cell;

use alipes_protocol::codec::json::DecodeOptions;
use alipes_protocol::codec::json::reading::{DecodeContext, check_text_size, not_an_input, parse, show};
use alipes_protocol::codec::json::value::{Value, lossy};
use alipes_protocol::shape::{element_count, text as shape_text};
use alipes_protocol::{Code, InferError, Shape, Tensor, TritonRelease};

use super::body::{InstanceAxis, PredictForm, PredictInput, PredictModel, PredictRequest};
use super::cloud_event::{CloudEvent, CloudEventMode};
use super::nesting::shape_of;
use super::values::{is_base64, read};

/// The one signature that models have. Source: TensorFlow Serving's default.
const SIGNATURE: &str = "serving_default";

/// The request that a body carries.
///
/// A model of one input is sent its values as they are, any model objects of values by the names of its inputs. A last
/// size of 1 may be left out: a list of numbers serves where each instance has one element.
///
/// # Errors
///
/// `InvalidArgument` where the body is none of the protocol, or does not fit the model; `TooLarge` beyond a limit; and
/// what there is no memory for.
pub fn decode_predict(
    text: &[u8],
    model: &PredictModel,
    options: DecodeOptions<'_>,
) -> Result<PredictRequest, InferError> {
    decode(text, model, options, |reader, text| reader.request(text))
}

/// The request in the data of an event, which learns what its answer repeats.
///
/// # Errors
///
/// As for `decode_predict`, and `InvalidArgument` where an object is no event.
pub fn decode_event(
    text: &[u8],
    model: &PredictModel,
    options: DecodeOptions<'_>,
    event: &mut CloudEvent,
) -> Result<PredictRequest, InferError> {
    decode(text, model, options, |reader, text| reader.event(text, event))
}

fn decode<'a>(
    text: &[u8],
    model: &'a PredictModel,
    options: DecodeOptions<'a>,
    read: impl FnOnce(&Reader<'_>, &[u8]) -> Result<PredictRequest, InferError>,
) -> Result<PredictRequest, InferError> {
    check_text_size(text.len(), options.max_input_bytes)?;
    let reserved = Cell::new(0);
    let reader = Reader { model, context: DecodeContext { model: &model.name, options, reserved: &reserved } };
    read(&reader, text).map_err(|error| InferError {
        // What clients send is never a fault of the server, in this protocol.
        code: if error.code == Code::Internal { Code::InvalidArgument } else { error.code },
        ..error
    })
}

struct Reader<'a> {
    model: &'a PredictModel,
    context: DecodeContext<'a>,
}

impl<'a> Reader<'a> {
    fn request(&self, text: &[u8]) -> Result<PredictRequest, InferError> {
        self.document(parse(text, TritonRelease::default())?)
    }

    fn event(&self, text: &[u8], event: &mut CloudEvent) -> Result<PredictRequest, InferError> {
        let what = match event.mode {
            CloudEventMode::Binary => "Failed to decode or parse binary json cloudevent",
            CloudEventMode::Structured => "Unrecognized request format",
        };
        let document = parse(text, TritonRelease::default())
            .map_err(|error| InferError { message: format!("{what}: {}", error.message), ..error })?;
        match event.mode {
            CloudEventMode::Binary => self.document(document),
            CloudEventMode::Structured => self.document(event.open(document, &self.context)?),
        }
    }

    fn document(&self, document: Value<'_>) -> Result<PredictRequest, InferError> {
        if !document.is_object() {
            return Err(invalid(format!(
                "the body is {}, expected a JSON object with 'instances' or 'inputs'",
                show(document)
            )));
        }
        let [instances, inputs, signature] = document.pick(["instances", "inputs", "signature_name"]);
        self.check_signature(signature)?;
        match (instances, inputs) {
            (Some(instances), None) => self.rows(instances),
            (None, Some(inputs)) => self.columns(inputs),
            (Some(_), Some(_)) => Err(invalid("the body has both 'instances' and 'inputs': send one of them".into())),
            // KServe's server reads an event of an object whatever its content type says, and answers without one.
            (None, None) => match document.pick(["specversion", "data"]) {
                [Some(_), Some(data)] if data.is_object() && data.pick(["specversion"]) == [None] => {
                    self.document(data)
                }
                _ => Err(invalid("the body has neither 'instances' nor 'inputs'".into())),
            },
        }
    }

    fn check_signature(&self, signature: Option<Value<'_>>) -> Result<(), InferError> {
        let Some(signature) = signature.filter(|signature| !signature.is_null()) else { return Ok(()) };
        if matches!(signature.as_bytes().as_deref(), Ok(b"" | b"serving_default")) {
            return Ok(());
        }
        Err(invalid(format!(
            "'signature_name' is {}: model '{}' has one signature, \"{SIGNATURE}\"",
            show(signature),
            self.model.name
        )))
    }

    fn rows(&self, instances: Value<'_>) -> Result<PredictRequest, InferError> {
        let elements = instances
            .elements()
            .map_err(|_| invalid(format!("'instances' is {}, expected a list", show(instances))))?;
        let Some(first) = elements.clone().next() else {
            return Err(invalid("'instances' is an empty list, expected one instance at least".into()));
        };
        let is_named = first.is_object() && !is_base64(first);
        let (inputs, count) = if is_named { self.named_rows(instances)? } else { self.plain_rows(instances)? };
        Ok(PredictRequest { form: PredictForm::Rows, inputs, stacked: Some(count) })
    }

    /// Instances of a model with one input.
    fn plain_rows(&self, instances: Value<'_>) -> Result<(Vec<Tensor>, usize), InferError> {
        let input = self.sole("an instance")?;
        if instances.elements()?.any(|instance| instance.is_object() && !is_base64(instance)) {
            return Err(invalid("some of 'instances' are objects of inputs and some are values".into()));
        }
        let shape = self.fitted(shape_of(instances, &"instances")?, input, Lead::Instances)?;
        let data = read(instances, input, self.elements(&shape, input)?, self.context)?;
        let count = count_of(&shape);
        Ok((vec![tensor(input, shape, data)], count))
    }

    /// Instances as objects of values by the names of their inputs.
    fn named_rows(&self, instances: Value<'_>) -> Result<(Vec<Tensor>, usize), InferError> {
        let mut columns: Vec<Column<'_>> = Vec::new();
        let mut count = 0;
        for (index, instance) in instances.elements()?.enumerate() {
            if !instance.is_object() || is_base64(instance) {
                return Err(invalid(format!(
                    "'instances[{index}]' is {}, expected an object of inputs as 'instances[0]' is",
                    show(instance)
                )));
            }
            self.instance(instance, index, &mut columns)?;
            count = index + 1;
        }
        let tensors = columns.into_iter().map(|column| self.stacked(column, count));
        Ok((tensors.collect::<Result<_, _>>()?, count))
    }

    /// Adds an instance to the columns, which the first one chooses.
    fn instance<'v>(&self, instance: Value<'v>, index: usize, columns: &mut Vec<Column<'a>>) -> Result<(), InferError> {
        let mut members = instance.members()?;
        while let Some((name, value)) = members.next_as_it_stands() {
            let at = columns.iter().position(|column| name.is(column.input.name.as_bytes()));
            let at = match at {
                Some(at) if columns[at].count == index => at,
                Some(at) => {
                    return Err(invalid(format!("'instances[{index}]' has '{}' twice", columns[at].input.name)));
                }
                None => {
                    self.context.reserve_text(name.raw.len())?;
                    let input = self.input(&lossy(name.bytes().into_owned()))?;
                    if index > 0 {
                        return Err(unequal(index, "has", &input.name, "has not"));
                    }
                    columns.push(Column { input, shape: Shape::new(), bytes: Vec::new(), count: 0 });
                    columns.len() - 1
                }
            };
            self.push(&mut columns[at], value, index)?;
        }
        match columns.iter().find(|column| column.count == index) {
            Some(column) => Err(unequal(index, "has no", &column.input.name, "has")),
            None if columns.is_empty() => Err(invalid(format!("'instances[{index}]' names no input"))),
            None => Ok(()),
        }
    }

    /// Adds the value of an instance to the column of its input.
    fn push(&self, column: &mut Column<'_>, value: Value<'_>, index: usize) -> Result<(), InferError> {
        let input = column.input;
        let shape = shape_of(value, &format_args!("instances[{index}].{}", input.name))?;
        let shape = self.fitted(shape, input, Lead::None)?;
        if index == 0 {
            column.shape = shape;
        } else if column.shape != shape {
            return Err(invalid(format!(
                "input '{}' of 'instances[{index}]' has shape {}, that of 'instances[0]' has {}: all of them must have \
                 one shape",
                input.name,
                shape_text(&shape),
                shape_text(&column.shape)
            )));
        }
        let bytes = read(value, input, self.elements(&column.shape, input)?, self.context)?;
        if column.bytes.len() + bytes.len() > self.context.options.max_input_bytes {
            return Err(InferError::new(
                Code::TooLarge,
                format!(
                    "input '{}' has more than the {} bytes that are allowed: --http-max-input-size allows more",
                    input.name, self.context.options.max_input_bytes
                ),
            ));
        }
        // The column may have room for as many bytes again, and moves while it grows.
        self.context.reserve(2 * bytes.len())?;
        column.bytes.extend_from_slice(&bytes);
        column.count += 1;
        Ok(())
    }

    /// The tensor of an input whose instances were read.
    fn stacked(&self, column: Column<'_>, count: usize) -> Result<Tensor, InferError> {
        let mut shape = column.shape;
        shape.insert(0, i64::try_from(count).unwrap_or(i64::MAX));
        self.elements(&shape, column.input)?;
        Ok(tensor(column.input, shape, column.bytes))
    }

    fn columns(&self, inputs: Value<'_>) -> Result<PredictRequest, InferError> {
        let mut tensors: Vec<Tensor> = Vec::new();
        if inputs.is_object() && !is_base64(inputs) {
            let mut members = inputs.members()?;
            while let Some((name, value)) = members.next_as_it_stands() {
                self.context.reserve_text(name.raw.len())?;
                let input = self.input(&lossy(name.bytes().into_owned()))?;
                if tensors.iter().any(|tensor| tensor.name == input.name) {
                    return Err(invalid(format!("'inputs' has '{}' twice", input.name)));
                }
                tensors.push(self.column(value, input)?);
            }
        } else {
            tensors.push(self.column(inputs, self.sole("'inputs'")?)?);
        }
        let stacked = if self.model.axis == InstanceAxis::Batch { Some(same_count(&tensors)?) } else { None };
        Ok(PredictRequest { form: PredictForm::Columns, inputs: tensors, stacked })
    }

    fn column(&self, value: Value<'_>, input: &PredictInput) -> Result<Tensor, InferError> {
        let lead = if self.model.axis == InstanceAxis::Whole { Lead::None } else { Lead::Instances };
        let shape = self.fitted(shape_of(value, &input.name)?, input, lead)?;
        let data = read(value, input, self.elements(&shape, input)?, self.context)?;
        Ok(tensor(input, shape, data))
    }

    /// The input that a value is meant for which names none: the only one, or the only one that a request must have.
    fn sole(&self, what: &str) -> Result<&'a PredictInput, InferError> {
        let inputs = &self.model.inputs;
        let mut required = inputs.iter().filter(|input| !input.optional);
        match (&inputs[..], required.next(), required.next()) {
            ([only], ..) => Ok(only),
            (_, Some(only), None) => Ok(only),
            _ => Err(invalid(format!(
                "{what} is a value, but model '{}' has the inputs {}: send an object of values by their names",
                self.model.name,
                self.names()
            ))),
        }
    }

    fn input(&self, name: &str) -> Result<&'a PredictInput, InferError> {
        self.model
            .inputs
            .iter()
            .find(|input| input.name == name)
            .ok_or_else(|| invalid(format!("{}: it has {}", not_an_input(name, &self.model.name), self.names())))
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.model.inputs.iter().map(|input| format!("'{}'", input.name)).collect();
        names.join(", ")
    }

    /// The shape as the model takes it.
    fn fitted(&self, mut shape: Shape, input: &PredictInput, lead: Lead) -> Result<Shape, InferError> {
        let wanted: Shape = lead.sizes().iter().chain(&input.instance).copied().collect();
        if shape.len() + 1 == wanted.len() && wanted.last() == Some(&1) && input.instance.last() == Some(&1) {
            shape.push(1);
        }
        let fits = shape.len() == wanted.len()
            && shape.iter().zip(&wanted).all(|(&size, &declared)| declared == -1 || size == declared);
        if fits {
            return Ok(shape);
        }
        let whole = match self.model.axis {
            InstanceAxis::Whole if lead == Lead::Instances => {
                "; an instance is all that the model takes at once, for it has no dimension for more"
            }
            _ => "",
        };
        Err(invalid(format!(
            "input '{}' has shape {}, model '{}' takes {}{whole}",
            input.name,
            shape_text(&shape),
            self.model.name,
            shape_text(&wanted)
        )))
    }

    /// The number of elements of a shape.
    fn elements(&self, shape: &[i64], input: &PredictInput) -> Result<usize, InferError> {
        element_count(shape).ok_or_else(|| invalid(format!("input '{}' has too many elements", input.name)))
    }
}

/// The values of one input so far.
struct Column<'a> {
    input: &'a PredictInput,
    /// The shape of each.
    shape: Shape,
    bytes: Vec<u8>,
    count: usize,
}

/// What stands in front of the sizes of an instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    None,
    Instances,
}

impl Lead {
    fn sizes(self) -> &'static [i64] {
        match self {
            Lead::None => &[],
            Lead::Instances => &[-1],
        }
    }
}

/// How many instances columns hold.
fn same_count(tensors: &[Tensor]) -> Result<usize, InferError> {
    let Some((first, others)) = tensors.split_first() else { return Err(invalid("'inputs' names no input".into())) };
    let count = count_of(&first.shape);
    for other in others {
        if count_of(&other.shape) != count {
            return Err(invalid(format!(
                "input '{}' has {} rows where input '{}' has {count}",
                other.name,
                count_of(&other.shape),
                first.name
            )));
        }
    }
    if count == 0 { Err(invalid("'inputs' has no rows, expected one at least".into())) } else { Ok(count) }
}

fn count_of(shape: &[i64]) -> usize {
    shape.first().and_then(|&count| usize::try_from(count).ok()).unwrap_or(0)
}

fn tensor(input: &PredictInput, shape: Shape, data: Vec<u8>) -> Tensor {
    Tensor { name: input.name.clone(), datatype: input.datatype, shape, data: data.into() }
}

fn unequal(index: usize, has: &str, name: &str, first: &str) -> InferError {
    invalid(format!(
        "'instances[{index}]' {has} '{name}', which 'instances[0]' {first}: all of them must have the same keys"
    ))
}

fn invalid(text: String) -> InferError {
    InferError::invalid(text)
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;

    use super::*;

    fn input(name: &str, datatype: Datatype, instance: &[i64]) -> PredictInput {
        PredictInput { name: name.into(), datatype, instance: Shape::from_slice(instance), optional: false }
    }

    fn model(axis: InstanceAxis, inputs: Vec<PredictInput>) -> PredictModel {
        PredictModel { name: "m".to_owned(), inputs, axis }
    }

    fn one(datatype: Datatype, instance: &[i64]) -> PredictModel {
        model(InstanceAxis::Batch, vec![input("x", datatype, instance)])
    }

    fn two() -> PredictModel {
        model(InstanceAxis::Batch, vec![input("a", Datatype::Int32, &[2]), input("b", Datatype::Bytes, &[1])])
    }

    fn decoded(model: &PredictModel, text: &str) -> PredictRequest {
        decode_predict(text.as_bytes(), model, (1 << 20).into()).unwrap()
    }

    fn refused(model: &PredictModel, text: &str) -> String {
        let error = decode_predict(text.as_bytes(), model, (1 << 20).into()).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{text}: {error:?}");
        error.message
    }

    #[test]
    fn instances_of_one_input_are_its_rows() {
        let request = decoded(&one(Datatype::Uint8, &[2]), r#"{"instances": [[1, 2], [3, 4], [5, 6]]}"#);
        assert_eq!((request.form, request.stacked), (PredictForm::Rows, Some(3)));
        assert_eq!(request.inputs[0].shape[..], [3, 2]);
        assert_eq!(request.inputs[0].data, &[1, 2, 3, 4, 5, 6][..]);
    }

    #[test]
    fn a_last_size_of_one_may_be_left_out() {
        for text in [r#"{"instances":[7,8]}"#, r#"{"instances":[[7],[8]]}"#, r#"{"instances":[{"x":7},{"x":[8]}]}"#] {
            let request = decoded(&one(Datatype::Uint8, &[1]), text);
            assert_eq!((&request.inputs[0].shape[..], &request.inputs[0].data[..]), (&[2, 1][..], &[7, 8][..]));
        }
        let scalars = decoded(&one(Datatype::Uint8, &[]), r#"{"inputs":[7,8]}"#);
        assert_eq!(scalars.inputs[0].shape[..], [2]);
    }

    #[test]
    fn instances_of_several_inputs_are_objects() {
        let text = r#"{"instances":[{"a":[1,2],"b":"x"},{"b":{"b64":"/wA="},"a":[3,4]}],"signature_name":""}"#;
        let [a, b] = &decoded(&two(), text).inputs[..] else { panic!("two inputs") };
        assert_eq!((a.name.as_str(), &a.shape[..], a.data.len()), ("a", &[2, 2][..], 16));
        assert_eq!((&b.shape[..], &b.data[..]), (&[2, 1][..], &b"\x01\0\0\0x\x02\0\0\0\xff\0"[..]));
    }

    #[test]
    fn columns_are_the_same_tensors() {
        let rows = decoded(&two(), r#"{"instances":[{"a":[1,2],"b":"x"},{"a":[3,4],"b":"y"}]}"#);
        let columns = decoded(&two(), r#"{"inputs":{"a":[[1,2],[3,4]],"b":["x","y"]}}"#);
        assert_eq!((rows.inputs, columns.form), (columns.inputs, PredictForm::Columns));
        let half = decoded(&one(Datatype::Fp16, &[1]), r#"{"inputs":[1, -2.5, NaN]}"#);
        assert_eq!(half.inputs[0].data, &[0, 0x3c, 0, 0xc1, 0, 0x7e][..]);
    }

    #[test]
    fn an_instance_is_all_of_a_model_without_a_dimension_for_more() {
        let whole = model(InstanceAxis::Whole, vec![input("x", Datatype::Uint8, &[2])]);
        let request = decoded(&whole, r#"{"instances":[[1,2],[3,4]]}"#);
        assert_eq!((&request.inputs[0].shape[..], request.stacked), (&[2, 2][..], Some(2)));
        let request = decoded(&whole, r#"{"inputs":[1,2]}"#);
        assert_eq!((&request.inputs[0].shape[..], request.stacked), (&[2][..], None));
        let text = refused(&whole, r#"{"instances":[1,2]}"#);
        assert!(text.contains("an instance is all that the model takes at once"), "{text}");
    }

    #[test]
    fn an_optional_input_may_be_left_out_by_all_instances() {
        let mut model = two();
        model.inputs[1].optional = true;
        assert_eq!(decoded(&model, r#"{"instances":[[1,2]]}"#).inputs.len(), 1);
        assert!(refused(&two(), r#"{"instances":[[1,2]]}"#).contains("has the inputs 'a', 'b'"));
    }

    #[test]
    fn a_body_that_does_not_fit_is_refused_with_what_is_wrong() {
        let rows = one(Datatype::Int32, &[2]);
        for (text, part) in [
            ("[1]", "expected a JSON object"),
            ("{}", "neither 'instances' nor 'inputs'"),
            (r#"{"instances":[[1,2]],"inputs":[[1,2]]}"#, "both"),
            (r#"{"instances":[]}"#, "an empty list"),
            (r#"{"instances":{}}"#, "expected a list"),
            (r#"{"instances":[[1,2],[3]]}"#, "'instances[1]' has 1 items where others have 2"),
            (r#"{"instances":[[1,2,3]]}"#, "has shape [1,3], model 'm' takes [-1,2]"),
            (r#"{"instances":[[1,"2"]]}"#, "input 'x' takes INT32: value 1"),
            (r#"{"instances":[[1,2.5]]}"#, "2.5"),
            (r#"{"instances":[[1,NaN]]}"#, "NaN"),
            (r#"{"instances":[[1,3000000000]]}"#, "3000000000"),
            (r#"{"instances":[[1,null]]}"#, "null"),
            (r#"{"instances":[[1,{"b64":"AA=="}]]}"#, "b64"),
            (r#"{"instances":[{"y":[1,2]}]}"#, "has no input 'y': it has 'x'"),
            (r#"{"instances":[{"x":[1,2]},[1,2]]}"#, "'instances[1]' is [1,2], expected an object"),
            (r#"{"instances":[[1,2],{"x":[1,2]}]}"#, "some of 'instances' are objects"),
            (r#"{"instances":[{}]}"#, "names no input"),
            (r#"{"instances":[{"x":[1,2],"x":[1,2]}]}"#, "has 'x' twice"),
            (r#"{"instances":[[1,2]],"signature_name":"other"}"#, "has one signature, \"serving_default\""),
            (r#"{"inputs":[]}"#, "has shape [0], model 'm' takes [-1,2]"),
            (r#"{"inputs":{}}"#, "names no input"),
            (r#"{"instances":[[1,2]"#, "Missing a comma"),
            ("", "The document is empty"),
        ] {
            let message = refused(&rows, text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn instances_with_other_keys_or_shapes_are_refused_by_their_number() {
        for (text, part) in [
            (
                r#"{"instances":[{"a":[1,2],"b":"x"},{"a":[1,2]}]}"#,
                "'instances[1]' has no 'b', which 'instances[0]' has:",
            ),
            (
                r#"{"instances":[{"a":[1,2]},{"a":[1,2],"b":"x"}]}"#,
                "'instances[1]' has 'b', which 'instances[0]' has not",
            ),
            (r#"{"inputs":{"a":[[1,2]],"b":["x","y"]}}"#, "input 'b' has 2 rows where input 'a' has 1"),
            (r#"{"instances":[{"a":[1,2],"b":1}]}"#, "input 'b' takes BYTES: a value is 1"),
            (r#"{"instances":[{"a":[1,2],"b":{"b64":"?"}}]}"#, "with base64"),
        ] {
            let message = refused(&two(), text);
            assert!(message.contains(part), "{text}: {message}");
        }
        let open = one(Datatype::Uint8, &[-1]);
        let message = refused(&open, r#"{"instances":[{"x":[1,2]},{"x":[1]}]}"#);
        assert!(message.contains("input 'x' of 'instances[1]' has shape [1]"), "{message}");
    }
}
