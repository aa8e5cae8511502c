//! Why there is no encrypted connection, in words that say what to do.
//!
//! The library's errors pass through HTTP/2, which keeps of an error its kind and its text alone: a kind that sockets
//! never have marks them.

use std::io;

use alipes_tls::{IS_OTHER_THAN_VERSION_3, is_other_than_version_3};
use rustls::{AlertDescription, CertificateError, Error};

const MARK: io::ErrorKind = io::ErrorKind::PermissionDenied;

/// Whether an error is one of these.
pub fn is(error: &io::Error) -> bool {
    error.kind() == MARK
}

/// An error of an encrypted stream; others come back as they are.
pub fn explain(error: io::Error) -> io::Error {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        Some(cause) => io::Error::new(MARK, words(cause)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection without a word")
        }
        None => error,
    }
}

fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate(why),
        Error::AlertReceived(alert) => refused(*alert),
        Error::InvalidMessage(_) => {
            "what answers there is not encrypted: ask a plain door with http:// or grpc://".to_owned()
        }
        other => format!("client and server do not agree on encryption: {other}"),
    }
}

fn certificate(error: &CertificateError) -> String {
    use CertificateError::{
        Expired, ExpiredContext, NotValidForName, NotValidForNameContext, NotValidYet, NotValidYetContext,
        UnknownIssuer,
    };
    match error {
        UnknownIssuer => "the server's certificate was issued by nobody that this client trusts: give the authority's \
                          certificate as Tls(roots=...)"
            .to_owned(),
        Expired | ExpiredContext { .. } => {
            "the server's certificate has expired: it has to be renewed there".to_owned()
        }
        NotValidYet | NotValidYetContext { .. } => {
            "the server's certificate is not valid yet: compare the clocks of both machines".to_owned()
        }
        NotValidForName | NotValidForNameContext { .. } => {
            format!(
                "the server's certificate is for another name ({error}): ask for one that it bears, or say which it \
                     bears as Tls(server_name=...)"
            )
        }
        other if is_other_than_version_3(other) => {
            format!("the server's certificate {IS_OTHER_THAN_VERSION_3}: it has to be issued again with some")
        }
        other => format!("the server's certificate cannot be used: {other}"),
    }
}

fn refused(alert: AlertDescription) -> String {
    use AlertDescription::{
        BadCertificate, CertificateExpired, CertificateRequired, CertificateRevoked, CertificateUnknown, DecryptError,
        NoApplicationProtocol, UnknownCA, UnsupportedCertificate,
    };
    match alert {
        CertificateRequired => {
            "the server asks for a certificate of the client: give it as Tls(certificate=..., key=...)".to_owned()
        }
        UnknownCA
        | BadCertificate
        | CertificateUnknown
        | CertificateExpired
        | CertificateRevoked
        | DecryptError
        | UnsupportedCertificate => format!(
            "the server does not accept this client's certificate ({alert:?}): give one whose authority it trusts as \
             Tls(certificate=..., key=...)"
        ),
        NoApplicationProtocol => {
            "the server speaks another protocol there: is it the HTTP door that is asked over gRPC, \
                                  or the other way round?"
                .to_owned()
        }
        other => format!("the server refuses the encrypted connection: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do_and_is_known_again() {
        let cases = [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "roots="),
            (Error::InvalidCertificate(CertificateError::Expired), "renewed"),
            (Error::InvalidCertificate(CertificateError::NotValidYet), "clocks"),
            (Error::InvalidCertificate(CertificateError::NotValidForName), "server_name="),
            (Error::AlertReceived(AlertDescription::CertificateRequired), "certificate=..., key=..."),
            (Error::AlertReceived(AlertDescription::UnknownCA), "whose authority it trusts"),
            (Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType), "http://"),
            (Error::DecryptError, "agree"),
        ];
        for (cause, hint) in cases {
            let error = explain(io::Error::new(io::ErrorKind::InvalidData, cause));
            assert!(is(&error) && error.to_string().contains(hint), "{error}");
        }
        assert!(!is(&explain(io::Error::from(io::ErrorKind::ConnectionReset))));
    }
}
