//! Where in the answers to a request a message of a stream stands, without a look at its tensors.

use bytes::Bytes;
use prost::Message;

use super::inference::infer_parameter::ParameterChoice;
use super::inference::{InferParameter, ModelStreamInferResponse};
use super::write::FINAL_RESPONSE;
use crate::{Code, InferError};

/// What a `ModelStreamInferResponse` says beside its tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamMark {
    /// Why there is no response; empty where there is one.
    pub error: String,
    /// Whether it is the request's last response; `None` where the server does not say.
    pub last: Option<bool>,
    /// Whether it has no outputs.
    pub is_empty: bool,
}

impl StreamMark {
    /// Reads a message.
    ///
    /// # Errors
    /// What is no such message.
    pub fn read(message: Bytes) -> Result<StreamMark, InferError> {
        let unreadable = |error| InferError::new(Code::Internal, format!("the response cannot be read: {error}"));
        let message = ModelStreamInferResponse::decode(message).map_err(unreadable)?;
        let response = message.infer_response.unwrap_or_default();
        let last = response.parameters.get(FINAL_RESPONSE).map(is_true);
        Ok(StreamMark { error: message.error_message, last, is_empty: response.outputs.is_empty() })
    }
}

fn is_true(parameter: &InferParameter) -> bool {
    parameter.parameter_choice == Some(ParameterChoice::BoolParam(true))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::super::write::{ResponseMessage, StreamMessage};
    use super::*;
    use crate::{Datatype, Shape, Tensor};

    fn written(message: &StreamMessage<'_>) -> Bytes {
        let mut wire = BytesMut::new();
        message.write(&mut wire, |_| panic!("nothing is large"));
        wire.freeze()
    }

    #[test]
    fn a_message_says_whether_more_follow_and_what_failed() {
        let (name, datatype, shape) = ("Y".into(), Datatype::Int8, Shape::from_vec(vec![1]));
        let output = [Tensor { name, datatype, shape, data: Bytes::from_static(&[7]) }];
        for (error, last, outputs) in
            [("", None, &output[..]), ("", Some(false), &output[..]), ("", Some(true), &[]), ("broken", None, &[])]
        {
            let response = ResponseMessage { final_response: last, outputs, ..Default::default() };
            let mark = StreamMark::read(written(&StreamMessage { error, response })).unwrap();
            assert_eq!(mark, StreamMark { error: error.to_owned(), last, is_empty: outputs.is_empty() });
        }
        assert!(StreamMark::read(Bytes::from_static(&[0xff])).is_err());
    }
}
