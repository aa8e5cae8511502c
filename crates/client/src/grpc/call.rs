//! The head of a call.

use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Version};

use super::address::Address;
use crate::{ClientError, Kind};

const AGENT: &str = concat!("alipes/", env!("CARGO_PKG_VERSION"));

/// The request that opens a call of `method`.
///
/// # Errors
/// Headers in `metadata` that HTTP does not know or gRPC keeps for itself.
pub fn head(address: &Address, method: &str, metadata: &[(String, String)]) -> Result<Request<()>, ClientError> {
    let uri = format!("http://{}/inference.GRPCInferenceService/{method}", address.authority());
    let request = Request::builder().method(Method::POST).uri(uri).version(Version::HTTP_2);
    let request = request.header(TE, "trailers").header(CONTENT_TYPE, "application/grpc").header(USER_AGENT, AGENT);
    let mut request = request.body(()).map_err(|error| ClientError::new(Kind::Connect, error.to_string()))?;
    for (name, value) in metadata {
        let (name, value) = header(name, value)?;
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ClientError> {
    let wrong = |why: &str| ClientError::new(Kind::Connect, format!("the header '{name}' cannot be sent: {why}"));
    let parsed = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes());
    let parsed = parsed.map_err(|_| wrong("its name is no name of a header"))?;
    if parsed.as_str().starts_with("grpc-") {
        return Err(wrong("names that begin with 'grpc-' belong to the protocol"));
    }
    let value = HeaderValue::from_str(value).map_err(|_| wrong("its value has characters beyond visible ASCII"))?;
    Ok((parsed, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_the_caller_come_along_and_those_of_the_protocol_are_refused() {
        let address = Address::parse("localhost:1").unwrap();
        let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        let request = head(&address, "ModelInfer", &pair("Authorization", "Bearer x")).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer x");
        assert_eq!(request.uri().path(), "/inference.GRPCInferenceService/ModelInfer");
        for (name, value) in [("grpc-timeout", "1S"), ("a b", "x"), ("x", "a\nb")] {
            assert!(head(&address, "ModelInfer", &pair(name, value)).unwrap_err().message.contains(name));
        }
    }
}
