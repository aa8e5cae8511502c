//! `mapPredictionsToInstances`: the answer of a V1 model as the request of the next one.

use crate::json::{Json, decode_string, parse, write_value};

/// A body whose `predictions` become `instances`; none where they do not, and the body is sent as it is.
///
/// Everything else of it is left out, and keys are compared in any case, as Go compares them. Source: KServe's router.
pub fn instances_of(body: &[u8]) -> Option<Vec<u8>> {
    let Ok(Json::Object(_)) = parse(body) else { return None };
    // The order of keys counts, of which a map keeps the last alone: `Predictions` behind `predictions` replaces it.
    let mut predictions = None;
    let body = &body[body.iter().position(|byte| *byte == b'{')?..];
    for (key, value) in crate::json::members(body) {
        let key = folded(&decode_string(key));
        if key != "predictions" && key != "instances" {
            continue;
        }
        match parse(value).ok()? {
            Json::Array(values) if key == "predictions" => predictions = Some(values),
            Json::Null if key == "predictions" => predictions = None,
            Json::Array(_) | Json::Null => {}
            // Go refuses the type, and the body stays as it is.
            _ => return None,
        }
    }
    let predictions = predictions.filter(|values| !values.is_empty())?;
    let mut text = br#"{"instances":"#.to_vec();
    write_value(&Json::Array(predictions), &mut text);
    text.push(b'}');
    Some(text)
}

/// A key without its case. Of the letters beyond ASCII, Go takes one for an `s`.
fn folded(key: &str) -> String {
    key.chars().map(|letter| if letter == '\u{17f}' { 's' } else { letter.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(body: &str) -> Option<String> {
        instances_of(body.as_bytes()).map(|text| String::from_utf8(text).unwrap())
    }

    /// Recorded from KServe's router.
    #[test]
    fn predictions_become_instances() {
        for (body, expected) in [
            (r#"{"predictions": [1.0, "<"], "x": 1}"#, r#"{"instances":[1,"\u003c"]}"#),
            (r#" {"Predictions": [[1]], "instances": [2]}"#, r#"{"instances":[[1]]}"#),
            (r#"{"predictions": [1], "PREDICTIONS": [{"b": 1, "a": 2}]}"#, r#"{"instances":[{"a":2,"b":1}]}"#),
            (r#"{"instances": null, "predictions": [null]}"#, r#"{"instances":[null]}"#),
        ] {
            assert_eq!(mapped(body).as_deref(), Some(expected), "{body}");
        }
    }

    #[test]
    fn any_other_body_stays_as_it_is() {
        for body in [
            "",
            "[1]",
            "{",
            r#"{"predictions": []}"#,
            r#"{"predictions": "1"}"#,
            r#"{"predictions": [1], "instances": 2}"#,
            r#"{"predictions": [1], "predictions": null}"#,
            r#"{"instances": [1]}"#,
        ] {
            assert_eq!(mapped(body), None, "{body}");
        }
    }
}
