//! The endpoint of a model: `/<name>`, to which plain HTTP requests come.

use serde::Deserialize;

/// What a model's endpoint takes, and how it answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallEndpoint {
    /// Methods that it takes; none where the model has no path of its own, and explains over V1 alone.
    pub methods: Vec<CallMethod>,
    /// A request may have any number of responses, which are sent as they come.
    #[serde(default)]
    pub stream: bool,
    /// The model looks at the head of a request: method, query and headers. If not, a JSON body comes by itself.
    #[serde(default = "yes")]
    pub head: bool,
    /// Requests of the inference protocols that name the model, V1 and V2, are calls as well, whatever they hold.
    #[serde(default)]
    pub whole: bool,
    /// Requests of V1 for explanations that name the model are calls as well.
    #[serde(default)]
    pub explain: bool,
    /// Requests of V1 for predictions that name the model are calls as well.
    #[serde(default)]
    pub predict: bool,
}

fn yes() -> bool {
    true
}

/// A method that an endpoint may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallMethod {
    /// Its body, which is allowed and means nothing to caches, reaches the model as well.
    Get,
    /// The usual one.
    Post,
    /// As POST.
    Put,
    /// As POST.
    Patch,
    /// As POST.
    Delete,
}

impl CallMethod {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            CallMethod::Get => "GET",
            CallMethod::Post => "POST",
            CallMethod::Put => "PUT",
            CallMethod::Patch => "PATCH",
            CallMethod::Delete => "DELETE",
        }
    }
}

impl CallEndpoint {
    /// Whether it takes requests of this method.
    pub fn takes(&self, method: &str) -> bool {
        self.methods.iter().any(|taken| taken.name() == method)
    }

    /// The methods as the header `Allow` lists them.
    pub fn allow(&self) -> String {
        self.methods.iter().map(|method| method.name()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CallEndpoint, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_takes_the_methods_that_it_lists() {
        let endpoint = read(r#"{"methods": ["POST", "GET"], "stream": true}"#).unwrap();
        assert!(endpoint.stream && endpoint.takes("GET") && endpoint.takes("POST"));
        assert!(!endpoint.takes("PUT") && !endpoint.takes("post") && !endpoint.takes("HEAD"));
        assert_eq!(endpoint.allow(), "POST, GET");
        let plain = read(r#"{"methods": ["DELETE"]}"#).unwrap();
        assert!(!plain.stream && plain.head && !plain.whole && !plain.explain && !plain.predict);
        assert!(read(r#"{"methods": ["POST"], "predict": true}"#).unwrap().predict);
        assert!(read(r#"{"methods": ["POST"], "explain": true}"#).unwrap().explain);
        assert!(read(r#"{"methods": ["POST"], "whole": true}"#).unwrap().whole);
        assert!(!read(r#"{"methods": ["POST"], "head": false}"#).unwrap().head);
    }

    #[test]
    fn what_is_no_endpoint_is_refused() {
        for text in ["{}", r#"{"methods": ["TRACE"]}"#, r#"{"methods": ["POST"], "name": "x"}"#] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
