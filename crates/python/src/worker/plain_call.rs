//! A call of the model's endpoint as Python reads it and answers it, without arrays on the way.

use std::borrow::Cow;
use std::fmt;

use alipes_link::{OwnedTensorName, ViewedTensor};
use alipes_protocol::call::{BODY, CONTENT_TYPE, HEADERS, MORE, PREFIX_BYTES, STATUS, prefix};
use alipes_protocol::limits::HTTP_MAX_BODY_BYTES;
use alipes_protocol::{Parameter, call};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use smallvec::{SmallVec, smallvec};

use super::errors::refused;
use super::reply::Reply;
use super::request::InferenceRequest;
use super::response::InferenceResponse;
use super::tensor::Tensor;

/// Media type of a document.
const JSON: &str = "application/json";

/// Body, content type, method, query string, headers as the text of a JSON object.
pub type Call<'py> =
    (Bound<'py, PyBytes>, Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>, Bound<'py, PyString>);

/// Body, path, headers by names in small letters.
pub type WholeCall<'py> = (Bound<'py, PyBytes>, Bound<'py, PyString>, Bound<'py, PyDict>);

/// The parameters of a call; texts without escapes are not copied.
#[derive(Deserialize)]
struct CallParameters<'a> {
    #[serde(borrow, rename = "alipes.content_type")]
    content_type: Cow<'a, str>,
    #[serde(borrow, rename = "alipes.method")]
    method: Cow<'a, str>,
    #[serde(borrow, rename = "alipes.query")]
    query: Cow<'a, str>,
    #[serde(borrow, rename = "alipes.headers")]
    headers: Cow<'a, str>,
}

impl CallParameters<'_> {
    fn of_json() -> Self {
        let none = Cow::Borrowed("");
        CallParameters { content_type: JSON.into(), method: "POST".into(), query: none, headers: "{}".into() }
    }
}

/// What a request brings where it is a call.
///
/// # Errors
///
/// The request was answered before.
pub fn read<'py>(request: &Bound<'py, InferenceRequest>) -> PyResult<Option<Call<'py>>> {
    let (py, request) = (request.py(), request.get());
    let Some((reply, view)) = received_body(request) else { return Ok(None) };
    let parameters = parameters(request)?;
    let body = with_body(reply, view, |body| PyBytes::new(py, body))?;
    let text = |text: &str| PyString::new(py, text);
    let CallParameters { content_type, method, query, headers } = parameters;
    Ok(Some((body, text(&content_type), PyString::intern(py, &method), text(&query), text(&headers))))
}

/// The parameters of a call to a model that takes requests of the protocols as calls.
#[derive(Deserialize)]
struct WholeParameters<'a> {
    #[serde(borrow, rename = "alipes.path")]
    path: Cow<'a, str>,
    #[serde(borrow, rename = "alipes.headers")]
    headers: Cow<'a, str>,
}

/// What a request brings where it is a call of one of the protocols.
///
/// # Errors
///
/// The request was answered before.
pub fn read_whole<'py>(request: &Bound<'py, InferenceRequest>) -> PyResult<Option<WholeCall<'py>>> {
    let (py, request) = (request.py(), request.get());
    let Some((reply, view)) = received_body(request) else { return Ok(None) };
    // Those of a plain call name no path.
    let Ok(parameters) = serde_json::from_str::<WholeParameters<'_>>(&request.parameters) else { return Ok(None) };
    let headers = PyDict::new(py);
    for (name, value) in header_pairs(&parameters.headers)? {
        headers.set_item(&*name, &*value)?;
    }
    let body = with_body(reply, view, |body| PyBytes::new(py, body))?;
    Ok(Some((body, PyString::new(py, &parameters.path), headers)))
}

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The members of an object of headers.
fn header_pairs(text: &str) -> PyResult<SmallVec<[Pair<'_>; 16]>> {
    Ok(serde_json::from_str::<Pairs<'_>>(text).map_err(misread)?.0)
}

/// The members of an object of texts, in their order.
struct Pairs<'a>(SmallVec<[Pair<'a>; 16]>);

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'a> Visitor<'a> for Members {
            type Value = Pairs<'a>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut members: A) -> Result<Pairs<'a>, A::Error> {
                let mut pairs = SmallVec::new();
                while let Some(Member(name)) = members.next_key()? {
                    let Member(value) = members.next_value()?;
                    pairs.push((name, value));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A text, not copied where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Member<'a>(#[serde(borrow)] Cow<'a, str>);

/// What `look` makes of the body of a request that is a call with a JSON document; none where it is none.
///
/// # Errors
///
/// The request was answered before.
pub fn with_json<T>(request: &InferenceRequest, look: impl FnOnce(&[u8]) -> T) -> PyResult<Option<T>> {
    let Some((reply, view)) = received_body(request) else { return Ok(None) };
    if parameters(request)?.content_type != JSON {
        return Ok(None);
    }
    with_body(reply, view, look).map(Some)
}

/// The parameters of a call. A server that sends none leaves out what the model does not look at: the body is JSON.
fn parameters(request: &InferenceRequest) -> PyResult<CallParameters<'_>> {
    if request.parameters.is_empty() {
        return Ok(CallParameters::of_json());
    }
    serde_json::from_str(&request.parameters).map_err(misread)
}

fn misread(error: serde_json::Error) -> PyErr {
    refused(format!("The server sent a call with other parameters: {error}"))
}

fn with_body<T>(reply: &Reply, view: &ViewedTensor, look: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
    let lease = reply.loan.lease().ok_or_else(|| refused("A call can be read only before it is answered."))?;
    let memory = reply.link.end.memory().at(view.offset, view.len);
    let memory = memory.ok_or_else(|| refused("The server sent a body outside of its memory."))?;
    // SAFETY: in the mapping, and kept by the lease; the server writes there only before it hands the memory over.
    let element = unsafe { std::slice::from_raw_parts(memory.as_ptr(), view.len) };
    let looked = look(element.get(PREFIX_BYTES..).unwrap_or_default());
    drop(lease);
    Ok(looked)
}

/// The body of a request that is a call, which stands behind the declared inputs; none where it is none.
fn received_body(request: &InferenceRequest) -> Option<(&Reply, &ViewedTensor)> {
    let (reply, [view]) = request.received_views()? else { return None };
    let index = reply.link.body_index()?;
    matches!(view.name, OwnedTensorName::Index(at) if at == index).then_some((reply, view))
}

/// The response to a call.
///
/// # Errors
///
/// A status that HTTP does not have for a response, or a body that is too long.
pub fn respond(
    py: Python<'_>,
    body: &[u8],
    status: u16,
    content_type: &str,
    headers: &str,
    more: bool,
) -> PyResult<InferenceResponse> {
    if !(200..=599).contains(&status) {
        return Err(refused(format!("A response has a status of 200 to 599, got {status}.")));
    }
    if body.len() as u64 > HTTP_MAX_BODY_BYTES {
        return Err(refused(format!("The body has {} bytes, more than {HTTP_MAX_BODY_BYTES}.", body.len())));
    }
    let mut element = Vec::with_capacity(PREFIX_BYTES + body.len());
    element.extend_from_slice(&prefix(body.len()));
    element.extend_from_slice(body);
    let text = |value: &str| Parameter::String(value.to_owned());
    // What the server takes for granted is not sent.
    let mut parameters = Vec::new();
    if status != 200 {
        parameters.push((STATUS.to_owned(), Parameter::Int64(status.into())));
    }
    if content_type != JSON {
        parameters.push((CONTENT_TYPE.to_owned(), text(content_type)));
    }
    if !headers.is_empty() {
        parameters.push((HEADERS.to_owned(), text(headers)));
    }
    if more {
        parameters.push((MORE.to_owned(), Parameter::Bool(true)));
    }
    response(py, element, parameters)
}

/// The response whose body is an element of `BYTES`.
///
/// # Errors
///
/// Python has no memory.
pub fn response(py: Python<'_>, element: Vec<u8>, parameters: Vec<(String, Parameter)>) -> PyResult<InferenceResponse> {
    let tensor = Tensor::of_strings(PyString::intern(py, BODY).unbind(), element, call::shape());
    Ok(InferenceResponse::of_call(smallvec![Py::new(py, tensor)?], parameters))
}
