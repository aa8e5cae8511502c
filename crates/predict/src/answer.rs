//! Answers of `:predict`: `predictions` row by row, or `outputs` column by column.
//!
//! A number that is not finite is null, as KServe writes it: strict readers refuse all of an answer with a bare `NaN`.
//! Bytes that are no UTF-8, and every element of an output whose name ends with `_bytes`, are objects with base64, as
//! TensorFlow Serving writes them.

use alipes_protocol::codec::elements;
use alipes_protocol::codec::json::writing::{element_bytes, real, string, write_row};
use alipes_protocol::shape::{element_count, text as shape_text};
use alipes_protocol::{Datatype, InferError, InferResponse, Origin, Tensor};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::body::PredictForm;
use super::half;

/// The end of the names of outputs whose elements are bytes. Source: TensorFlow Serving.
const BYTES_ENDING: &str = "_bytes";

/// The answer to a body, from the responses to its requests. `rows` are the instances that are stacked in each of them;
/// none where an output is all of an answer.
///
/// # Errors
///
/// At [`Origin::Model`]: outputs whose bytes do not fit their shape, and `InvalidArgument` for those that have not one
/// row for each instance.
pub fn encode_predictions(
    form: PredictForm,
    responses: &[InferResponse],
    rows: Option<&[usize]>,
) -> Result<Vec<u8>, InferError> {
    let mut out = Vec::with_capacity(64 + prediction_bytes(responses));
    let written = match form {
        PredictForm::Rows => predictions(&mut out, responses, rows),
        PredictForm::Columns => outputs(&mut out, responses, rows.is_some()),
    };
    written.map_err(|error| error.at(Origin::Model))?;
    Ok(out)
}

/// Bytes that the elements of responses will take as text, roughly.
pub fn prediction_bytes(responses: &[InferResponse]) -> usize {
    responses.iter().flat_map(|response| &response.outputs).map(element_bytes).sum()
}

fn predictions(out: &mut Vec<u8>, responses: &[InferResponse], rows: Option<&[usize]>) -> Result<(), InferError> {
    out.extend_from_slice(b"{\"predictions\":[");
    let mut is_first = true;
    for (index, response) in responses.iter().enumerate() {
        let count = rows.map(|rows| rows.get(index).copied().unwrap_or(0));
        let mut outputs =
            response.outputs.iter().map(|output| Rows::of(output, count)).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..count.unwrap_or(1) {
            separate(out, &mut is_first);
            write_named(out, &mut outputs)?;
        }
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

/// One value, or an object of values by the names of their outputs.
fn write_named(out: &mut Vec<u8>, outputs: &mut [Rows<'_>]) -> Result<(), InferError> {
    if let [only] = outputs {
        return only.write_next(out);
    }
    out.push(b'{');
    let mut is_first = true;
    for rows in outputs {
        separate(out, &mut is_first);
        string(out, rows.output.name.as_bytes());
        out.push(b':');
        rows.write_next(out)?;
    }
    out.push(b'}');
    Ok(())
}

fn outputs(out: &mut Vec<u8>, responses: &[InferResponse], is_stacked: bool) -> Result<(), InferError> {
    let names = responses.first().map(|response| &response.outputs[..]).unwrap_or_default();
    out.extend_from_slice(b"{\"outputs\":");
    if let [only] = names {
        write_column(out, responses, only, is_stacked)?;
    } else {
        out.push(b'{');
        let mut is_first = true;
        for output in names {
            separate(out, &mut is_first);
            string(out, output.name.as_bytes());
            out.push(b':');
            write_column(out, responses, output, is_stacked)?;
        }
        out.push(b'}');
    }
    out.push(b'}');
    Ok(())
}

/// An output, joined from the responses along its first dimension where there may be several.
fn write_column(
    out: &mut Vec<u8>,
    responses: &[InferResponse],
    first: &Tensor,
    is_stacked: bool,
) -> Result<(), InferError> {
    if !is_stacked {
        return Rows::of(first, None)?.write_next(out);
    }
    out.push(b'[');
    let mut is_first = true;
    for response in responses {
        let found = response.outputs.iter().find(|output| output.name == first.name);
        let output = found.ok_or_else(|| InferError::internal(format!("an answer has no output '{}'", first.name)))?;
        let count = output.shape.first().and_then(|&size| usize::try_from(size).ok()).unwrap_or(0);
        let mut rows = Rows::of(output, Some(count))?;
        for _ in 0..count {
            separate(out, &mut is_first);
            rows.write_next(out)?;
        }
    }
    out.push(b']');
    Ok(())
}

fn separate(out: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        out.push(b',');
    }
}

/// The rows of an output, of which the next is written.
struct Rows<'a> {
    output: &'a Tensor,
    /// The sizes of a row.
    sizes: &'a [i64],
    /// Elements of a row.
    count: usize,
    /// The rows that are left.
    data: &'a [u8],
}

impl<'a> Rows<'a> {
    /// The rows of an output that has so many; all of it is one row where there is no number.
    fn of(output: &'a Tensor, rows: Option<usize>) -> Result<Rows<'a>, InferError> {
        let sizes = match (rows, output.shape.split_first()) {
            (None, _) => &output.shape[..],
            (Some(rows), Some((&size, sizes))) if usize::try_from(size) == Ok(rows) => sizes,
            (Some(rows), _) => {
                return Err(InferError::invalid(format!(
                    "output '{}' has shape {}, which is not one row for each of {rows} instances: ask with 'inputs'",
                    output.name,
                    shape_text(&output.shape)
                )));
            }
        };
        let count = element_count(sizes).ok_or_else(|| mismatch(output))?;
        if let Some(size) = output.datatype.size()
            && count.checked_mul(rows.unwrap_or(1)).and_then(|count| count.checked_mul(size)) != Some(output.data.len())
        {
            return Err(mismatch(output));
        }
        Ok(Rows { output, sizes, count, data: &output.data })
    }

    fn write_next(&mut self, out: &mut Vec<u8>) -> Result<(), InferError> {
        let Some(size) = self.output.datatype.size() else { return self.write_texts(out) };
        let (row, rest) = self.data.split_at_checked(self.count * size).ok_or_else(|| mismatch(self.output))?;
        self.data = rest;
        let datatype = self.output.datatype;
        if matches!(datatype, Datatype::Fp16 | Datatype::Bf16) {
            let mut numbers = row.as_chunks().0.iter().map(|&bytes| u16::from_le_bytes(bytes));
            return nested(out, self.sizes, &mut |out| {
                let bits = numbers.next().ok_or_else(|| mismatch(self.output))?;
                real(out, half::widen(datatype, bits));
                Ok(())
            });
        }
        write_row(out, datatype, self.sizes, row).ok_or_else(|| mismatch(self.output))
    }

    fn write_texts(&mut self, out: &mut Vec<u8>) -> Result<(), InferError> {
        let output = self.output;
        let are_bytes = output.name.ends_with(BYTES_ENDING);
        let mut texts = elements::iter(self.data);
        let mut consumed = 0;
        nested(out, self.sizes, &mut |out| {
            let text = texts.next().ok_or_else(|| mismatch(output))?;
            consumed += elements::PREFIX_BYTES + text.len();
            if are_bytes || str::from_utf8(text).is_err() {
                out.extend_from_slice(b"{\"b64\":");
                string(out, STANDARD.encode(text).as_bytes());
                out.push(b'}');
            } else {
                string(out, text);
            }
            Ok(())
        })?;
        self.data = self.data.get(consumed..).unwrap_or_default();
        Ok(())
    }
}

/// Lists within lists around values that `write` gives one after the other.
fn nested(
    out: &mut Vec<u8>,
    sizes: &[i64],
    write: &mut impl FnMut(&mut Vec<u8>) -> Result<(), InferError>,
) -> Result<(), InferError> {
    let Some((&size, inner)) = sizes.split_first() else { return write(out) };
    out.push(b'[');
    let mut is_first = true;
    for _ in 0..size {
        separate(out, &mut is_first);
        nested(out, inner, write)?;
    }
    out.push(b']');
    Ok(())
}

fn mismatch(output: &Tensor) -> InferError {
    InferError::internal(format!("output tensor shape does not match size of output for '{}'", output.name))
}

#[cfg(test)]
mod tests {
    use alipes_protocol::{Code, Shape};
    use bytes::Bytes;

    use super::*;

    fn output(name: &str, datatype: Datatype, shape: &[i64], data: &'static [u8]) -> Tensor {
        Tensor { name: name.into(), datatype, shape: Shape::from_slice(shape), data: Bytes::from_static(data) }
    }

    fn response(outputs: Vec<Tensor>) -> InferResponse {
        InferResponse { id: "".into(), model_name: "m".into(), model_version: 1, parameters: Vec::new(), outputs }
    }

    fn text(form: PredictForm, responses: &[InferResponse], rows: Option<&[usize]>) -> String {
        String::from_utf8(encode_predictions(form, responses, rows).unwrap()).unwrap()
    }

    #[test]
    fn rows_of_several_answers_stand_one_after_the_other() {
        let responses = [
            response(vec![output("y", Datatype::Uint8, &[2, 2], &[1, 2, 3, 4])]),
            response(vec![output("y", Datatype::Uint8, &[1, 2], &[5, 6])]),
        ];
        let rows = Some(&[2, 1][..]);
        assert_eq!(text(PredictForm::Rows, &responses, rows), r#"{"predictions":[[1,2],[3,4],[5,6]]}"#);
        assert_eq!(text(PredictForm::Columns, &responses, rows), r#"{"outputs":[[1,2],[3,4],[5,6]]}"#);
    }

    #[test]
    fn several_outputs_have_their_names() {
        let responses = [response(vec![
            output("n", Datatype::Bool, &[2], &[1, 0]),
            output("t", Datatype::Bytes, &[2, 1], b"\x01\0\0\0a\x01\0\0\0\xff"),
            output("t_bytes", Datatype::Bytes, &[2], b"\x01\0\0\0a\0\0\0\0"),
        ])];
        let rows = Some(&[2][..]);
        assert_eq!(
            text(PredictForm::Rows, &responses, rows),
            r#"{"predictions":[{"n":true,"t":["a"],"t_bytes":{"b64":"YQ=="}},{"n":false,"t":[{"b64":"/w=="}],"t_bytes":{"b64":""}}]}"#
        );
        assert_eq!(
            text(PredictForm::Columns, &responses, rows),
            r#"{"outputs":{"n":[true,false],"t":[["a"],[{"b64":"/w=="}]],"t_bytes":[{"b64":"YQ=="},{"b64":""}]}}"#
        );
    }

    #[test]
    fn what_is_not_finite_is_null() {
        let halves = output("h", Datatype::Fp16, &[4], &[0, 0x3c, 0, 0x7e, 0, 0x7c, 0, 0xfc]);
        assert_eq!(text(PredictForm::Columns, &[response(vec![halves])], None), r#"{"outputs":[1.0,null,null,null]}"#);
        let doubles = output("d", Datatype::Fp32, &[1], &[0, 0, 0xc0, 0x7f]);
        assert_eq!(text(PredictForm::Rows, &[response(vec![doubles])], Some(&[1])), r#"{"predictions":[null]}"#);
    }

    #[test]
    fn an_output_that_is_all_of_an_answer_is_one_prediction() {
        let whole = || response(vec![output("y", Datatype::Int8, &[2], &[1, 255])]);
        assert_eq!(text(PredictForm::Rows, &[whole(), whole()], None), r#"{"predictions":[[1,-1],[1,-1]]}"#);
        let scalar = response(vec![output("y", Datatype::Int8, &[], &[7])]);
        assert_eq!(text(PredictForm::Columns, &[scalar], None), r#"{"outputs":7}"#);
    }

    #[test]
    fn outputs_without_a_row_for_each_instance_are_refused() {
        for (shape, data) in [(&[3][..], &[1, 2, 3][..]), (&[], &[1])] {
            let responses = [response(vec![output("y", Datatype::Uint8, shape, data)])];
            let error = encode_predictions(PredictForm::Rows, &responses, Some(&[2])).unwrap_err();
            assert_eq!((error.code, error.origin), (Code::InvalidArgument, Origin::Model));
            assert!(error.message.contains("one row for each of 2 instances"), "{}", error.message);
        }
    }

    #[test]
    fn outputs_whose_bytes_do_not_fit_are_refused() {
        for damaged in [output("y", Datatype::Uint8, &[2], &[1]), output("y", Datatype::Bytes, &[2], b"\x01\0\0\0a")] {
            let error = encode_predictions(PredictForm::Rows, &[response(vec![damaged])], Some(&[2])).unwrap_err();
            assert_eq!(error.code, Code::Internal);
        }
    }
}
