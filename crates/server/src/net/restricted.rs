//! Groups of requests that need a header with an agreed value. Source: Triton's flags `--http-restricted-api` and
//! `--grpc-restricted-protocol`, whose groups these are.
//!
//! The value is compared in a time that does not tell where it differs. It is no substitute for encryption: whoever
//! reads the connection reads the value.

use std::hint::black_box;

use http::HeaderMap;

use crate::spec::RestrictionSpec;

/// The groups, by the names that the flags take.
const GROUPS: [&str; 9] = [
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
];

/// What stands in front of a key as gRPC's metadata.
const GRPC_PREFIX: &str = "triton-grpc-protocol-";

/// What needs which header.
#[derive(Debug, Default)]
pub struct Restrictions {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    groups: Vec<&'static str>,
    header: String,
    value: Vec<u8>,
}

impl Restrictions {
    /// Those of the HTTP door.
    pub fn http(specs: &[RestrictionSpec]) -> Restrictions {
        Restrictions::new(specs, "")
    }

    /// Those of the gRPC door.
    pub fn grpc(specs: &[RestrictionSpec]) -> Restrictions {
        Restrictions::new(specs, GRPC_PREFIX)
    }

    fn new(specs: &[RestrictionSpec], prefix: &str) -> Restrictions {
        let rule = |spec: &RestrictionSpec| Rule {
            groups: GROUPS.into_iter().filter(|group| spec.groups.iter().any(|name| name == group)).collect(),
            header: format!("{prefix}{}", spec.header),
            value: spec.value.as_bytes().to_vec(),
        };
        Restrictions { rules: specs.iter().map(rule).collect() }
    }

    /// Whether anything is restricted at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The header that a request to a path of HTTP lacks; none where it may pass.
    pub fn lacks_http(&self, path: &str, headers: &HeaderMap) -> Option<&str> {
        self.lacks(http_group(path)?, headers)
    }

    /// The metadata that a call of a method lacks; none where it may pass.
    pub fn lacks_grpc(&self, method: &str, metadata: &HeaderMap) -> Option<&str> {
        self.lacks(grpc_group(method)?, metadata)
    }

    fn lacks(&self, group: &str, headers: &HeaderMap) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.groups.contains(&group))?;
        let given = headers.get(rule.header.as_str()).map(|value| value.as_bytes());
        (!given.is_some_and(|given| same(given, &rule.value))).then_some(&rule.header)
    }
}

/// Whether two texts are the same, in a time that depends on their lengths alone.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| black_box(differences | (a ^ b))) == 0
}

/// The group of a path, whatever the method: Triton asks for the header before it looks at that.
fn http_group(path: &str) -> Option<&'static str> {
    let segments: Vec<&str> = path.strip_prefix("/v2")?.split('/').collect();
    Some(match segments[..] {
        [""] => "metadata",
        ["", "health", ..] => "health",
        ["", "logging", ..] => "logging",
        ["", "trace", ..] => "trace",
        ["", "repository", ..] => "model-repository",
        ["", "systemsharedmemory" | "cudasharedmemory", ..] => "shared-memory",
        ["", "models", "stats"] => "statistics",
        ["", "models", _, "versions", _, ref action @ ..] | ["", "models", _, ref action @ ..] => match action {
            [] => "metadata",
            ["ready", ..] => "health",
            ["config", ..] => "model-config",
            ["stats" | "explain", ..] => "statistics",
            ["trace", ..] => "trace",
            _ => "inference",
        },
        _ => return None,
    })
}

fn grpc_group(path: &str) -> Option<&'static str> {
    if path.starts_with("/grpc.health.v1.Health/") {
        return Some("health");
    }
    Some(match path.strip_prefix("/inference.GRPCInferenceService/")? {
        "ServerLive" | "ServerReady" | "ModelReady" => "health",
        "ServerMetadata" | "ModelMetadata" => "metadata",
        "ModelInfer" | "ModelStreamInfer" => "inference",
        "ModelConfig" => "model-config",
        "ModelStatistics" => "statistics",
        "TraceSetting" => "trace",
        "LogSettings" => "logging",
        method if method.starts_with("Repository") => "model-repository",
        method if method.contains("SharedMemory") => "shared-memory",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn restrictions() -> Vec<RestrictionSpec> {
        let groups = vec!["inference".to_owned(), "health".to_owned()];
        vec![RestrictionSpec { groups, header: "Key".to_owned(), value: "word".to_owned() }]
    }

    fn with(header: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header.parse().unwrap(), HeaderValue::from_static(value))])
    }

    #[test]
    fn a_restricted_request_needs_the_header_and_its_value() {
        let http = Restrictions::http(&restrictions());
        let path = "/v2/models/m/versions/1/infer";
        assert_eq!(http.lacks_http(path, &HeaderMap::new()), Some("Key"));
        for value in ["", "wor", "wordy", "Word"] {
            assert_eq!(http.lacks_http(path, &with("key", value)), Some("Key"), "{value}");
        }
        assert_eq!(http.lacks_http(path, &with("key", "word")), None);
        assert_eq!(http.lacks_http("/v2", &HeaderMap::new()), None);
    }

    #[test]
    fn grpc_asks_for_the_key_behind_a_prefix() {
        let grpc = Restrictions::grpc(&restrictions());
        let method = "/inference.GRPCInferenceService/ModelStreamInfer";
        assert_eq!(grpc.lacks_grpc(method, &with("key", "word")), Some("triton-grpc-protocol-Key"));
        assert_eq!(grpc.lacks_grpc(method, &with("triton-grpc-protocol-key", "word")), None);
        assert!(grpc.lacks_grpc("/grpc.health.v1.Health/Check", &HeaderMap::new()).is_some());
    }

    #[test]
    fn no_way_of_writing_a_path_leads_around() {
        let known = [
            ("/v2/models/m", "metadata"),
            ("/v2/models/m/versions/1", "metadata"),
            ("/v2/models/m/versions/1/ready", "health"),
            ("/v2/models/versions/infer", "inference"),
            ("/v2/models/m/generate_stream", "inference"),
            ("/v2/models/m/versions/1/stats", "statistics"),
            ("/v2/models/stats", "statistics"),
            ("/v2/models/m/explain", "statistics"),
            ("/v2/models/m/trace/setting", "trace"),
            ("/v2/models/m/config", "model-config"),
            ("/v2/repository/some/models/m/load", "model-repository"),
            ("/v2/systemsharedmemory/region/x/register", "shared-memory"),
            ("/v2/health/live", "health"),
        ];
        for (path, group) in known {
            assert_eq!(http_group(path), Some(group), "{path}");
        }
        assert_eq!(http_group("/metrics"), None);
    }

    #[test]
    fn every_method_of_the_protocol_stands_in_a_group() {
        use alipes_protocol::codec::proto::DESCRIPTORS;
        use prost::Message;
        let files = prost_types::FileDescriptorSet::decode(DESCRIPTORS).unwrap().file;
        let mut seen = BTreeSet::new();
        for service in files.iter().flat_map(|file| &file.service) {
            if service.name() != "GRPCInferenceService" {
                continue;
            }
            for method in &service.method {
                let path = format!("/inference.GRPCInferenceService/{}", method.name());
                seen.insert(grpc_group(&path).unwrap_or_else(|| panic!("{path} is in no group")));
            }
        }
        assert_eq!(seen, BTreeSet::from(GROUPS));
    }
}
