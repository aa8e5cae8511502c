//! Headers of calls: those of a request as the model reads them, and those that it gives its response.

#[cfg(test)]
mod fuzz;

use std::borrow::Cow;
use std::collections::BTreeMap;

use alipes_protocol::InferError;
use alipes_protocol::limits::CALL_MAX_HEADER_BYTES;
use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Headers of the connection, and not of what it carries. Source: RFC 9110, section 7.6.1.
const OF_THE_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    PROXY_CONNECTION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The headers of a request as the text of a JSON object: lower-case names, one text each.
///
/// Several of one name are joined. Bytes beyond ASCII are read as Latin-1, which loses none. `is_expanded`: the body
/// was compressed, so that its length and its coding are not what the model gets.
pub fn of_request(head: &Parts, is_expanded: bool) -> String {
    // Neither names nor values can fail to be written.
    serde_json::to_string(&RequestHeaders { head, is_expanded }).unwrap_or_default()
}

struct RequestHeaders<'a> {
    head: &'a Parts,
    is_expanded: bool,
}

impl RequestHeaders<'_> {
    fn is_shown(&self, name: &HeaderName) -> bool {
        let is_undone = self.is_expanded && (*name == CONTENT_ENCODING || *name == CONTENT_LENGTH);
        !is_undone && !OF_THE_CONNECTION.contains(name)
    }
}

impl Serialize for RequestHeaders<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let headers = &self.head.headers;
        let mut object = serializer.serialize_map(None)?;
        // Over HTTP/2 the host stands beside the headers.
        if let (false, Some(authority)) = (headers.contains_key(HOST), self.head.uri.authority()) {
            object.serialize_entry(HOST.as_str(), authority.as_str())?;
        }
        for name in headers.keys().filter(|name| self.is_shown(name)) {
            object.serialize_entry(name.as_str(), &joined(headers, name))?;
        }
        object.end()
    }
}

/// The values of a name, joined as they mean the same. Source: RFC 9110, section 5.3; RFC 6265, section 5.4.
fn joined<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Cow<'a, str> {
    let mut values = headers.get_all(name).iter().map(text);
    let Some(mut all) = values.next() else { return Cow::Borrowed("") };
    for value in values {
        let all = all.to_mut();
        all.push_str(if *name == COOKIE { "; " } else { ", " });
        all.push_str(&value);
    }
    all
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    match value.to_str() {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(value.as_bytes().iter().map(|&byte| char::from(byte)).collect()),
    }
}

/// One value or several, such as cookies.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values<'a> {
    One(#[serde(borrow)] Cow<'a, str>),
    Several(Vec<String>),
}

/// Adds what a model gives its response, the text of a JSON object of texts and lists of texts.
///
/// # Errors
///
/// What is no such object, is too long, names no header, or names one that is the server's.
pub fn add_to(headers: &mut HeaderMap, text: &str) -> Result<(), InferError> {
    if text.len() > CALL_MAX_HEADER_BYTES {
        let length = text.len();
        return Err(wrong(format!("they take {length} bytes, more than the {CALL_MAX_HEADER_BYTES} that are allowed")));
    }
    let object: BTreeMap<Cow<'_, str>, Values<'_>> = serde_json::from_str(text)
        .map_err(|error| wrong(format!("expected a JSON object of texts and lists of texts: {error}")))?;
    for (name, values) in &object {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(format!("'{name}' names no header")))?;
        if header == CONTENT_TYPE {
            return Err(wrong("'content-type' is no header of theirs: give it as content_type".to_owned()));
        }
        if OF_THE_CONNECTION.contains(&header) || header == CONTENT_LENGTH {
            return Err(wrong(format!("'{header}' is not a model's to give: the server sets it")));
        }
        match values {
            Values::One(value) => append(headers, &header, value)?,
            Values::Several(values) => values.iter().try_for_each(|value| append(headers, &header, value))?,
        }
    }
    Ok(())
}

fn append(headers: &mut HeaderMap, name: &HeaderName, value: &str) -> Result<(), InferError> {
    let value = HeaderValue::from_str(value);
    let value = value.map_err(|_| wrong(format!("the value of '{name}' has a character that none may have")))?;
    headers.append(name.clone(), value);
    Ok(())
}

fn wrong(what: String) -> InferError {
    InferError::internal(format!("the model gave its response wrong headers: {what}"))
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use serde_json::{Value, json};

    use super::*;

    fn shown(request: hyper::http::request::Builder, is_expanded: bool) -> Value {
        serde_json::from_str(&of_request(&request.body(()).unwrap().into_parts().0, is_expanded)).unwrap()
    }

    #[test]
    fn a_model_sees_the_headers_that_are_for_it() {
        let request = Request::post("/m")
            .header("Host", "here")
            .header("X-Two", "1")
            .header("x-two", "2")
            .header("Cookie", "a=1")
            .header("Cookie", "b=\"2\"")
            .header("X-Latin", HeaderValue::from_bytes(b"caf\xe9").unwrap())
            .header("Connection", "keep-alive")
            .header("Transfer-Encoding", "chunked");
        let expected = json!({"host": "here", "x-two": "1, 2", "cookie": "a=1; b=\"2\"", "x-latin": "caf\u{e9}"});
        assert_eq!(shown(request, false), expected);
    }

    #[test]
    fn a_body_that_was_expanded_has_another_length() {
        let request = || Request::post("/m").header("Content-Encoding", "gzip").header("Content-Length", "7");
        assert_eq!(shown(request(), false), json!({"content-encoding": "gzip", "content-length": "7"}));
        assert_eq!(shown(request(), true), json!({}));
    }

    #[test]
    fn the_authority_of_http2_is_the_host() {
        assert_eq!(shown(Request::post("http://there:80/m"), false), json!({"host": "there:80"}));
        assert_eq!(shown(Request::post("http://there/m").header("Host", "here"), false), json!({"host": "here"}));
    }

    fn added(text: &str) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        add_to(&mut headers, text).map(|()| headers).map_err(|error| error.message)
    }

    #[test]
    fn a_model_gives_one_value_or_several() {
        let headers = added(r#"{"X-One": "1", "Set-Cookie": ["a=1", "b=2"], "x-none": []}"#).unwrap();
        assert_eq!(headers["x-one"], "1");
        assert_eq!(headers.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn what_is_no_header_or_the_servers_is_refused() {
        for (text, reason) in [
            ("[]", "expected a JSON object"),
            (r#"{"x": 1}"#, "expected a JSON object"),
            (r#"{"x y": "1"}"#, "'x y' names no header"),
            (r#"{"x": "1\r\nSet-Cookie: a"}"#, "the value of 'x' has a character"),
            (r#"{"Content-Length": "1"}"#, "'content-length' is not a model's to give"),
            (r#"{"content-type": "a/b"}"#, "'content-type' is no header of theirs: give it as content_type"),
            (r#"{"Transfer-Encoding": ["chunked"]}"#, "'transfer-encoding' is not a model's to give"),
        ] {
            let message = added(text).unwrap_err();
            assert!(message.contains(reason), "{message}");
        }
        let long = format!(r#"{{"x": "{}"}}"#, "y".repeat(CALL_MAX_HEADER_BYTES));
        assert!(added(&long).unwrap_err().contains("more than the 65536"));
    }
}
