//! CloudEvents over HTTP: what the head of a request says of one, and the head of the answer.

use alipes_predict::{CloudEvent, CloudEventAnswer, CloudEventMode};
use alipes_protocol::InferError;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::response::ResponseBody;

/// What stands in front of the name of an attribute.
const PREFIX: &str = "ce-";
/// Attributes that only an event has: one of them makes a request an event of binary mode. KServe's logger takes
/// `ce-id` of any request.
const MARKS: [&str; 2] = ["ce-specversion", "ce-type"];

const STRUCTURED: HeaderValue = HeaderValue::from_static("application/cloudevents+json");

/// Bytes that do not stand for themselves in the header of an attribute. Source: CloudEvents, HTTP protocol binding
/// 1.0.2, section 3.1.3.2.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'%');

/// The event that a request is, as far as its head tells; none where it is none.
///
/// # Errors
///
/// `InvalidArgument` where headers are those of an event, and not all of them.
pub fn of_head<'a>(headers: &'a HeaderMap, repeats: bool) -> Result<Option<CloudEvent>, InferError> {
    if MARKS.iter().any(|name| headers.contains_key(*name)) {
        let attribute = |(name, value): (&'a HeaderName, &'a HeaderValue)| {
            Some((name.as_str().strip_prefix(PREFIX)?, value.as_bytes()))
        };
        let attributes: Vec<_> = headers.iter().filter_map(attribute).collect();
        return CloudEvent::of_headers(&attributes, repeats).map(Some);
    }
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    Ok(media_type.eq_ignore_ascii_case("application/cloudevents+json").then(|| CloudEvent::structured(repeats)))
}

/// Makes a response the head of an event; the attributes of structured mode stand in its body.
pub fn mark(response: &mut Response<ResponseBody>, event: &CloudEventAnswer) {
    let headers = response.headers_mut();
    if event.mode == CloudEventMode::Structured {
        headers.insert(CONTENT_TYPE, STRUCTURED);
        return;
    }
    for (name, value) in &event.attributes {
        let name = HeaderName::try_from(format!("{PREFIX}{name}"));
        let value = HeaderValue::try_from(percent_encode(value, ENCODED).to_string());
        headers.extend(name.ok().zip(value.ok()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> Result<Option<CloudEventMode>, String> {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        of_head(&headers, false).map(|event| event.map(|event| event.mode)).map_err(|error| error.message)
    }

    #[test]
    fn a_head_says_how_a_request_is_an_event() {
        let all = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "s"), ("ce-type", "t")];
        assert_eq!(of(&all), Ok(Some(CloudEventMode::Binary)));
        for kind in ["application/cloudevents+json", "Application/CloudEvents+JSON ; charset=utf-8"] {
            assert_eq!(of(&[("content-type", kind)]), Ok(Some(CloudEventMode::Structured)), "{kind}");
        }
        for none in [("ce-id", "1"), ("content-type", "application/json"), ("content-type", "application/cloudevents")]
        {
            assert_eq!(of(&[none]), Ok(None), "{none:?}");
        }
        assert!(of(&all[..3]).unwrap_err().ends_with("Missing required keys: {'type'}"));
        assert!(of(&all[1..]).unwrap_err().ends_with("Failed to find specversion in HTTP request"));
    }

    #[test]
    fn attributes_are_headers_of_printable_characters() {
        let mut response = Response::new(ResponseBody::default());
        let attributes = vec![("source".to_owned(), "m \"ö\"%\n".as_bytes().to_vec())];
        mark(&mut response, &CloudEventAnswer { mode: CloudEventMode::Binary, attributes });
        assert_eq!(response.headers()["ce-source"], "m%20%22%C3%B6%22%25%0A");
    }
}
