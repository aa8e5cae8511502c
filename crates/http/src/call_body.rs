//! The body of a response to a call.

use alipes_protocol::{InferError, InferResponse, Origin, call};
use bytes::Bytes;

/// The body of a response.
///
/// # Errors
///
/// `Internal` where the model gave none.
pub fn of_response(response: &InferResponse) -> Result<Bytes, InferError> {
    let output = response.outputs.iter().find(|output| output.name == call::BODY);
    output
        .and_then(call::body)
        .ok_or_else(|| wrong(format!("it has no output '{}' with one element of BYTES, which is the body", call::BODY)))
}

/// The error for a response that cannot be sent, by what is wrong with it.
pub fn wrong(what: String) -> InferError {
    InferError::internal(format!("the model's response to a call cannot be sent: {what}")).at(Origin::Model)
}
