//! Header forwarding: headers of a call become parameters of its request.

use std::fmt::Display;

use alipes_protocol::{InferError, Parameter, TritonRelease};
use regex::bytes::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer, de::Error};

/// Parameter names with a meaning in the protocol. Source: Triton's parameters extension.
const RESERVED: [&str; 7] =
    ["sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output"];

/// Prefix of parameter names that belong to the protocol.
const RESERVED_PREFIX: &str = "triton_";

/// A regular expression that selects headers by name; it matches anywhere in the name, in any case.
#[derive(Clone, Debug)]
pub struct Forwarding(Regex);

impl Forwarding {
    /// Parameters of the headers whose names match. `shown` maps a header to the parameter's name.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where a name belongs to the protocol; Triton 2.51 forwards it.
    pub fn parameters<'a, N: Display>(
        &self,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        release: TritonRelease,
        shown: impl Fn(&str, &[u8]) -> N,
    ) -> Result<Vec<(String, Parameter)>, InferError> {
        let mut parameters = Vec::new();
        for (name, value) in headers {
            if !self.0.is_match(name.as_bytes()) {
                continue;
            }
            let shown = shown(name, value).to_string();
            if release.is_later() && (RESERVED.contains(&name) || name.starts_with(RESERVED_PREFIX)) {
                let text = format!("Header '{shown}' is reserved for Triton usage and cannot be forwarded.");
                return Err(InferError::invalid(text));
            }
            parameters.push((shown, Parameter::String(String::from_utf8_lossy(value).into_owned())));
        }
        Ok(parameters)
    }
}

/// Reads a pattern; an empty one forwards nothing.
///
/// # Errors
///
/// The pattern is no regular expression.
pub fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Forwarding>, D::Error> {
    let pattern = String::deserialize(deserializer)?;
    if pattern.is_empty() {
        return Ok(None);
    }
    // Names are ASCII, and classes such as \d are in Triton's regular expressions.
    let regex = RegexBuilder::new(&pattern).case_insensitive(true).unicode(false).build();
    regex.map(|regex| Some(Forwarding(regex))).map_err(|error| {
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default();
        D::Error::custom(format!("the header forward pattern '{pattern}' is no regular expression: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarding(text: &str) -> Result<Option<Forwarding>, serde_json::Error> {
        pattern(&mut serde_json::Deserializer::from_str(&serde_json::to_string(text)?))
    }

    fn parameters(text: &str, names: &[&str]) -> Result<Vec<String>, InferError> {
        parameters_in(TritonRelease::default(), text, names)
    }

    fn parameters_in(release: TritonRelease, text: &str, names: &[&str]) -> Result<Vec<String>, InferError> {
        let headers = names.iter().map(|name| (*name, &b"v"[..]));
        let chosen = forwarding(text).unwrap().unwrap().parameters(headers, release, |name, _| name.to_uppercase())?;
        Ok(chosen.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn a_pattern_matches_anywhere_and_in_any_case() {
        let names = ["x-team", "other", "a-x-team-name"];
        assert_eq!(parameters("X-TEAM.*|my_.*", &names).unwrap(), ["X-TEAM", "A-X-TEAM-NAME"]);
        assert_eq!(parameters("^x-team$", &names).unwrap(), ["X-TEAM"]);
    }

    #[test]
    fn a_name_of_the_protocol_is_refused_under_the_name_that_was_sent() {
        for (name, shown) in
            [("triton_key", "TRITON_KEY"), ("sequence_id", "SEQUENCE_ID"), ("binary_data_output", "BINARY_DATA_OUTPUT")]
        {
            let refused = parameters(".*", &[name]).unwrap_err();
            let text = format!("Header '{shown}' is reserved for Triton usage and cannot be forwarded.");
            assert_eq!(refused, InferError::invalid(text));
            assert_eq!(parameters_in(TritonRelease::V2_51, ".*", &[name]).unwrap(), [shown]);
        }
        assert_eq!(parameters("x-.*", &["triton_key", "x-a"]).unwrap(), ["X-A"]);
    }

    #[test]
    fn no_pattern_forwards_nothing_and_a_wrong_one_is_refused() {
        assert!(forwarding("").unwrap().is_none());
        let refused = forwarding("(").unwrap_err().to_string();
        assert_eq!(refused, "the header forward pattern '(' is no regular expression: error: unclosed group");
    }

    #[test]
    fn a_value_of_any_bytes_is_text() {
        let headers = [("x-a", &b"\xff!"[..])];
        let chosen = forwarding("x")
            .unwrap()
            .unwrap()
            .parameters(headers, TritonRelease::default(), |name, _| name.to_owned())
            .unwrap();
        assert_eq!(chosen, [("x-a".to_owned(), Parameter::String("\u{fffd}!".to_owned()))]);
    }
}
