//! One request or response of the payload log: a copy, which holds no memory of requests or workers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use alipes_protocol::codec::json::payload::{self, REDACTED, encode_payload};
use alipes_protocol::codec::proto::{Reply, read_request};
use alipes_protocol::{InferError, Parameter, Tensor, call};
use bytes::Bytes;
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

const JSON: &str = "application/json";
const OK: u16 = 200;

/// In the place of a body that names what is not logged, and cannot be read.
const NO_JSON: &[u8] = b"\"[redacted]\"";

/// Which side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What a client asked.
    Request,
    /// What it was answered.
    Response,
}

/// The exchange that a payload belongs to.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// The id of the exchange: its request and its response have this id, and no other payload does.
    pub(super) exchange: String,
    pub(super) model: Arc<str>,
    pub(super) version: i64,
    /// The caller's id; empty where it gave none.
    pub(super) request_id: String,
    pub(super) headers: Arc<[(String, String)]>,
    /// The path of a call that has one beside the model's own; empty for all other requests.
    pub(super) path: String,
    /// Bodies are messages of gRPC.
    pub(super) is_message: bool,
}

/// A request or a response.
#[derive(Clone, Debug)]
pub struct Payload {
    pub(super) side: Side,
    pub(super) subject: Arc<Subject>,
    pub(super) unix_ns: u64,
    pub(super) content: Content,
}

/// What it says.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// Tensors, and parameters of the model's own.
    Tensors(Vec<Tensor>, Vec<(String, Parameter)>),
    /// The body of a call, with its media type, and the status of HTTP.
    Body(Bytes, String, u16),
    /// Why there is no answer, and the status of HTTP.
    Failure(String, u16),
}

impl Content {
    /// A copy of tensors. Of a call it is the body.
    pub(super) fn of(tensors: &[Tensor], parameters: &[(String, Parameter)]) -> Content {
        if let [tensor] = tensors
            && tensor.name == call::BODY
            && let Some(body) = call::body(tensor)
        {
            let kind = parameters.iter().find_map(|(name, value)| match value {
                Parameter::String(text) if name == call::CONTENT_TYPE && !text.is_empty() => Some(text.clone()),
                _ => None,
            });
            let status = parameters.iter().find_map(|(name, value)| match value {
                Parameter::Int64(status) if name == call::STATUS => u16::try_from(*status).ok(),
                _ => None,
            });
            let kind = kind.unwrap_or_else(|| JSON.into());
            return Content::Body(Bytes::copy_from_slice(&body), kind, status.unwrap_or(OK));
        }
        let copy = |tensor: &Tensor| Tensor { data: Bytes::copy_from_slice(&tensor.data), ..tensor.clone() };
        Content::Tensors(tensors.iter().map(copy).collect(), parameters.to_vec())
    }

    /// A copy of a JSON document.
    pub(super) fn document(body: &[u8]) -> Content {
        Content::Body(Bytes::copy_from_slice(body), JSON.into(), OK)
    }

    pub(super) fn failure(error: &InferError) -> Content {
        Content::Failure(error.message.clone(), error.code.row().http_status)
    }
}

/// What the control plane reads of a payload, beside its body.
#[derive(Serialize)]
struct Head<'a> {
    side: Side,
    exchange: &'a str,
    model: &'a str,
    version: i64,
    request_id: &'a str,
    unix_ns: u64,
    status: u16,
    content_type: &'a str,
    path: &'a str,
    headers: Headers<'a>,
}

struct Headers<'a>(&'a [(String, String)], &'a BTreeSet<String>);

impl Serialize for Headers<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            object.serialize_entry(name, if self.1.contains(name) { REDACTED } else { value })?;
        }
        object.end()
    }
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a str,
}

/// A body without the values of members that are not logged, at any depth of its JSON.
fn without_redacted(body: &Bytes, redacted: &BTreeSet<String>) -> Bytes {
    // Other bodies stay as they are, to the digit and the order of their members.
    let text = String::from_utf8_lossy(body);
    if !redacted.iter().any(|name| text.contains(name.as_str())) {
        return body.clone();
    }
    let Ok(mut document) = serde_json::from_slice::<Value>(body) else { return Bytes::from_static(NO_JSON) };
    redact(&mut document, redacted);
    serde_json::to_vec(&document).unwrap_or_default().into()
}

fn redact(value: &mut Value, redacted: &BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                if redacted.contains(name) { *value = REDACTED.into() } else { redact(value, redacted) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redacted)),
        _ => {}
    }
}

impl Payload {
    pub(super) fn new(side: Side, subject: &Arc<Subject>, content: Content) -> Payload {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Payload { side, subject: Arc::clone(subject), unix_ns, content }
    }

    /// What it is about, as a JSON document, and its body.
    pub fn encode(&self, redacted: &BTreeSet<String>) -> (String, Bytes) {
        let subject = &*self.subject;
        let (body, content_type, status) = match &self.content {
            Content::Body(body, _, status) if subject.is_message => {
                (self.message(body, *status, redacted), JSON, *status)
            }
            Content::Body(body, kind, status) => (without_redacted(body, redacted), kind.as_str(), *status),
            Content::Failure(error, status) => (failure(error), JSON, *status),
            Content::Tensors(tensors, parameters) => (self.document(tensors, parameters, redacted), JSON, OK),
        };
        let head = Head {
            side: self.side,
            exchange: &subject.exchange,
            model: &subject.model,
            version: subject.version,
            request_id: &subject.request_id,
            unix_ns: self.unix_ns,
            status,
            content_type,
            path: &subject.path,
            headers: Headers(&subject.headers, redacted),
        };
        // Texts and numbers can be written.
        (serde_json::to_string(&head).unwrap_or_default(), body)
    }

    /// Tensors as JSON of the V2 protocol.
    fn document(&self, tensors: &[Tensor], parameters: &[(String, Parameter)], redacted: &BTreeSet<String>) -> Bytes {
        let side = if self.side == Side::Request { "inputs" } else { "outputs" };
        let subject = &*self.subject;
        let (id, model, version) = (subject.request_id.as_str(), &*subject.model, subject.version);
        encode_payload(payload::Payload { id, model, version, side, parameters, tensors }, redacted).into()
    }

    /// A message of gRPC as the JSON of what it says; the body of another status is the text of an error.
    ///
    /// Here, and not where it is copied: this is the thread that sends it.
    fn message(&self, body: &Bytes, status: u16, redacted: &BTreeSet<String>) -> Bytes {
        if self.side == Side::Response && status != OK {
            return failure(&String::from_utf8_lossy(body));
        }
        let read = match self.side {
            Side::Request => read_request(body.clone()).map(|request| (request.inputs, request.parameters)),
            Side::Response => Reply::decode(body.clone()).map(|reply| (reply.outputs, reply.parameters)),
        };
        match read {
            Ok((tensors, parameters)) => self.document(&tensors, &parameters, redacted),
            Err(error) => failure(&error.message),
        }
    }
}

fn failure(error: &str) -> Bytes {
    serde_json::to_vec(&Failure { error }).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(body: &'static str) -> Bytes {
        let redacted = ["secret", "a\"b"].map(str::to_owned).into();
        without_redacted(&Bytes::from_static(body.as_bytes()), &redacted)
    }

    #[test]
    fn members_that_are_redacted_have_no_value() {
        let body = r#"{"instances": [{"secret": [1, 2], "x": 1}, {"x": {"secret": "s"}}]}"#;
        let expected = r#"{"instances":[{"secret":"[redacted]","x":1},{"x":{"secret":"[redacted]"}}]}"#;
        assert_eq!(logged(body), expected);
        assert_eq!(logged(r#"secret=sesame"#), r#""[redacted]""#);
    }

    #[test]
    fn any_other_body_stays_as_it_is() {
        let body = r#"{"z": 1, "a": 123456789012345678901234567890, "y": 1.10}"#;
        assert_eq!(logged(body), body);
    }
}
