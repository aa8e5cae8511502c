//! The response to a call as it is sent: status, headers and body are the model's.

use std::sync::Arc;

use alipes_protocol::limits::CALL_COMPRESS_FROM_BYTES;
use alipes_protocol::{InferError, InferResponse, Parameter, call};
use alipes_request::budget::Budget;
use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::{HeaderMap, Response, StatusCode};

use super::call_body::{self, wrong};
use super::call_headers;
use super::compression::Coding;
use super::infer;
use super::response::{self, ResponseBody};

/// What a model answers a call.
#[derive(Debug)]
pub struct CallAnswer {
    /// A status of 200 to 599.
    pub status: StatusCode,
    /// All but those of the connection.
    pub headers: HeaderMap,
    /// The body, as the model gave it.
    pub body: Bytes,
    /// The body is the first piece of a larger one.
    pub more: bool,
}

impl CallAnswer {
    /// Reads a response.
    ///
    /// # Errors
    ///
    /// `Internal` where the model gave no body, or what is no status or no header.
    pub fn of(mut response: InferResponse) -> Result<CallAnswer, InferError> {
        let parameters = std::mem::take(&mut response.parameters);
        let body = call_body::of_response(&response)?;
        let mut answer = CallAnswer { status: StatusCode::OK, headers: HeaderMap::new(), body, more: false };
        let mut content_type = Some(response::JSON);
        for (name, value) in &parameters {
            match (name.as_str(), value) {
                (call::STATUS, Parameter::Int64(200)) => {}
                (call::STATUS, Parameter::Int64(status)) => answer.status = status_of(*status)?,
                (call::CONTENT_TYPE, Parameter::String(text)) if text == "application/json" => {}
                (call::CONTENT_TYPE, Parameter::String(text)) => content_type = content_type_of(text)?,
                (call::HEADERS, Parameter::String(text)) => call_headers::add_to(&mut answer.headers, text)?,
                (call::MORE, Parameter::Bool(more)) => answer.more = *more,
                (call::STATUS | call::CONTENT_TYPE | call::HEADERS | call::MORE, _) => {
                    return Err(wrong(format!("its parameter '{name}' is of another type than it has to be")));
                }
                _ => {}
            }
        }
        answer.headers.extend(content_type.map(|content_type| (CONTENT_TYPE, content_type)));
        Ok(answer)
    }

    /// The response with this body; compressed where the client wants that and the model did not do it.
    pub async fn respond(self, coding: Coding, budget: &Arc<Budget>) -> Response<ResponseBody> {
        let CallAnswer { status, headers, body, .. } = self;
        let is_empty = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) || body.is_empty();
        let is_small = body.len() < CALL_COMPRESS_FROM_BYTES;
        let compressed = if coding == Coding::Identity || is_empty || is_small || headers.contains_key(CONTENT_ENCODING)
        {
            None
        } else {
            infer::compressed_body(std::slice::from_ref(&body), coding, budget).await
        };
        let coding = compressed.as_ref().and_then(|_| coding.header());
        let body = if is_empty { Bytes::new() } else { compressed.unwrap_or(body) };
        let mut response = Response::new(ResponseBody::of([body]));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Some(coding) = coding {
            response.headers_mut().insert(CONTENT_ENCODING, coding);
            response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        response
    }
}

fn status_of(number: i64) -> Result<StatusCode, InferError> {
    let status = u16::try_from(number).ok().filter(|number| (200..=599).contains(number));
    let status = status.and_then(|number| StatusCode::from_u16(number).ok());
    status.ok_or_else(|| wrong(format!("its status is {number}, expected 200 to 599")))
}

/// Empty stands for none.
fn content_type_of(text: &str) -> Result<Option<HeaderValue>, InferError> {
    if text.is_empty() {
        return Ok(None);
    }
    HeaderValue::from_str(text).map(Some).map_err(|_| wrong(format!("its content type {text:?} is none")))
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Tensor;

    use super::*;

    fn response(parameters: Vec<(&str, Parameter)>, outputs: Vec<Tensor>) -> InferResponse {
        InferResponse {
            id: "".into(),
            model_name: "m".into(),
            model_version: 1,
            parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            outputs,
        }
    }

    fn text(value: &str) -> Parameter {
        Parameter::String(value.to_owned())
    }

    fn answer(parameters: Vec<(&str, Parameter)>) -> Result<CallAnswer, String> {
        let outputs = vec![call::input(call::element(b"{}"))];
        CallAnswer::of(response(parameters, outputs)).map_err(|error| error.message)
    }

    #[test]
    fn a_body_alone_is_json_of_status_200() {
        let answer = answer(vec![]).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &b"{}"[..]));
        assert_eq!(answer.headers[CONTENT_TYPE], "application/json");
    }

    #[test]
    fn status_type_and_headers_are_the_models() {
        let answer = answer(vec![
            (call::STATUS, Parameter::Int64(404)),
            (call::CONTENT_TYPE, text("text/plain")),
            (call::HEADERS, text(r#"{"X-A": "b"}"#)),
            ("mine", Parameter::Bool(true)),
        ]);
        let answer = answer.unwrap();
        assert_eq!(answer.status, StatusCode::NOT_FOUND);
        assert_eq!(
            (&answer.headers[CONTENT_TYPE], &answer.headers["x-a"]),
            (&"text/plain".parse().unwrap(), &"b".parse().unwrap())
        );
        assert!(!self::answer(vec![(call::CONTENT_TYPE, text(""))]).unwrap().headers.contains_key(CONTENT_TYPE));
    }

    #[test]
    fn what_cannot_be_sent_is_the_models_fault() {
        for status in [0, 100, 101, 199, 600, -1, i64::MAX] {
            let message = answer(vec![(call::STATUS, Parameter::Int64(status))]).unwrap_err();
            assert!(message.ends_with(&format!("its status is {status}, expected 200 to 599")), "{message}");
        }
        for (name, value) in [
            (call::STATUS, text("200")),
            (call::CONTENT_TYPE, Parameter::Int64(1)),
            (call::CONTENT_TYPE, text("a\r\nb")),
            (call::HEADERS, text("{")),
            (call::MORE, text("true")),
        ] {
            assert!(answer(vec![(name, value)]).is_err(), "{name}");
        }
        let error = CallAnswer::of(response(vec![], vec![])).unwrap_err();
        assert!(error.message.contains("it has no output 'alipes.body'"), "{}", error.message);
    }

    #[tokio::test]
    async fn a_response_without_content_has_none() {
        let budget = Budget::new(u64::MAX);
        let response = answer(vec![(call::STATUS, Parameter::Int64(204))]).unwrap();
        let response = response.respond(Coding::Gzip, &budget).await;
        assert!(
            hyper::body::Body::is_end_stream(response.body()) && !response.headers().contains_key(CONTENT_ENCODING)
        );
    }

    #[tokio::test]
    async fn only_a_body_that_becomes_smaller_is_compressed() {
        let budget = Budget::new(u64::MAX);
        let answer = |body: &[u8]| CallAnswer::of(response(vec![], vec![call::input(call::element(body))])).unwrap();
        let small = answer(b"42 ").respond(Coding::Gzip, &budget).await;
        assert!(!small.headers().contains_key(CONTENT_ENCODING));
        let compressed = answer(&[b' '; CALL_COMPRESS_FROM_BYTES]).respond(Coding::Gzip, &budget).await;
        assert_eq!(
            (&compressed.headers()[CONTENT_ENCODING], &compressed.headers()[VARY]),
            (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
        );
    }
}
