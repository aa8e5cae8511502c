//! Why a handshake failed, in words for the log.

use std::fmt;
use std::io;
use std::time::Duration;

use alipes_tls::{IS_OTHER_THAN_VERSION_3, is_other_than_version_3};
use rustls::{AlertDescription, Error};

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
        Error::InvalidCertificate(why) if is_other_than_version_3(why) => {
            write!(f, "the client's certificate {IS_OTHER_THAN_VERSION_3}: issue it again with some")
        }
        Error::InvalidCertificate(why) => write!(f, "the client's certificate is refused: {why}"),
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired
            | AlertDescription::UnsupportedCertificate),
        ) => write!(f, "the client refuses the server's certificate ({alert:?})"),
        Error::AlertReceived(alert) => write!(f, "the client ends it ({alert:?})"),
        Error::InvalidMessage(_) => f.write_str("the client does not speak TLS"),
        other => write!(f, "{other}"),
    }
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, InvalidMessage, PeerIncompatible};

    use super::*;

    #[test]
    fn each_failure_says_who_does_not_like_what() {
        let cases = [
            (Error::NoCertificatesPresented, "shows no certificate"),
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "certificate is refused"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "refuses the server's certificate (UnknownCA)"),
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
