//! How long a client waits, and what ends when it no longer does.

use std::time::{Duration, Instant};

use alipes_protocol::{Code, InferError};
use http::{HeaderMap, HeaderName};
use tokio::time;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Most digits of a time-out. Source: the gRPC protocol over HTTP/2.
const MAX_DIGITS: usize = 8;

/// Until when the client of a call waits; none where it waits for as long as it takes.
///
/// # Errors
///
/// `Internal` for a time-out that cannot be read, as gRPC's own servers answer.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<Instant>, InferError> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else { return Ok(None) };
    match timeout(value.as_bytes()) {
        // A moment that the clock cannot name never comes.
        Some(timeout) => Ok(alipes_clock::now().checked_add(timeout)),
        None => Err(InferError::internal(format!(
            "malformed grpc-timeout {value:?}, expected one to {MAX_DIGITS} digits and a unit: H, M, S, m, u or n"
        ))),
    }
}

fn timeout(text: &[u8]) -> Option<Duration> {
    let (&unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// The outcome of a call, or the error of its deadline, which drops the call and cancels its request.
pub(super) async fn within<T>(
    deadline: Instant,
    call: impl Future<Output = Result<T, InferError>>,
) -> Result<T, InferError> {
    time::timeout_at(deadline.into(), call).await.unwrap_or_else(|_| Err(passed()))
}

/// The error of a passed deadline, in the words of gRPC's clients, which mostly notice it themselves.
pub(super) fn passed() -> InferError {
    InferError::new(Code::DeadlineExceeded, "Deadline Exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_digits_and_a_unit() {
        assert_eq!(timeout(b"1H"), Some(Duration::from_secs(3600)));
        assert_eq!(timeout(b"20M"), Some(Duration::from_secs(1200)));
        assert_eq!(timeout(b"0S"), Some(Duration::ZERO));
        assert_eq!(timeout(b"99999999m"), Some(Duration::from_millis(99_999_999)));
        assert_eq!(timeout(b"15u"), Some(Duration::from_micros(15)));
        assert_eq!(timeout(b"7n"), Some(Duration::from_nanos(7)));
        for wrong in [&b""[..], b"S", b"10", b"1s", b"-1S", b"1.5S", b"999999999S", b"1 S"] {
            assert_eq!(timeout(wrong), None, "{}", String::from_utf8_lossy(wrong));
        }
    }

    #[test]
    fn the_longest_timeout_is_a_moment_or_none() {
        let headers = |text| HeaderMap::from_iter([(GRPC_TIMEOUT, http::HeaderValue::from_static(text))]);
        assert!(of(&headers("99999999H")).is_ok());
        assert!(of(&HeaderMap::new()).unwrap().is_none());
        assert_eq!(of(&headers("soon")).unwrap_err().code, Code::Internal);
    }
}
