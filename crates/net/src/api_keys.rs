//! Keys that clients show on every listener, as `Authorization: Bearer KEY` or as `X-Api-Key: KEY`: over HTTP, in the
//! metadata of gRPC, and of those who read metrics.
//!
//! All keys are compared with, each in a time that does not depend on where it differs, so that nobody finds a key
//! byte by byte. It is no substitute for encryption: anyone who reads the connection reads the key.

use alipes_spec::ApiKeySpec;
use arc_swap::ArcSwap;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};

use super::restricted::{Group, same};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const BEARER: &[u8] = b"bearer";

/// What a client is told that shows no key, or another one, whatever it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// The request has no key.
    Missing,
    /// The request has a key that is none of the server's.
    Wrong,
}

impl KeyFault {
    /// The message for the client.
    pub fn text(self) -> &'static str {
        match self {
            KeyFault::Missing => {
                "this server asks for a key: send the header 'Authorization: Bearer KEY' or 'X-Api-Key: KEY'"
            }
            KeyFault::Wrong => "the key of this request is none that this server knows; ask its operator for one",
        }
    }

    /// The challenge that goes with HTTP's status 401. Source: RFC 6750, section 3.
    pub fn challenge(self) -> &'static str {
        match self {
            KeyFault::Missing => r#"Bearer realm="alipes""#,
            KeyFault::Wrong => r#"Bearer realm="alipes", error="invalid_token""#,
        }
    }
}

/// The keys of a server, all of whose listeners share them. Without a rule every request is admitted.
#[derive(Default)]
pub struct ApiKeys {
    rule: Option<KeyRule>,
}

struct KeyRule {
    keys: ArcSwap<Vec<String>>,
    open: Vec<Group>,
}

impl ApiKeys {
    /// The keys at the start; none where the server asks for none.
    pub fn new(spec: Option<&ApiKeySpec>) -> ApiKeys {
        ApiKeys {
            rule: spec.map(|spec| KeyRule {
                keys: ArcSwap::from_pointee(spec.keys.clone()),
                open: Group::ALL
                    .into_iter()
                    .filter(|group| spec.open.iter().any(|name| group.is_meant_by(name)))
                    .collect(),
            }),
        }
    }

    /// Takes other keys in the place of all; nothing changes where the server asks for none.
    pub fn replace(&self, keys: Vec<String>) {
        if let Some(rule) = &self.rule {
            rule.keys.store(keys.into());
        }
    }

    /// Whether some requests need a key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rule.is_none()
    }

    /// Whether requests of a group need a key. What is of no group does, too: which paths exist is nobody's business.
    pub fn guard(&self, group: Option<Group>) -> bool {
        let is_open = |rule: &KeyRule| group.is_some_and(|group| rule.open.contains(&group));
        self.rule.as_ref().is_some_and(|rule| !is_open(rule))
    }

    /// Why a request of a guarded group is not admitted; none where it has a key of the server.
    pub fn fault(&self, group: Option<Group>, headers: &HeaderMap) -> Option<KeyFault> {
        let rule = self.rule.as_ref().filter(|_| self.guard(group))?;
        let (mut shown, known) = (shown_keys(headers).peekable(), rule.keys.load());
        if shown.peek().is_none() {
            return Some(KeyFault::Missing);
        }
        let is_known = |key: &[u8]| known.iter().fold(false, |found, one| found | same(one.as_bytes(), key));
        (!shown.any(is_known)).then_some(KeyFault::Wrong)
    }
}

/// The keys that a request shows. Its credentials may be a proxy's instead, in another scheme.
fn shown_keys(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|value| bearer(value.as_bytes()));
    bearers.chain(headers.get_all(X_API_KEY).iter().map(|value| value.as_bytes().trim_ascii()))
}

/// The token of credentials of the scheme `Bearer`, whose name may be in capitals. Source: RFC 9110, section 11.1.
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = credentials.split_at_checked(BEARER.len())?;
    (scheme.eq_ignore_ascii_case(BEARER) && token.first() == Some(&b' ')).then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn keys(open: &[&str]) -> ApiKeys {
        let open = open.iter().map(|&name| name.to_owned()).collect();
        ApiKeys::new(Some(&ApiKeySpec { keys: vec!["first".to_owned(), "second".to_owned()], open }))
    }

    fn with(header: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header.parse().unwrap(), HeaderValue::from_static(value))])
    }

    fn fault(header: &'static str, value: &'static str) -> Option<KeyFault> {
        keys(&[]).fault(Some(Group::Inference), &with(header, value))
    }

    #[test]
    fn each_key_is_admitted_in_either_header() {
        for value in ["Bearer first", "bearer second", "BEARER  first "] {
            assert_eq!(fault("authorization", value), None, "{value}");
        }
        for value in ["first", " second "] {
            assert_eq!(fault("x-api-key", value), None, "{value}");
        }
    }

    #[test]
    fn a_key_that_is_part_of_one_or_has_more_is_wrong() {
        for value in ["Bearer firs", "Bearer firstt", "Bearer First", "Bearer", "Bearer "] {
            let expected = if value == "Bearer" { KeyFault::Missing } else { KeyFault::Wrong };
            assert_eq!(fault("authorization", value), Some(expected), "{value}");
        }
        assert_eq!(fault("x-api-key", ""), Some(KeyFault::Wrong));
    }

    #[test]
    fn credentials_of_another_scheme_are_no_key() {
        for value in ["Basic first", "Bearerfirst", "first"] {
            assert_eq!(fault("authorization", value), Some(KeyFault::Missing), "{value}");
        }
    }

    #[test]
    fn a_proxys_credentials_do_not_hide_a_key() {
        let mut headers = with("authorization", "Bearer of-the-proxy");
        headers.insert(X_API_KEY, HeaderValue::from_static("second"));
        assert_eq!(keys(&[]).fault(None, &headers), None);
    }

    #[test]
    fn an_open_group_needs_no_key_and_what_has_no_group_does() {
        let keys = keys(&["health", "metrics"]);
        for group in [Group::Health, Group::Metrics] {
            assert_eq!(keys.fault(Some(group), &HeaderMap::new()), None);
        }
        for group in [Some(Group::Inference), None] {
            assert_eq!(keys.fault(group, &HeaderMap::new()), Some(KeyFault::Missing));
        }
    }

    #[test]
    fn keys_are_replaced_while_requests_come() {
        let keys = keys(&[]);
        keys.replace(vec!["third".to_owned()]);
        assert_eq!(keys.fault(None, &with("x-api-key", "first")), Some(KeyFault::Wrong));
        assert_eq!(keys.fault(None, &with("x-api-key", "third")), None);
    }

    #[test]
    fn a_server_without_keys_admits_everybody() {
        let keys = ApiKeys::default();
        keys.replace(vec!["late".to_owned()]);
        assert!(keys.is_empty() && keys.fault(None, &HeaderMap::new()).is_none());
    }
}
