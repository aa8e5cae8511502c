//! The head of a call.

use std::time::Duration;

use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Version};

use crate::error::{ClientError, Kind};
use crate::target::Target;

const AGENT: &str = concat!("alipes/", env!("CARGO_PKG_VERSION"));

/// The request that opens a call of `method`.
///
/// # Errors
/// Headers of the target that HTTP does not know or gRPC keeps for itself.
pub fn head(target: &Target, method: &str, limit: Option<Duration>) -> Result<Request<()>, ClientError> {
    let scheme = if target.seal.is_some() { "https" } else { "http" };
    let service = if method.starts_with('/') { "" } else { "/inference.GRPCInferenceService/" };
    let uri = format!("{scheme}://{}{service}{method}", target.address.authority());
    let request = Request::builder().method(Method::POST).uri(uri).version(Version::HTTP_2);
    let request = request.header(TE, "trailers").header(CONTENT_TYPE, "application/grpc").header(USER_AGENT, AGENT);
    let mut request = request.body(()).map_err(|error| ClientError::new(Kind::Connect, error.to_string()))?;
    if let Some(limit) = limit {
        request.headers_mut().insert("grpc-timeout", timeout(limit));
    }
    if let Some(compression) = target.compression {
        request.headers_mut().insert("grpc-encoding", HeaderValue::from_static(compression.name()));
    }
    for (name, value) in &target.headers {
        let (name, value) = header(name, value)?;
        request.headers_mut().append(name, value);
    }
    Ok(request)
}

/// A span as gRPC writes it: eight digits at most, and a unit.
fn timeout(limit: Duration) -> HeaderValue {
    let text = match limit.as_millis() {
        millis @ 0..=99_999_999 => format!("{}m", millis.max(1)),
        _ => format!("{}S", limit.as_secs().min(99_999_999)),
    };
    HeaderValue::try_from(text).expect("digits and a letter")
}

/// A header as gRPC sends it.
///
/// # Errors
/// What HTTP does not know or gRPC keeps for itself.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ClientError> {
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
    use crate::target::{Compression, Wire};

    #[test]
    fn a_method_of_another_service_has_its_whole_path() {
        let target = Target::new("localhost:1", Wire::Grpc, Vec::new(), Duration::ZERO).unwrap();
        let request = head(&target, "/tensorflow.serving.PredictionService/Predict", None).unwrap();
        assert_eq!(request.uri().path(), "/tensorflow.serving.PredictionService/Predict");
        assert!(!request.headers().contains_key("grpc-encoding"));
    }

    #[test]
    fn the_head_says_how_messages_are_compressed() {
        let mut target = Target::new("localhost:1", Wire::Grpc, Vec::new(), Duration::ZERO).unwrap();
        target.compression = Some(Compression::Deflate);
        assert_eq!(head(&target, "ModelInfer", None).unwrap().headers()["grpc-encoding"], "deflate");
    }

    #[test]
    fn time_outs_have_eight_digits_at_most() {
        assert_eq!(
            (timeout(Duration::from_micros(1)), timeout(Duration::MAX)),
            (HeaderValue::from_static("1m"), HeaderValue::from_static("99999999S"))
        );
    }

    #[test]
    fn headers_of_the_caller_come_along_and_those_of_the_protocol_are_refused() {
        let with = |name: &str, value: &str| {
            let headers = vec![(name.to_owned(), value.to_owned())];
            Target::new("localhost:1", Wire::Grpc, headers, Duration::ZERO).unwrap()
        };
        let request = head(&with("Authorization", "Bearer x"), "ModelInfer", Some(Duration::from_secs(2))).unwrap();
        assert_eq!(request.headers()["authorization"], "Bearer x");
        assert_eq!(request.headers()["grpc-timeout"], "2000m");
        assert_eq!(request.uri().path(), "/inference.GRPCInferenceService/ModelInfer");
        for (name, value) in [("grpc-timeout", "1S"), ("a b", "x"), ("x", "a\nb")] {
            assert!(head(&with(name, value), "ModelInfer", None).unwrap_err().message.contains(name));
        }
    }
}
