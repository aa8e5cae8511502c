//! Responses as server-sent events, each as soon as the model gives it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use alipes_protocol::codec::json;
use alipes_protocol::limits::WRITTEN_AT_ONCE_BYTES;
use alipes_protocol::{InferError, InferResponse};
use alipes_service::generate::Generation;
use alipes_service::offload::{offload, offload_if};
use bytes::Bytes;
use hyper::{Response, StatusCode};

use super::broken_off::BrokenOff;
use super::call_form::CallForm;
use super::response::{self, ResponseBody};

/// How responses are written.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// As `generate_stream` answers.
    Generated,
    /// As an endpoint answers.
    Call(CallForm),
}

impl Form {
    /// The event that ends others with an error.
    ///
    /// # Errors
    ///
    /// The form has none.
    pub fn error(self, error: &InferError) -> Result<Bytes, BrokenOff> {
        match self {
            Form::Generated => Ok(event(Err(error.clone())).1),
            Form::Call(form) => form.error(error),
        }
    }

    fn write(self, response: Result<InferResponse, InferError>) -> Written {
        match self {
            Form::Generated => Ok(event(encode_now(response)).1),
            Form::Call(form) => form.write(response),
        }
    }

    fn is_long(self, response: &InferResponse) -> bool {
        match self {
            Form::Generated => is_long(response),
            Form::Call(CallForm::Pieces) => false,
            Form::Call(_) => {
                response.outputs.iter().map(|output| output.data.len()).sum::<usize>() > WRITTEN_AT_ONCE_BYTES
            }
        }
    }

    /// Writes a response on another thread.
    async fn write_beside(self, response: Result<InferResponse, InferError>) -> Written {
        let written = offload(move || self.write(response)).await;
        written.unwrap_or_else(|| self.error(&not_written()))
    }
}

/// The events of a request. Dropping them, which a connection that breaks does, withdraws the request.
pub struct Events {
    generation: Generation,
    form: Form,
    /// The event that is being written on another thread; those behind it wait.
    writing: Option<Writing>,
}

type Encoded = Result<Vec<u8>, InferError>;

type Written = Result<Bytes, BrokenOff>;

type Writing = Pin<Box<dyn Future<Output = Written> + Send>>;

impl Events {
    /// The events of a request that has begun.
    pub fn new(generation: Generation, form: Form) -> Events {
        Events { generation, form, writing: None }
    }

    /// How they are written.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The next event; none after the last.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Written>> {
        if self.writing.is_none() {
            match ready!(self.generation.poll_next(context)) {
                None => return Poll::Ready(None),
                Some(Ok(response)) if self.form.is_long(&response) => {
                    self.writing = Some(Box::pin(self.form.write_beside(Ok(response))));
                }
                Some(response) => return Poll::Ready(Some(self.form.write(response))),
            }
        }
        let Some(writing) = &mut self.writing else { return Poll::Ready(None) };
        let text = ready!(writing.as_mut().poll(context));
        self.writing = None;
        Poll::Ready(Some(text))
    }
}

/// Answers with events, once it is known what the first one is: the status follows from it.
pub async fn answer(mut generation: Generation) -> Response<ResponseBody> {
    let Some(first) = generation.next().await else {
        return response::new(StatusCode::OK, response::EVENTS, ResponseBody::default());
    };
    let (status, first) = write(first, event).await;
    response::new(status, response::EVENTS, ResponseBody::of_events(first, Events::new(generation, Form::Generated)))
}

/// A response as text, or why there is none: written on this thread, or beside it where that takes long.
pub async fn encode(response: Result<InferResponse, InferError>) -> Encoded {
    write(response, |encoded| encoded).await
}

/// What `frame` makes of a response as text. A copy of a long text takes long, too.
async fn write<T: Send + 'static>(response: Result<InferResponse, InferError>, frame: fn(Encoded) -> T) -> T {
    let is_long = response.as_ref().is_ok_and(is_long);
    let written = offload_if(is_long, move || frame(encode_now(response))).await;
    written.unwrap_or_else(|| frame(Err(not_written())))
}

/// Why there is no text of a response.
pub fn not_written() -> InferError {
    InferError::internal("the response could not be written")
}

fn encode_now(response: Result<InferResponse, InferError>) -> Encoded {
    response.and_then(|response| json::encode_generated(&response))
}

fn is_long(response: &InferResponse) -> bool {
    json::generated_text_bytes(response) > WRITTEN_AT_ONCE_BYTES
}

/// Status of an answer that begins with this response: 400 for every error, as Triton answers.
pub fn status<T>(response: &Result<T, InferError>) -> StatusCode {
    if response.is_ok() { StatusCode::OK } else { StatusCode::BAD_REQUEST }
}

fn event(response: Encoded) -> (StatusCode, Bytes) {
    let status = status(&response);
    let text = match response {
        Ok(text) => Bytes::from(text),
        Err(error) => response::error_body(&error.message),
    };
    // JSON holds no line break, so one line is the whole event.
    (status, [b"data: ", &text[..], b"\n\n"].concat().into())
}
