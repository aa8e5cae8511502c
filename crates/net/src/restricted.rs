//! Groups of requests that need a header with an agreed value. Source: Triton's flags `--http-restricted-api` and
//! `--grpc-restricted-protocol`, whose groups these are. The routes of HTTP and the methods of gRPC name their groups.
//!
//! The comparison takes the same time wherever the values differ. It is no substitute for encryption: anyone who reads
//! the connection reads the value.

use std::hint::black_box;

use alipes_spec::RestrictionSpec;
use http::HeaderMap;

/// A group of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Health and readiness.
    Health,
    /// Metadata of the server and of models.
    Metadata,
    /// Inference, and the states of sequences.
    Inference,
    /// Regions of shared memory.
    SharedMemory,
    /// Configurations of models.
    ModelConfig,
    /// The index, and names of models over V1. The flags' `model-repository` restricts `ModelControl` as well.
    ModelRepository,
    /// Load and unload. The index is no part of it: who may not change what is served may see it, as over V1 and in the
    /// description of the endpoints.
    ModelControl,
    /// Statistics, and what they explain.
    Statistics,
    /// Trace settings.
    Trace,
    /// Log settings.
    Logging,
    /// Calls of models' endpoints.
    Endpoint,
    /// The description of the endpoints, and the pages that show it.
    Openapi,
    /// The metrics, which have a listener of their own. Only keys guard it.
    Metrics,
}

impl Group {
    /// Every group.
    pub const ALL: [Group; 13] = [
        Group::Health,
        Group::Metadata,
        Group::Inference,
        Group::SharedMemory,
        Group::ModelConfig,
        Group::ModelRepository,
        Group::ModelControl,
        Group::Statistics,
        Group::Trace,
        Group::Logging,
        Group::Endpoint,
        Group::Openapi,
        Group::Metrics,
    ];

    /// The name that the flags take.
    pub fn name(self) -> &'static str {
        match self {
            Group::Health => "health",
            Group::Metadata => "metadata",
            Group::Inference => "inference",
            Group::SharedMemory => "shared-memory",
            Group::ModelConfig => "model-config",
            Group::ModelRepository => "model-repository",
            Group::ModelControl => "model-control",
            Group::Statistics => "statistics",
            Group::Trace => "trace",
            Group::Logging => "logging",
            Group::Endpoint => "endpoint",
            Group::Openapi => "openapi",
            Group::Metrics => "metrics",
        }
    }

    /// Whether a server that stops refuses requests of this group: they need models, or change what is served.
    pub fn is_refused_at_stop(self) -> bool {
        matches!(self, Group::Inference | Group::SharedMemory | Group::ModelRepository | Group::ModelControl)
    }

    /// Whether a name in a flag means this group.
    pub(super) fn is_meant_by(self, name: &str) -> bool {
        // Triton's group has no part that a flag could name, and means the whole.
        name == self.name() || (self == Group::ModelControl && name == Group::ModelRepository.name())
    }
}

/// Prefix of a key in gRPC metadata.
const GRPC_PREFIX: &str = "triton-grpc-protocol-";

/// Which groups need which header.
#[derive(Debug, Default)]
pub struct Restrictions {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    groups: Vec<Group>,
    header: String,
    value: Vec<u8>,
}

impl Restrictions {
    /// The restrictions of the HTTP listener.
    pub fn http(specs: &[RestrictionSpec]) -> Restrictions {
        Restrictions::new(specs, "")
    }

    /// The restrictions of the gRPC listener.
    pub fn grpc(specs: &[RestrictionSpec]) -> Restrictions {
        Restrictions::new(specs, GRPC_PREFIX)
    }

    fn new(specs: &[RestrictionSpec], prefix: &str) -> Restrictions {
        let rule = |spec: &RestrictionSpec| Rule {
            groups: Group::ALL
                .into_iter()
                .filter(|group| spec.groups.iter().any(|name| group.is_meant_by(name)))
                .collect(),
            header: format!("{prefix}{}", spec.header),
            value: spec.value.as_bytes().to_vec(),
        };
        Restrictions { rules: specs.iter().map(rule).collect() }
    }

    /// Whether nothing is restricted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether requests of a group need a header.
    pub fn guard(&self, group: Group) -> bool {
        self.rules.iter().any(|rule| rule.groups.contains(&group))
    }

    /// The header that a request of a group lacks; none where the request is allowed.
    pub fn missing_header(&self, group: Group, headers: &HeaderMap) -> Option<&str> {
        let rule = self.rules.iter().find(|rule| rule.groups.contains(&group))?;
        let value = headers.get(rule.header.as_str()).map(|value| value.as_bytes());
        (!value.is_some_and(|value| same(value, &rule.value))).then_some(&rule.header)
    }
}

/// Whether two texts are the same, in a time that depends on their lengths alone.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| black_box(differences | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
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
        assert_eq!(http.missing_header(Group::Inference, &HeaderMap::new()), Some("Key"));
        for value in ["", "wor", "wordy", "Word"] {
            assert_eq!(http.missing_header(Group::Inference, &with("key", value)), Some("Key"), "{value}");
        }
        assert_eq!(http.missing_header(Group::Inference, &with("key", "word")), None);
        assert_eq!(http.missing_header(Group::Metadata, &HeaderMap::new()), None);
    }

    #[test]
    fn grpc_expects_the_key_behind_a_prefix() {
        let grpc = Restrictions::grpc(&restrictions());
        assert_eq!(grpc.missing_header(Group::Inference, &with("key", "word")), Some("triton-grpc-protocol-Key"));
        assert_eq!(grpc.missing_header(Group::Inference, &with("triton-grpc-protocol-key", "word")), None);
        assert!(grpc.missing_header(Group::Health, &HeaderMap::new()).is_some());
    }

    #[test]
    fn the_repository_includes_its_control_and_not_the_other_way_round() {
        let restricting = |name: &str| {
            let (header, value) = ("Key".to_owned(), "word".to_owned());
            Restrictions::http(&[RestrictionSpec { groups: vec![name.to_owned()], header, value }])
        };
        let (whole, part) = (restricting("model-repository"), restricting("model-control"));
        assert!(whole.guard(Group::ModelRepository) && whole.guard(Group::ModelControl));
        assert!(part.guard(Group::ModelControl) && !part.guard(Group::ModelRepository));
    }

    #[test]
    fn every_group_stands_once_in_the_list_of_all() {
        let mut names = Group::ALL.map(Group::name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
