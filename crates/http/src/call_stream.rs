//! The responses to a call of an endpoint that streams.

use std::sync::Arc;

use alipes_protocol::limits::WRITTEN_AT_ONCE_BYTES;
use alipes_request::budget::Budget;
use alipes_service::generate::Generation;
use alipes_service::offload::offload_if;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::call_answer::CallAnswer;
use super::call_body;
use super::call_form::{CallForm, LINES};
use super::compression::Coding;
use super::events::{Events, Form, not_written};
use super::response::{self, ResponseBody};

/// Answers once the first response is there: status and headers are its own, and an error is a plain response.
pub async fn answer(
    mut generation: Generation,
    wanted: Option<CallForm>,
    coding: Coding,
    budget: &Arc<Budget>,
) -> Response<ResponseBody> {
    let first = match generation.next().await {
        None => {
            let form = wanted.unwrap_or(CallForm::Events);
            return response::new(StatusCode::OK, content_type(form), ResponseBody::default());
        }
        Some(first) => first.and_then(CallAnswer::of),
    };
    match first {
        Err(error) => response::call_error(&error),
        Ok(first) if first.status.as_u16() >= 400 => first.respond(coding, budget).await,
        Ok(CallAnswer { status, mut headers, body, .. }) => {
            let form = wanted.unwrap_or_else(|| CallForm::of_model(&headers));
            headers.insert(CONTENT_TYPE, content_type(form));
            // Who keeps events back until there are many has not understood them.
            headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache"));
            let framed = offload_if(body.len() > WRITTEN_AT_ONCE_BYTES, move || form.frame(&body)).await;
            let first = framed.or_else(|| form.error(&not_written()).ok()).unwrap_or_default();
            let events = Events::new(generation, Form::Call(form));
            let mut response = Response::new(ResponseBody::of_events(first, events));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response
        }
    }
}

/// Answers a call of one of the protocols: with one response or, where the model says that more follow, with one body
/// of all of them. Status and headers are those of the first, and an error instead of it is a plain response.
pub async fn answer_in_pieces(
    mut generation: Generation,
    coding: Coding,
    budget: &Arc<Budget>,
) -> Response<ResponseBody> {
    let none = || Err(call_body::wrong("there is none".to_owned()));
    match generation.next().await.unwrap_or_else(none).and_then(CallAnswer::of) {
        Err(error) => response::call_error(&error),
        Ok(answer) if !answer.more => {
            // Its end, which comes with it; without it the request would count as withdrawn.
            generation.next().await;
            answer.respond(coding, budget).await
        }
        Ok(CallAnswer { status, headers, body, .. }) => {
            let events = Events::new(generation, Form::Call(CallForm::Pieces));
            let mut response = Response::new(ResponseBody::of_events(body, events));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response
        }
    }
}

fn content_type(form: CallForm) -> HeaderValue {
    match form {
        CallForm::Events => response::EVENTS,
        CallForm::Lines => HeaderValue::from_static(LINES),
        CallForm::Pieces => response::OCTETS,
    }
}
