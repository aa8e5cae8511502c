//! Why a handshake failed, in words for the log.

use std::fmt;
use std::io;
use std::time::Duration;

use alipes_tls::{CertificateWords, certificate_fault};
use rustls::{AlertDescription, Error};

/// What is said of a client's certificate.
const CLIENTS: CertificateWords = CertificateWords {
    whose: "the client's certificate",
    judge: "this listener",
    trust: "add its authority to the listener's root certificates, or issue it by one of theirs",
    authority: "issue one for the client by that authority",
    name: "issue it again",
    usage: "clientAuth",
};

/// Why there is no encrypted connection.
#[derive(Debug)]
pub enum Failure {
    /// The client left before it had begun a handshake, as port checks do: nothing to tell.
    NotBegun,
    /// The handshake did not end in this time.
    Late(Duration),
    /// It failed, or the client left in the middle of it.
    Failed(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotBegun => f.write_str("the client left before it"),
            Failure::Late(time) => {
                write!(f, "it took longer than {} s, see --header-timeout-secs", time.as_secs_f64())
            }
            Failure::Failed(error) => match error.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
                Some(cause) => write_cause(f, cause),
                None if error.kind() == io::ErrorKind::UnexpectedEof => {
                    f.write_str("the client left in the middle of it")
                }
                None => write!(f, "{error}"),
            },
        }
    }
}

fn write_cause(f: &mut fmt::Formatter<'_>, cause: &Error) -> fmt::Result {
    match cause {
        Error::NoCertificatesPresented => f.write_str("the client shows no certificate"),
        Error::InvalidCertificate(why) => f.write_str(&certificate_fault(why, &CLIENTS)),
        Error::AlertReceived(alert) => match mend_of(*alert) {
            Some(mend) => write!(f, "the client refuses the server's certificate ({alert:?}): {mend}"),
            None => write!(f, "the client ends it ({alert:?})"),
        },
        Error::InvalidMessage(_) => f.write_str("the client does not speak TLS"),
        other => write!(f, "{other}"),
    }
}

/// What to do where a client says that it refuses the server's certificate; none for what says nothing of it.
fn mend_of(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::UnknownCA => "have it trust the authority that issued it",
        AlertDescription::CertificateExpired => "renew it, or set the client's clock",
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "have it ask for a name that the certificate bears, and trust the authority that issued it"
        }
        AlertDescription::UnsupportedCertificate => "issue it again for servers (extendedKeyUsage=serverAuth)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, InvalidMessage, PeerIncompatible};

    use super::*;

    #[test]
    fn each_failure_says_who_does_not_like_what() {
        let cases = [
            (Error::NoCertificatesPresented, "shows no certificate"),
            (
                Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "issued by nobody that this listener trusts: add",
            ),
            (Error::AlertReceived(AlertDescription::UnknownCA), "(UnknownCA): have it trust the authority"),
            (Error::AlertReceived(AlertDescription::UserCanceled), "the client ends it"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "does not speak TLS"),
            (Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon), "NoCipherSuitesInCommon"),
        ];
        for (cause, words) in cases {
            let failure = Failure::Failed(io::Error::new(io::ErrorKind::InvalidData, cause));
            assert!(failure.to_string().contains(words), "{failure}");
        }
        let left = Failure::Failed(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(left.to_string(), "the client left in the middle of it");
    }
}
