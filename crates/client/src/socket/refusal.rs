//! Why there is no encrypted connection, in words that say what to do.
//!
//! The library's errors pass through HTTP/2, which keeps of an error its kind and its text alone: a kind that sockets
//! never have marks them.

use std::io;

use alipes_tls::{CertificateWords, certificate_fault};
use rustls::{AlertDescription, Error};

const MARK: io::ErrorKind = io::ErrorKind::PermissionDenied;

/// What is said of a server's certificate. The command line has its own options in the place of `Tls(...)`.
const SERVERS: CertificateWords = CertificateWords {
    whose: "the server's certificate",
    judge: "this client",
    trust: "give the authority's certificate as Tls(roots=...)",
    authority: "give this very certificate as Tls(roots=...)",
    name: "ask for one that it bears, or say which it bears as Tls(server_name=...)",
    usage: "serverAuth",
};

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
        Error::InvalidCertificate(why) => certificate_fault(why, &SERVERS),
        Error::AlertReceived(alert) => refused(*alert),
        Error::InvalidMessage(_) => "what answers there is not encrypted: ask it with http:// or grpc://".to_owned(),
        other => format!("client and server do not agree on encryption: {other}"),
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
            "the server speaks another protocol there: is its port of HTTP asked over gRPC, or the other way round?"
                .to_owned()
        }
        other => format!("the server refuses the encrypted connection: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use rustls::CertificateError;

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
