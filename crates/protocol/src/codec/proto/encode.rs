//! From a response to a `ModelInferResponse`.

use super::inference::ModelInferResponse;
use super::inference::model_infer_response::InferOutputTensor;
use super::parameters;
use crate::{InferResponse, Tensor};

/// The message that carries the response. Outputs always leave as raw contents, and these are the tensors' own bytes.
pub fn encode_response(response: InferResponse) -> ModelInferResponse {
    let count = response.outputs.len();
    let mut outputs = Vec::with_capacity(count);
    let mut raw_output_contents = Vec::with_capacity(count);
    for Tensor { name, datatype, shape, data } in response.outputs {
        outputs.push(InferOutputTensor {
            name: name.into_string(),
            datatype: datatype.name().to_owned(),
            shape: shape.into_vec(),
            ..InferOutputTensor::default()
        });
        raw_output_contents.push(data);
    }
    ModelInferResponse {
        model_name: response.model_name.as_ref().to_owned(),
        model_version: response.model_version.to_string(),
        id: response.id.into_string(),
        parameters: parameters::encode(response.parameters),
        outputs,
        raw_output_contents,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Datatype, Parameter, Shape};
    use bytes::Bytes;

    #[test]
    fn outputs_are_not_copied() {
        let data = Bytes::from(vec![1, 2, 3, 4]);
        let output = Tensor {
            name: "Y".into(),
            datatype: Datatype::Uint8,
            shape: Shape::from_slice(&[1, 4]),
            data: data.clone(),
        };
        let message = encode_response(InferResponse {
            id: "7".into(),
            model_name: "m".into(),
            model_version: 3,
            parameters: vec![("k".to_owned(), Parameter::Bool(true))],
            outputs: vec![output],
        });
        assert_eq!(message.raw_output_contents[0].as_ptr(), data.as_ptr());
        assert_eq!((message.model_version.as_str(), message.id.as_str()), ("3", "7"));
        assert!(message.outputs[0].contents.is_none());
    }
}
