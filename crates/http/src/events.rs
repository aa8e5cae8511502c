//! Responses as server-sent events, each as soon as the model gives it.

use std::task::{Context, Poll};

use alipes_protocol::codec::json;
use alipes_protocol::{InferError, InferResponse};
use alipes_service::generate::Generation;
use bytes::Bytes;
use hyper::{Response, StatusCode};

use super::response::{self, ResponseBody};

/// The events of a request. Dropping them, which a connection that breaks does, withdraws the request.
pub struct Events(Generation);

impl Events {
    /// The next event; none after the last.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_next(context).map(|response| response.map(|response| event(encode(response)).1))
    }
}

/// Answers with events, once it is known what the first one is: the status follows from it.
pub async fn answer(mut generation: Generation) -> Response<ResponseBody> {
    let Some(first) = generation.next().await else {
        return response::new(StatusCode::OK, response::EVENTS, ResponseBody::default());
    };
    let (status, first) = event(encode(first));
    response::new(status, response::EVENTS, ResponseBody::of_events(first, Events(generation)))
}

/// A response as text, or why there is none.
pub fn encode(response: Result<InferResponse, InferError>) -> Result<Vec<u8>, InferError> {
    response.and_then(|response| json::encode_generated(&response))
}

/// Status of an answer that begins with this response: 400 for every error, as Triton answers.
pub fn status<T>(response: &Result<T, InferError>) -> StatusCode {
    if response.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST }
}

/// The event that ends others with an error.
pub fn last(error: &InferError) -> Bytes {
    event(Err(error.clone())).1
}

fn event(response: Result<Vec<u8>, InferError>) -> (StatusCode, Bytes) {
    let status = status(&response);
    let text = match response {
        Ok(text) => Bytes::from(text),
        Err(error) => response::error_body(&error.message),
    };
    // JSON holds no line break, so one line is the whole event.
    (status, [b"data: ", &text[..], b"\n\n"].concat().into())
}
