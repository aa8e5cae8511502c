//! The binary tensor extension: where the JSON in front ends, and the tensors behind it.

use bytes::Bytes;

use crate::limits::HTTP_MAX_BODY_BYTES;
use crate::{InferError, Origin, TritonRelease};

/// Length in bytes of the JSON in front of the tensors, from the value of `Inference-Header-Content-Length`.
///
/// 0 says that the body is raw: all of it is the data of the only input. A value that is no number counts as 0 in
/// Triton 2.51. `body_length` is the length of the body in bytes where it is known before the body is read; without it
/// [`json::decode_request`](super::json::decode_request) checks the range.
///
/// # Errors
///
/// The length is negative or longer than the body, or no number in a later release.
pub fn header_length(value: &[u8], body_length: Option<u64>, release: TritonRelease) -> Result<usize, InferError> {
    let longest = body_length.unwrap_or(HTTP_MAX_BODY_BYTES);
    let length = match leading_integer(value) {
        Some(length) => length,
        None if release.is_later() => return Err(no_number(value)),
        None => 0,
    };
    match u64::try_from(length) {
        Ok(length) if length <= longest => usize::try_from(length).map_err(|_| out_of_range(value, longest)),
        _ => Err(out_of_range(value, longest)),
    }
}

/// The answer to a header length that lies outside of the body.
pub(super) fn out_of_range(value: &[u8], body_length: u64) -> InferError {
    let value = String::from_utf8_lossy(value);
    InferError::invalid(format!("inference header size should be in range (0, {body_length}), got: {value}"))
        .at(Origin::Endpoint)
}

fn no_number(value: &[u8]) -> InferError {
    let value = String::from_utf8_lossy(value);
    InferError::invalid(format!("Unable to parse Inference-Header-Content-Length, got: {value}")).at(Origin::Endpoint)
}

/// The integer at the beginning of a text, as C's `atoi` reads it, but saturating; none where there is no digit.
fn leading_integer(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    digits.first().filter(|byte| byte.is_ascii_digit())?;
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let magnitude =
        digits.fold(0_i64, |value, &digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if negative { -magnitude } else { magnitude })
}

/// The bytes behind the JSON, handed to the inputs in order.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    rest: Bytes,
}

impl Tail {
    /// All of them.
    pub(super) fn new(rest: Bytes) -> Tail {
        Tail { rest }
    }

    /// The next `size` bytes; a slice of the body, not a copy.
    ///
    /// # Errors
    ///
    /// Fewer are left.
    pub(super) fn take(&mut self, size: u64, input: &str, model: &str) -> Result<Bytes, InferError> {
        match usize::try_from(size) {
            Ok(size) if size <= self.rest.len() => Ok(self.rest.split_to(size)),
            _ => Err(InferError::invalid(format!(
                "unexpected size for input '{input}', expecting {} additional bytes for model '{model}'",
                size - self.rest.len() as u64
            ))),
        }
    }

    /// # Errors
    ///
    /// Bytes are left that no input asked for.
    pub(super) fn finish(self, model: &str) -> Result<(), InferError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(InferError::invalid(format!("unexpected additional input data for model '{model}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: TritonRelease = TritonRelease::V2_73;

    fn refused(value: &str, body_length: Option<u64>) -> String {
        header_length(value.as_bytes(), body_length, LATER).unwrap_err().message
    }

    #[test]
    fn lengths_within_the_body_are_accepted() {
        assert_eq!(header_length(b"188", Some(220), LATER), Ok(188));
        assert_eq!(header_length(b" 220", Some(220), LATER), Ok(220));
        assert_eq!(header_length(b"+7,", None, LATER), Ok(7));
    }

    #[test]
    fn a_word_means_a_raw_body_in_2_51_and_is_refused_later() {
        for word in ["ten", "", "-", " "] {
            assert_eq!(header_length(word.as_bytes(), Some(220), TritonRelease::V2_51), Ok(0), "{word}");
            assert_eq!(
                refused(word, Some(220)),
                format!("Unable to parse Inference-Header-Content-Length, got: {word}")
            );
        }
    }

    #[test]
    fn lengths_outside_of_the_body_are_refused() {
        assert_eq!(refused("100000", Some(220)), "inference header size should be in range (0, 220), got: 100000");
        assert_eq!(refused("-5", Some(220)), "inference header size should be in range (0, 220), got: -5");
        assert!(refused("99999999999999999999999", None).contains("(0, 2147483647)"));
        assert_eq!(header_length(b"-5", Some(220), LATER).unwrap_err().origin, Origin::Endpoint);
    }

    #[test]
    fn the_tail_is_shared_out_without_copies() {
        let body = Bytes::from_static(b"{}abcdef");
        let mut tail = Tail::new(body.slice(2..));
        assert_eq!(tail.take(4, "A", "m").unwrap().as_ptr(), body[2..].as_ptr());
        assert_eq!(
            tail.clone().take(5, "B", "m").unwrap_err().message,
            "unexpected size for input 'B', expecting 3 additional bytes for model 'm'"
        );
        assert_eq!(tail.finish("m").unwrap_err().message, "unexpected additional input data for model 'm'");
    }

    #[test]
    fn a_size_beyond_memory_is_refused() {
        let mut tail = Tail::new(Bytes::new());
        assert!(tail.take(u64::MAX, "A", "m").unwrap_err().message.contains("expecting 18446744073709551615"));
    }
}
