//! What is wrong with the certificate of the other side, in a sentence that says what to do.
//!
//! The library names a fault by its own word, such as `CaUsedAsEndEntity`, which nobody who runs a server knows.

use std::io;

use rustls::{CertificateError, Error, ExtendedKeyPurpose};

use crate::version::{IS_OTHER_THAN_VERSION_3, is_other_than_version_3};

/// What the library says of an authority's certificate that is shown as a server's or a client's, which it has no error
/// of its own for.
const IS_AN_AUTHORITY: &str = "CaUsedAsEndEntity";

/// What the library says of a certificate in between that may not issue others, which it has no error of its own for.
const IS_NO_AUTHORITY: &str = "EndEntityUsedAsCa";

/// What the sentences say that depends on whose certificate it is, and on who looks at it.
#[derive(Clone, Copy, Debug)]
pub struct CertificateWords {
    /// Whose certificate it is.
    pub whose: &'static str,
    /// Who trusts some authorities and not others.
    pub judge: &'static str,
    /// How the judge comes to trust an authority.
    pub trust: &'static str,
    /// What to do where the certificate is an authority's own.
    pub authority: &'static str,
    /// What to do where it bears other names; only names of servers are compared.
    pub name: &'static str,
    /// What it has to be issued for, as `extendedKeyUsage` has it.
    pub usage: &'static str,
}

/// Whether a certificate is refused since it is an authority's own.
pub fn is_authority(error: &CertificateError) -> bool {
    is_other(error, IS_AN_AUTHORITY)
}

/// Why a certificate is refused, and what to do.
pub fn certificate_fault(error: &CertificateError, words: &CertificateWords) -> String {
    use CertificateError::{
        BadEncoding, BadSignature, Expired, ExpiredContext, InvalidPurpose, InvalidPurposeContext, NotValidForName,
        NotValidForNameContext, NotValidYet, NotValidYetContext, Revoked, UnhandledCriticalExtension, UnknownIssuer,
        UnsupportedSignatureAlgorithmContext, UnsupportedSignatureAlgorithmForPublicKeyContext,
    };
    let CertificateWords { whose, judge, trust, authority, name, usage } = words;
    match error {
        UnknownIssuer => format!("{whose} was issued by nobody that {judge} trusts: {trust}"),
        other if is_authority(other) => {
            format!("{whose} is an authority's own, as `openssl req -x509` makes it: {authority}")
        }
        other if is_other(other, IS_NO_AUTHORITY) => {
            format!("{whose} was issued by one that may not issue others: issue it again by an authority (CA:TRUE)")
        }
        Expired | ExpiredContext { .. } => format!("{whose} has expired: it has to be renewed there"),
        NotValidYet | NotValidYetContext { .. } => {
            format!("{whose} is not valid yet: compare the clocks of both machines")
        }
        NotValidForNameContext { presented, .. } if presented.is_empty() => {
            format!("{whose} bears no name: it has to be issued again with some in its subjectAltName")
        }
        NotValidForNameContext { expected, presented } => {
            let borne: Vec<&str> = presented.iter().map(|shown| plain_name(shown)).collect();
            format!("{whose} is for another name ({}, not {}): {name}", borne.join(", "), expected.to_str())
        }
        NotValidForName => format!("{whose} is for another name: {name}"),
        InvalidPurposeContext { presented, .. } => {
            let allowed: Vec<&str> = presented.iter().map(purpose).collect();
            let allowed = allowed.join(", ");
            format!("{whose} is for another use ({allowed}): issue it again with extendedKeyUsage={usage}")
        }
        InvalidPurpose => format!("{whose} is for another use: issue it again with extendedKeyUsage={usage}"),
        Revoked => format!("{whose} was revoked by its authority: it has to be replaced by another"),
        BadSignature => format!("{whose} bears a signature that is not its issuer's: it has to be issued again"),
        UnsupportedSignatureAlgorithmContext { .. } | UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("{whose} is signed by an algorithm that is not accepted: issue it again with SHA-256")
        }
        UnhandledCriticalExtension => {
            format!("{whose} has a critical extension that is not known here: issue it again without")
        }
        BadEncoding => format!("{whose} is no well-formed one of X.509: it has to be issued again"),
        other if is_other_than_version_3(other) => {
            format!("{whose} {IS_OTHER_THAN_VERSION_3}: it has to be issued again with some")
        }
        other => format!("{whose} cannot be used ({other}): it has to be issued again"),
    }
}

/// Why a connection could not be encrypted: what is wrong with a certificate, or the error as it is.
pub fn refusal(error: &io::Error, words: &CertificateWords) -> String {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(why)) => certificate_fault(why, words),
        _ => error.to_string(),
    }
}

fn is_other(error: &CertificateError, text: &str) -> bool {
    matches!(error, CertificateError::Other(why) if why.to_string() == text)
}

/// A name out of the library's text for it, such as `DnsName("localhost")` or `IpAddress(127.0.0.1)`.
fn plain_name(shown: &str) -> &str {
    let inner = shown.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(shown, |inner| inner.trim_matches('"'))
}

fn purpose(purpose: &ExtendedKeyPurpose) -> &'static str {
    match purpose {
        ExtendedKeyPurpose::ClientAuth => "clientAuth",
        ExtendedKeyPurpose::ServerAuth => "serverAuth",
        _ => "something else",
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;

    use super::*;

    const WORDS: CertificateWords = CertificateWords {
        whose: "the certificate",
        judge: "this client",
        trust: "trust its authority",
        authority: "trust it",
        name: "ask for that",
        usage: "serverAuth",
    };

    #[test]
    fn names_are_shown_without_the_librarys_words() {
        let expected = ServerName::try_from("localhost").unwrap();
        let error = |presented: &[&str]| CertificateError::NotValidForNameContext {
            expected: expected.clone(),
            presented: presented.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(
            certificate_fault(&error(&[r#"DnsName("a.example")"#, "IpAddress(127.0.0.1)"]), &WORDS),
            "the certificate is for another name (a.example, 127.0.0.1, not localhost): ask for that"
        );
        assert!(certificate_fault(&error(&[]), &WORDS).contains("bears no name"));
    }

    #[test]
    fn errors_of_a_connection_are_explained_where_they_are_of_a_certificate() {
        let refused = |error: Error| refusal(&io::Error::new(io::ErrorKind::InvalidData, error), &WORDS);
        assert_eq!(
            refused(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            "the certificate was issued by nobody that this client trusts: trust its authority"
        );
        assert_eq!(refused(Error::HandshakeNotComplete), Error::HandshakeNotComplete.to_string());
        assert_eq!(refusal(&io::Error::other("gone"), &WORDS), "gone");
    }

    #[test]
    fn every_fault_says_what_to_do_and_none_shows_a_word_of_the_library() {
        use CertificateError::{
            BadEncoding, BadSignature, Expired, InvalidPurpose, NotValidForName, NotValidYet, Revoked,
            UnhandledCriticalExtension, UnknownIssuer,
        };
        for error in [
            BadEncoding,
            BadSignature,
            Expired,
            InvalidPurpose,
            NotValidForName,
            NotValidYet,
            Revoked,
            UnhandledCriticalExtension,
            UnknownIssuer,
        ] {
            let text = certificate_fault(&error, &WORDS);
            assert!(text.starts_with("the certificate ") && text.contains(": "), "{text}");
            assert!(!text.contains(&format!("{error:?}")), "{text}");
        }
    }
}
