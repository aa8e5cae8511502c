//! The state of a live sequence over HTTP, as bytes.

use alipes_net::connection::RequestBody;
use alipes_protocol::{CorrelationId, InferError, SequenceInfo};
use alipes_request::check::{check_id, has_id};
use alipes_service::Service;
use hyper::{Response, StatusCode};
use percent_encoding::percent_decode_str;

use super::control::read;
use super::response::{self, ResponseBody};

/// The state of a sequence.
pub async fn state(service: &Service, model: &str, version: &str, id: &str) -> Response<ResponseBody> {
    let outcome = async { service.sequence_state(model, version, parse_id(id)?).await };
    match outcome.await {
        Ok(state) => response::new(StatusCode::OK, response::OCTETS, state),
        Err(error) => response::error(&error),
    }
}

/// Has a sequence go on from the state that the body holds.
pub async fn restore(
    service: &Service,
    model: &str,
    version: &str,
    id: &str,
    body: RequestBody,
) -> Response<ResponseBody> {
    let outcome = async {
        let (state, _charge) = read(service, body).await?;
        service.restore_sequence(model, version, parse_id(id)?, state).await
    };
    response::empty_or(outcome.await)
}

/// Ends a sequence.
pub async fn end(service: &Service, model: &str, version: &str, id: &str) -> Response<ResponseBody> {
    let outcome = async { service.end_sequence(model, version, parse_id(id)?).await };
    response::empty_or(outcome.await)
}

/// The sequence that a segment of a path names: a number, or a text, which stands in double quotes where it would be
/// read as a number otherwise.
fn parse_id(segment: &str) -> Result<CorrelationId, InferError> {
    let text = percent_decode_str(segment).decode_utf8();
    let text = text.map_err(|_| InferError::invalid("the sequence in the path is no UTF-8"))?;
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let id = match quoted {
        Some(text) => CorrelationId::Text(text.to_owned()),
        None if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => match text.parse() {
            Ok(number) => CorrelationId::Number(number),
            Err(_) => return Err(InferError::invalid(format!("sequence {text} is no number of 64 bits"))),
        },
        None => CorrelationId::Text(text.into_owned()),
    };
    let sequence = SequenceInfo { correlation_id: id, ..SequenceInfo::default() };
    check_id(&sequence)?;
    if !has_id(&sequence) {
        return Err(InferError::invalid("a sequence has a non-zero or non-empty correlation ID"));
    }
    Ok(sequence.correlation_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(segment: &str) -> String {
        parse_id(segment).unwrap_err().message
    }

    #[test]
    fn a_sequence_is_a_number_or_a_text() {
        assert_eq!(parse_id("18446744073709551615"), Ok(CorrelationId::Number(u64::MAX)));
        assert_eq!(parse_id("left%2Fright%20%C3%A4"), Ok(CorrelationId::Text("left/right ä".to_owned())));
        assert_eq!(parse_id("%2242%22"), Ok(CorrelationId::Text("42".to_owned())));
        assert_eq!(parse_id("\"42\""), Ok(CorrelationId::Text("42".to_owned())));
        assert_eq!(parse_id("7a"), Ok(CorrelationId::Text("7a".to_owned())));
    }

    #[test]
    fn what_no_request_can_be_of_is_refused() {
        assert_eq!(refusal("18446744073709551616"), "sequence 18446744073709551616 is no number of 64 bits");
        assert_eq!(refusal("%FF"), "the sequence in the path is no UTF-8");
        for nothing in ["0", "\"\"", "%22%22"] {
            assert_eq!(refusal(nothing), "a sequence has a non-zero or non-empty correlation ID");
        }
        assert!(refusal(&"x".repeat(129)).starts_with("string correlation ID cannot be longer than 128"));
    }
}
