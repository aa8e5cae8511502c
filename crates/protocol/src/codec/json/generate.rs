//! Requests to `generate`: a flat object whose keys are inputs, or else parameters. Source: Triton's generate
//! extension.

use std::cell::Cell;
use std::collections::HashSet;

use compact_str::CompactString;

use super::error::{Within, check_entries};
use super::explain::{self, Explained};
use super::text::Quoted;
use super::value::{Leaves, Value, lossy};
use super::{DecodeContext, DecodeOptions, check_text_size, data, parameters};
use crate::{Datatype, InferError, InferRequest, Shape, Tensor, TritonRelease};

/// What a model declares of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredInput {
    /// Its element type.
    pub datatype: Datatype,
    /// Its sizes, with the batch dimension; -1 stands for any.
    pub shape: Shape,
}

/// The request that a body carries. `declared` finds an input of the model by its name.
///
/// A key that names an input is that tensor: one value, or a flat list of them; beside the recorded release also lists
/// within lists, which are rows. Any other key is a parameter of the request. The members of `parameters` are read like
/// those around them, and `id` is a parameter and the request's id.
///
/// # Errors
///
/// Triton's code and text for the first thing that is wrong.
pub fn decode_generate(
    text: &[u8],
    model_name: &str,
    options: DecodeOptions<'_>,
    declared: impl Fn(&str) -> Option<DeclaredInput>,
) -> Result<InferRequest, InferError> {
    check_text_size(text.len(), options.max_input_bytes)?;
    let document = explain::parse(text, options.release)?;
    let mut members = document.members()?;
    let reserved = Cell::new(0);
    let context = DecodeContext { model: model_name, options, reserved: &reserved };
    let mut reader = GenerateReader {
        declared,
        context,
        request: InferRequest::default(),
        seen: HashSet::new(),
        nested_input: None,
    };
    if let Some(id) = document.find("id") {
        reader.request.id = context.text(id).within("Unable to parse 'id'")?.into();
    }
    let parameters = document.find("parameters");
    while let Some((key, value)) = members.next_as_it_stands() {
        if key.is(b"parameters") { reader.nested(parameters.unwrap_or(value))? } else { reader.member(key, value)? }
    }
    Ok(reader.request)
}

struct GenerateReader<'a, F> {
    declared: F,
    context: DecodeContext<'a>,
    request: InferRequest,
    /// Parameters so far: of a key that is given twice, the first counts.
    seen: HashSet<String>,
    /// The first input inside of the member `parameters`, once that was read.
    nested_input: Option<Option<CompactString>>,
}

impl<F: Fn(&str) -> Option<DeclaredInput>> GenerateReader<'_, F> {
    fn release(&self) -> TritonRelease {
        self.context.options.release
    }

    /// The member `parameters`. Where it stands twice the first one is meant each time, which is read once: its inputs
    /// are there already, its parameters count as before.
    fn nested(&mut self, value: Value<'_>) -> Result<(), InferError> {
        match &self.nested_input {
            Some(Some(input)) => return self.check_new(input).within("Converting keyword: 'parameters'"),
            Some(None) => return Ok(()),
            None => {}
        }
        if (self.declared)("parameters").is_some() {
            return Err(InferError::invalid("Keyword 'parameters' for nested schema also given as input tensor name"));
        }
        if !value.is_object() {
            return Err(InferError::internal(
                "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object",
            ));
        }
        let before = self.request.inputs.len();
        let mut members = value.members()?;
        while let Some((key, value)) = members.next_as_it_stands() {
            self.member(key, value).within("Converting keyword: 'parameters'")?;
        }
        self.nested_input = Some(self.request.inputs.get(before).map(|input| input.name.clone()));
        Ok(())
    }

    fn member(&mut self, key: Quoted<'_>, value: Value<'_>) -> Result<(), InferError> {
        self.context.reserve_text(key.raw.len())?;
        let key = lossy(key.bytes().into_owned());
        if let Some(input) = (self.declared)(&key) {
            self.check_new(&key)?;
            let tensor = self.tensor(&key, &input, value);
            self.request.inputs.push(
                tensor.explained(self.release(), || explain::generated(&key, input.datatype, &input.shape, value))?,
            );
        } else if self.seen.insert(key.clone()) {
            check_entries(self.seen.len() - 1, "parameters")?;
            self.context.reserve_text(value.len())?;
            let value = parameters::model_value(&key, value)
                .explained(self.release(), || explain::not_an_input(&key, self.context.model))?;
            self.request.parameters.push((key, value));
        }
        Ok(())
    }

    /// # Errors
    ///
    /// The input was given before, whatever stands behind its name now.
    fn check_new(&self, input: &str) -> Result<(), InferError> {
        // Of so few inputs as models declare none is there twice.
        if self.request.inputs.iter().all(|tensor| tensor.name != input) {
            return Ok(());
        }
        let id = if self.request.id.is_empty() { "<id_unknown>" } else { &self.request.id };
        Err(InferError::invalid(format!("[request id: {id}] input '{input}' already exists in request")))
    }

    fn tensor(&self, name: &str, input: &DeclaredInput, value: Value<'_>) -> Result<Tensor, InferError> {
        let nested = if self.release().is_later() { nested_shape(value, &input.shape) } else { None };
        let count = match &nested {
            Some(shape) => shape.iter().filter_map(|&size| usize::try_from(size).ok()).product(),
            None if value.is_array() => value.elements()?.count(),
            None => 1,
        };
        let shape = || {
            nested.clone().or_else(|| distribute(&input.shape, count)).ok_or_else(|| {
                InferError::invalid(format!("The schema can not convert input '{name}' to tensor with proper shape"))
            })
        };
        let read = || data::read_leaves(Leaves::of_any(value), input.datatype, count, name, self.context);
        // In Triton's order: strings are measured before the shape is looked at, numbers are read after it.
        let (shape, data) = if input.datatype == Datatype::Bytes {
            let data = read()?;
            (shape()?, data)
        } else {
            (shape()?, read()?)
        };
        Ok(Tensor { name: name.into(), datatype: input.datatype, shape, data: data.into() })
    }
}

/// The shape of lists within lists, where it is the declared one; one row may stand for a batch of it.
fn nested_shape(value: Value<'_>, declared: &[i64]) -> Option<Shape> {
    let mut sizes = Shape::new();
    let mut first = value;
    while first.is_array() {
        if sizes.len() == declared.len() {
            return None;
        }
        sizes.push(i64::try_from(first.elements().ok()?.count()).ok()?);
        let Some(inner) = first.elements().ok()?.next() else { break };
        first = inner;
    }
    if sizes.len() < 2 || !is_regular(value, &sizes) {
        return None;
    }
    if sizes.len() + 1 == declared.len() && declared.first() == Some(&-1) {
        sizes.insert(0, 1);
    }
    let fits = |(&size, &wanted): (&i64, &i64)| wanted < 0 || size == wanted;
    (sizes.len() == declared.len() && sizes.iter().zip(declared).all(fits)).then_some(sizes)
}

/// Whether lists within lists have these sizes everywhere.
fn is_regular(value: Value<'_>, sizes: &[i64]) -> bool {
    let Some((&size, inner)) = sizes.split_first() else { return !value.is_array() };
    let Ok(mut elements) = value.elements() else { return false };
    let mut count = 0;
    elements.all(|element| {
        count += 1;
        is_regular(element, inner)
    }) && count == size
}

/// The shape of so many elements: the innermost size that is open takes what fixed sizes leave, other open ones are 1.
fn distribute(declared: &[i64], count: usize) -> Option<Shape> {
    let mut left = count;
    for size in declared.iter().filter_map(|&size| usize::try_from(size).ok()) {
        if left.checked_rem(size)? != 0 {
            return None;
        }
        left /= size;
    }
    let mut shape = Shape::from_slice(declared);
    for size in shape.iter_mut().rev().filter(|size| **size < 0) {
        *size = i64::try_from(left).ok()?;
        left = 1;
    }
    (left == 1).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Parameter;

    fn declared(name: &str) -> Option<DeclaredInput> {
        let (datatype, shape): (_, &[i64]) = match name {
            "TEXT" => (Datatype::Bytes, &[1]),
            "ROWS" => (Datatype::Int32, &[-1, 4]),
            "HALF" => (Datatype::Fp16, &[1]),
            "OPEN" => (Datatype::Fp32, &[-1, 2, -1]),
            _ => return None,
        };
        Some(DeclaredInput { datatype, shape: Shape::from_slice(shape) })
    }

    fn read(text: &str) -> Result<InferRequest, InferError> {
        let recorded = DecodeOptions { release: TritonRelease::V2_51, ..DecodeOptions::from(1 << 20) };
        decode_generate(text.as_bytes(), "m", recorded, declared)
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().message
    }

    #[test]
    fn keys_are_inputs_or_parameters() {
        let request = read(r#"{"id":"i","TEXT":"a","depth":2,"parameters":{"ROWS":[1,2,3,4],"flag":true}}"#).unwrap();
        assert_eq!(request.id, "i");
        let inputs: Vec<_> = request.inputs.iter().map(|input| (&*input.name, &input.shape[..])).collect();
        assert_eq!(inputs, [("TEXT", &[1][..]), ("ROWS", &[1, 4])]);
        assert_eq!(&request.inputs[0].data[..], b"\x01\0\0\0a");
        let parameters = [
            ("id".to_owned(), Parameter::String("i".to_owned())),
            ("depth".to_owned(), Parameter::Int64(2)),
            ("flag".to_owned(), Parameter::Bool(true)),
        ];
        assert_eq!(request.parameters, parameters);
    }

    #[test]
    fn the_first_of_two_equal_parameters_counts() {
        let request = read(r#"{"a":1,"a":2,"parameters":{"a":3}}"#).unwrap();
        assert_eq!(request.parameters, [("a".to_owned(), Parameter::Int64(1))]);
        let request = read(r#"{"parameters":{"a":1},"parameters":{"a":2,"b":3}}"#).unwrap();
        assert_eq!(request.parameters, [("a".to_owned(), Parameter::Int64(1))]);
    }

    #[test]
    fn the_first_input_that_comes_again_is_refused() {
        let again = |id: &str, input: &str| format!("[request id: {id}] input '{input}' already exists in request");
        assert_eq!(refused(r#"{"TEXT":"a","ROWS":[1,2,3,4],"ROWS":"x","TEXT":5}"#), again("<id_unknown>", "ROWS"));
        assert_eq!(
            refused(r#"{"id":"i","TEXT":"a","parameters":{"TEXT":"b"}}"#),
            format!("Converting keyword: 'parameters': {}", again("i", "TEXT"))
        );
    }

    #[test]
    fn parameters_that_stand_twice_are_read_once() {
        let members: Vec<String> = (0..40).map(|number| format!(r#""k{number}":1"#)).collect();
        let body = |inner: &str| {
            let repeated = r#","parameters":0"#.repeat(60);
            format!(r#"{{"parameters":{{{inner}}}{repeated}}}"#)
        };
        let looked_at = Cell::new(0);
        let counted = |name: &str| {
            looked_at.set(looked_at.get() + 1);
            declared(name)
        };
        let text = body(&members.join(","));
        let request = decode_generate(text.as_bytes(), "m", DecodeOptions::from(1 << 20), counted).unwrap();
        assert_eq!(request.parameters.len(), 40);
        assert!(looked_at.get() <= 41, "{} members were looked at", looked_at.get());
        assert_eq!(
            refused(&body(r#""TEXT":"a""#)),
            "Converting keyword: 'parameters': [request id: <id_unknown>] input 'TEXT' already exists in request"
        );
    }

    #[test]
    fn values_fill_the_fixed_sizes_and_then_the_innermost_open_one() {
        let shape = |declared: &[i64], count| distribute(declared, count).map(|shape| shape.to_vec());
        assert_eq!(shape(&[-1, 4], 8), Some(vec![2, 4]));
        assert_eq!(shape(&[-1, 2, -1], 6), Some(vec![1, 2, 3]));
        assert_eq!(shape(&[1], 1), Some(vec![1]));
        assert_eq!(shape(&[], 1), Some(vec![]));
        assert_eq!(shape(&[-1], 0), Some(vec![0]));
        for (declared, count) in [(&[4][..], 3), (&[4], 8), (&[4], 0), (&[0], 1), (&[], 2)] {
            assert_eq!(shape(declared, count), None, "{declared:?} of {count}");
        }
    }

    #[test]
    fn lists_within_lists_are_rows_beside_the_recorded_release() {
        let shape = |text: &str| {
            let read = decode_generate(text.as_bytes(), "m", DecodeOptions::from(1 << 20), declared);
            read.map(|request| request.inputs[0].shape.to_vec()).ok()
        };
        assert_eq!(shape(r#"{"ROWS":[[1,2,3,4],[5,6,7,8]]}"#), Some(vec![2, 4]));
        assert_eq!(shape(r#"{"OPEN":[[1,2,3],[4,5,6]]}"#), Some(vec![1, 2, 3]));
        assert_eq!(shape(r#"{"OPEN":[[[1],[2]],[[3],[4]]]}"#), Some(vec![2, 2, 1]));
        for wrong in [
            r#"{"ROWS":[[1,2,3],[4,5,6]]}"#,
            r#"{"ROWS":[[1,2,3,4],[5,6,7]]}"#,
            r#"{"ROWS":[[1,2,3],[4,5,6,7,8]]}"#,
            r#"{"ROWS":[[[1],[2],[3],[4]]]}"#,
            r#"{"ROWS":[[1,2,3,4],5]}"#,
            r#"{"ROWS":[[1,2,3,[4]]]}"#,
        ] {
            assert_eq!(shape(wrong), None, "{wrong}");
        }
        assert!(read(r#"{"ROWS":[[1,2,3,4],[5,6,7,8]]}"#).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused_in_tritons_words() {
        assert_eq!(refused("[1]"), "attempt to get members for non-object");
        assert_eq!(refused(r#"{"id":5}"#), "Unable to parse 'id': attempt to access JSON non-string as string");
        assert_eq!(
            refused(r#"{"parameters":[1]}"#),
            "Expected JSON object for keyword: 'parameters': attempt to access JSON non-object as object"
        );
        assert_eq!(
            refused(r#"{"TEXT":5}"#),
            "Unable to parse JSON bytes array: attempt to access JSON non-string as string"
        );
        let schema = "The schema can not convert input 'TEXT' to tensor with proper shape";
        assert_eq!(refused(r#"{"TEXT":["a","b"]}"#), schema);
        assert_eq!(refused(r#"{"TEXT":[]}"#), schema);
        let wrong_type = "Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer";
        assert_eq!(refused(r#"{"ROWS":[1,2,3,"x"]}"#), wrong_type);
        let count = "Unable to parse 'data': Shape does not match true shape of 'data' field";
        assert_eq!(refused(r#"{"ROWS":[[1,2],[3,4],[5],[6]]}"#), count);
        assert!(refused(r#"{"HALF":1}"#).starts_with("receiving FP16 data via JSON is not supported."));
        assert!(refused(r#"{"other":[1]}"#).starts_with("parameter 'other' has invalid type."));
        assert!(refused(r#"{"parameters":{"x":{}}}"#).starts_with("Converting keyword: 'parameters': parameter 'x'"));
    }

    #[test]
    fn later_releases_say_which_input_is_wrong_and_how() {
        let refused = |text: &str| {
            let refused = decode_generate(text.as_bytes(), "m", DecodeOptions::from(1 << 20), declared).unwrap_err();
            refused.message.split_once("; ").unwrap().1.to_owned()
        };
        assert_eq!(refused(r#"{"TEXT":["a","b"]}"#), "input 'TEXT' takes BYTES of shape [1], found 2 values");
        assert_eq!(
            refused(r#"{"ROWS":[1,2,3,"x"]}"#),
            "input 'ROWS': value 3 of its data, counted from 0, is \"x\", expected a whole number"
        );
        assert_eq!(
            refused(r#"{"ROWS":[[1,2],[3,4],[5],[6]]}"#),
            "input 'ROWS' takes INT32 of shape [-1,4], found 6 values"
        );
        assert_eq!(refused(r#"{"other":[1]}"#), "model 'm' has no input 'other'");
        assert_eq!(refused("{"), "line 1, column 2: expected a name in double quotes, found the end of the body");
    }

    #[test]
    fn an_input_named_parameters_reads_as_the_keyword() {
        let any = |_: &str| Some(DeclaredInput { datatype: Datatype::Int32, shape: Shape::from_slice(&[1]) });
        let refused = decode_generate(br#"{"parameters":{}}"#, "m", DecodeOptions::from(1 << 20), any).unwrap_err();
        assert_eq!(refused.message, "Keyword 'parameters' for nested schema also given as input tensor name");
    }

    #[test]
    fn a_text_beyond_the_limit_is_refused() {
        let refused = decode_generate(b"{      }", "m", DecodeOptions::from(7), declared).unwrap_err();
        assert!(
            refused.message.starts_with("request JSON size of 8 bytes exceeds the maximum allowed input size of 7")
        );
    }
}
