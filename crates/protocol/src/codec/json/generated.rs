//! Responses of `generate`: one flat object, its keys in the order of their bytes, as Triton writes them.

use super::response::{Encoder, element_bytes};
use super::write;
use crate::shape::element_count;
use crate::{InferError, InferResponse, Origin, Parameter, Tensor};

/// The response as an object: `id` where there is one, `model_name`, `model_version`, parameters and outputs.
///
/// An output of one element is that value, any other a flat list. Of members with the same name the first is given, in
/// the order above.
///
/// # Errors
///
/// At [`Origin::Model`]: FP16 and BF16, and outputs whose bytes do not fit their shape.
pub fn encode_generated(response: &InferResponse) -> Result<Vec<u8>, InferError> {
    let mut members = members(response);
    members.sort_by_key(|(key, _)| *key);
    members.dedup_by_key(|(key, _)| *key);
    let mut encoder = Encoder::default();
    encoder.text(b"{");
    for (index, (key, member)) in members.into_iter().enumerate() {
        encoder.separate(index);
        write_member(&mut encoder, key, member).map_err(|error| error.at(Origin::Model))?;
    }
    encoder.text(b"}");
    Ok(encoder.head)
}

/// Bytes that the elements of the response will take as text, roughly.
pub fn generated_text_bytes(response: &InferResponse) -> usize {
    response.outputs.iter().map(element_bytes).sum()
}

enum Member<'a> {
    Text(&'a str),
    Version(i64),
    Parameter(&'a Parameter),
    Output(&'a Tensor),
}

fn members(response: &InferResponse) -> Vec<(&str, Member<'_>)> {
    let id = (!response.id.is_empty()).then_some(("id", Member::Text(&response.id)));
    let model = [
        ("model_name", Member::Text(&response.model_name)),
        ("model_version", Member::Version(response.model_version)),
    ];
    let parameters = response.parameters.iter().map(|(key, value)| (key.as_str(), Member::Parameter(value)));
    let outputs = response.outputs.iter().map(|output| (output.name.as_str(), Member::Output(output)));
    id.into_iter().chain(model).chain(parameters).chain(outputs).collect()
}

fn write_member(encoder: &mut Encoder, key: &str, member: Member<'_>) -> Result<(), InferError> {
    if let Member::Parameter(value) = member {
        encoder.parameter(key, value);
        return Ok(());
    }
    write::string(&mut encoder.head, key.as_bytes());
    encoder.text(b":");
    match member {
        Member::Text(text) => write::string(&mut encoder.head, text.as_bytes()),
        Member::Version(version) => write::string(&mut encoder.head, version.to_string().as_bytes()),
        Member::Output(output) if element_count(&output.shape) == Some(1) => encoder.data(output)?,
        Member::Output(output) => {
            encoder.text(b"[");
            encoder.data(output)?;
            encoder.text(b"]");
        }
        Member::Parameter(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Datatype;

    fn output(name: &str, datatype: Datatype, shape: &[i64], data: &'static [u8]) -> Tensor {
        Tensor { name: name.into(), datatype, shape: shape.iter().copied().collect(), data: Bytes::from_static(data) }
    }

    fn response(id: &str, parameters: &[(&str, Parameter)], outputs: Vec<Tensor>) -> InferResponse {
        let parameters = parameters.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        InferResponse { id: id.into(), model_name: "m".into(), model_version: 3, parameters, outputs }
    }

    fn text(response: &InferResponse) -> String {
        String::from_utf8(encode_generated(response).unwrap()).unwrap()
    }

    #[test]
    fn members_stand_in_the_order_of_their_names() {
        let words = output("WORD", Datatype::Bytes, &[1], b"\x02\0\0\0hi");
        let response = response("x", &[("step", Parameter::Int64(1)), ("a", Parameter::Bool(true))], vec![words]);
        let expected = r#"{"WORD":"hi","a":true,"id":"x","model_name":"m","model_version":"3","step":1}"#;
        assert_eq!(text(&response), expected);
    }

    #[test]
    fn one_element_is_a_value_and_any_other_number_a_flat_list() {
        let outputs = vec![
            output("a", Datatype::Uint8, &[1, 1], &[7]),
            output("b", Datatype::Uint8, &[2, 2], &[1, 2, 3, 4]),
            output("c", Datatype::Uint8, &[0], &[]),
        ];
        assert_eq!(
            text(&response("", &[], outputs)),
            r#"{"a":7,"b":[1,2,3,4],"c":[],"model_name":"m","model_version":"3"}"#
        );
    }

    #[test]
    fn the_first_of_two_equal_members_counts() {
        let shadow = output("model_name", Datatype::Uint8, &[1], &[1]);
        let response = response("", &[("model_version", Parameter::Int64(9))], vec![shadow]);
        assert_eq!(text(&response), r#"{"model_name":"m","model_version":"3"}"#);
    }

    #[test]
    fn outputs_that_json_does_not_carry_are_refused() {
        let half = response("", &[], vec![output("h", Datatype::Fp16, &[1], &[0, 0])]);
        let refused = encode_generated(&half).unwrap_err();
        assert_eq!(refused.origin, Origin::Model);
        assert!(refused.message.starts_with("sending FP16 data via JSON is not supported."));
    }
}
