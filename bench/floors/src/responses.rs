//! The floor's side of a stream: each request gets a number of responses, whose tensor is their index.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use crate::inference::{ModelInferRequest, ModelInferResponse, ModelStreamInferResponse};

/// Responses to the requests of one stream, one request after the other.
pub struct Responses {
    requests: Streaming<ModelInferRequest>,
    template: ModelInferResponse,
    /// Responses to each request.
    each: u32,
    /// The index of the next one; `each` where a request must come first.
    next: u32,
}

impl Responses {
    /// Answers `requests` with `each` copies of `template`, but for id and tensor.
    #[must_use]
    pub fn new(requests: Streaming<ModelInferRequest>, template: ModelInferResponse, each: u32) -> Self {
        Self { requests, template, each, next: each }
    }

    fn response(&mut self) -> ModelStreamInferResponse {
        let mut response = self.template.clone();
        response.raw_output_contents = vec![Bytes::copy_from_slice(&index_bytes(self.next))];
        self.next += 1;
        ModelStreamInferResponse { error_message: String::new(), infer_response: Some(response) }
    }
}

/// A tensor of one element that holds an index.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "far fewer responses than a float counts exactly")]
pub fn index_bytes(index: u32) -> [u8; 4] {
    (index as f32).to_le_bytes()
}

impl Stream for Responses {
    type Item = Result<ModelStreamInferResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.next >= self.each {
            match Pin::new(&mut self.requests).poll_next(context) {
                Poll::Ready(Some(Ok(request))) => {
                    self.template.id = request.id;
                    self.next = 0;
                }
                Poll::Ready(Some(Err(status))) => return Poll::Ready(Some(Err(status))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Some(Ok(self.response())))
    }
}
