//! The headers of a request that the steps of a graph see.

use regex::Regex;

/// Headers that every step sees: they say which request a step's call belongs to.
const ALWAYS: [&str; 3] = ["traceparent", "tracestate", "x-request-id"];

/// Headers of a connection and of a body, which no step sees, whatever a pattern says.
const NEVER: [&str; 11] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Which headers go on to steps.
#[derive(Debug)]
pub struct Propagation(Vec<Regex>);

impl Propagation {
    /// Reads patterns; each matches anywhere in a name as Go writes it, such as `Test-Header`.
    ///
    /// # Errors
    ///
    /// A pattern is no regular expression.
    pub fn of(patterns: &[String]) -> Result<Propagation, String> {
        let read = |pattern: &String| {
            Regex::new(pattern).map_err(|error| {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().to_owned();
                format!("the header pattern '{pattern}' is no regular expression: {reason}")
            })
        };
        Ok(Propagation(patterns.iter().map(read).collect::<Result<_, _>>()?))
    }

    /// Whether a header, named in lower case, goes on.
    pub fn passes(&self, name: &str) -> bool {
        if ALWAYS.contains(&name) {
            return true;
        }
        if self.0.is_empty() || NEVER.contains(&name) {
            return false;
        }
        let canonical = canonical(name);
        self.0.iter().any(|pattern| pattern.is_match(&canonical))
    }
}

/// A header's name as Go writes it: `X-Request-Id`.
fn canonical(name: &str) -> String {
    let mut begins = true;
    let letter = |letter: char| {
        let shown = if begins { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
        begins = letter == '-';
        shown
    };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(patterns: &[&str], names: &[&str]) -> Vec<String> {
        let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let propagation = Propagation::of(&patterns).unwrap();
        names.iter().filter(|name| propagation.passes(name)).map(|&name| name.to_owned()).collect()
    }

    /// Source: the tests of KServe's router.
    #[test]
    fn patterns_choose_headers_by_the_names_that_go_gives_them() {
        let names = ["authorization", "test-header-1", "test-header-2", "x-team", "traceparent"];
        assert_eq!(passing(&[], &names), ["traceparent"]);
        assert_eq!(passing(&["Test-Header-*", "Auth*"], &names), [names[0], names[1], names[2], "traceparent"]);
        assert_eq!(passing(&["test-header"], &names), ["traceparent"]);
        assert_eq!(passing(&["^X-Team$"], &names), ["x-team", "traceparent"]);
    }

    #[test]
    fn headers_of_the_connection_stay() {
        let names = ["connection", "content-length", "host", "transfer-encoding", "content-type", "x-a"];
        assert_eq!(passing(&[".*"], &names), ["content-type", "x-a"]);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let fault = Propagation::of(&["Test-Header-[0-9".to_owned()]).unwrap_err();
        assert!(fault.starts_with("the header pattern 'Test-Header-[0-9' is no regular expression"), "{fault}");
    }
}
