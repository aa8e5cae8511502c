//! Rules for the head of an HTTP/1 request that the HTTP library leaves to its user.

use hyper::header::{HOST, TRANSFER_ENCODING};
use hyper::{HeaderMap, StatusCode, Version};

/// A rule that a request breaks. A proxy in front of the server may read such a request as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// HTTP/1.1 without `Host`, or any version with several. Source: RFC 9112, section 3.2.
    Host,
    /// A transfer coding beside `chunked`. Source: RFC 9112, section 6.1.
    TransferCoding,
}

impl HeadFault {
    /// The status of the refusal.
    pub fn status(self) -> StatusCode {
        match self {
            HeadFault::Host => StatusCode::BAD_REQUEST,
            HeadFault::TransferCoding => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// What is wrong, and what to send instead.
    pub fn text(self) -> &'static str {
        match self {
            HeadFault::Host => "a request of HTTP/1.1 has exactly one Host header",
            HeadFault::TransferCoding => {
                "the only transfer coding is 'chunked': name a compression in Content-Encoding"
            }
        }
    }
}

/// Checks a head.
///
/// # Errors
///
/// The rule that it breaks.
#[inline]
pub fn check(version: Version, headers: &HeaderMap) -> Result<(), HeadFault> {
    let mut hosts = headers.get_all(HOST).iter();
    let has_host = hosts.next().is_some() || version < Version::HTTP_11;
    if !has_host || hosts.next().is_some() {
        return Err(HeadFault::Host);
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let is_chunked = codings.next().is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
        if !is_chunked || codings.next().is_some() {
            return Err(HeadFault::TransferCoding);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn checked(version: Version, headers: &[(HeaderName, &'static str)]) -> Result<(), HeadFault> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_static(value));
        }
        check(version, &map)
    }

    #[test]
    fn one_host_is_expected_since_http_1_1() {
        for host in ["a", ""] {
            assert_eq!(checked(Version::HTTP_11, &[(HOST, host)]), Ok(()));
        }
        assert_eq!(checked(Version::HTTP_10, &[]), Ok(()));
        assert_eq!(checked(Version::HTTP_11, &[]), Err(HeadFault::Host));
        for version in [Version::HTTP_10, Version::HTTP_11] {
            assert_eq!(checked(version, &[(HOST, "a"), (HOST, "b")]), Err(HeadFault::Host));
        }
    }

    #[test]
    fn the_only_transfer_coding_is_chunked() {
        let with = |codings: &[&'static str]| {
            let codings = codings.iter().map(|coding| (TRANSFER_ENCODING, *coding));
            checked(Version::HTTP_11, &std::iter::once((HOST, "a")).chain(codings).collect::<Vec<_>>())
        };
        assert_eq!((with(&["chunked"]), with(&["Chunked"])), (Ok(()), Ok(())));
        for codings in [&["gzip, chunked"][..], &["gzip", "chunked"], &["chunked", "chunked"], &["identity"]] {
            assert_eq!(with(codings), Err(HeadFault::TransferCoding), "{codings:?}");
        }
    }
}
