//! The JSON document of an error.

use alipes_protocol::limits::HTTP_MAX_ERROR_BYTES;
use bytes::Bytes;
use serde::Serialize;

/// What stands behind a text that is cut.
const CUT: &str = "...";

#[derive(Serialize)]
struct ErrorBody<'a> {
    error: &'a str,
}

/// The JSON document of an error. A text repeats what a client sent, names among them, so that a long one is cut.
pub fn error_body(message: &str) -> Bytes {
    if message.len() <= HTTP_MAX_ERROR_BYTES {
        return document(message);
    }
    let end = (0..=HTTP_MAX_ERROR_BYTES).rev().find(|&end| message.is_char_boundary(end));
    document(&format!("{}{CUT}", &message[..end.unwrap_or_default()]))
}

fn document(message: &str) -> Bytes {
    serde_json::to_vec(&ErrorBody { error: message }).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(error_body("a \"b\""), r#"{"error":"a \"b\""}"#);
        let text = format!("x{}", "é".repeat(HTTP_MAX_ERROR_BYTES));
        let body = error_body(&text);
        let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let shown = document["error"].as_str().unwrap();
        assert!(shown.ends_with("é...") && shown.len() <= HTTP_MAX_ERROR_BYTES + CUT.len(), "{}", shown.len());
        assert!(text.starts_with(shown.trim_end_matches('.')));
    }
}
