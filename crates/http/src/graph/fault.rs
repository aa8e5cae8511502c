//! Why a call over HTTP brought no answer, in the words of Go's client, which KServe's router passes on.

use std::io;
use std::net::SocketAddr;

use alipes_graph::{Failure, Url, quoted};

/// What went wrong.
#[derive(Debug)]
pub enum CallFault {
    /// The name of the host leads nowhere.
    Lookup(io::Error),
    /// No connection.
    Connect(Option<SocketAddr>, io::Error),
    /// No encrypted connection.
    Encrypt(String),
    /// The server ended the connection before an answer.
    Closed,
    /// The connection broke before an answer.
    Broken(String),
    /// No answer in time.
    Slow,
    /// The answer ended before its end.
    CutBody,
    /// The answer is longer than is allowed.
    Large(usize),
    /// The server has no room for the answer now.
    NoRoom(String),
}

impl CallFault {
    /// Whether the request has not reached the server, so that another attempt cannot do anything twice.
    pub fn is_unsent(&self) -> bool {
        matches!(self, CallFault::Connect(..))
    }

    /// The failure of the step.
    pub fn failure(self, url: &Url) -> Failure {
        let cause = match self {
            CallFault::Lookup(error) => format!("dial tcp: lookup {}: {error}", url.host),
            CallFault::Connect(address, error) => {
                let reason = match error.kind() {
                    io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                    _ => format!("connect: {error}"),
                };
                let address =
                    address.map_or_else(|| format!("{}:{}", url.host, url.port), |address| address.to_string());
                format!("dial tcp {address}: {reason}")
            }
            CallFault::Encrypt(reason) | CallFault::Broken(reason) => reason,
            CallFault::Closed => "EOF".to_owned(),
            CallFault::Slow => "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".to_owned(),
            CallFault::CutBody => return Failure::new("unexpected EOF"),
            CallFault::Large(max_bytes) => {
                return Failure::new(format!(
                    "the answer of {} has more than the {max_bytes} bytes that are allowed: --http-max-input-size \
                     raises that",
                    url.text
                ));
            }
            CallFault::NoRoom(reason) => return Failure { status: 503, cause: reason },
        };
        Failure::new(format!("Post {}: {cause}", quoted_go(&url.text)))
    }
}

/// A text as Go quotes it in errors.
fn quoted_go(text: &str) -> String {
    // An address has no characters that JSON and Go would write differently, but for these three.
    quoted(text).replace("\\u0026", "&").replace("\\u003c", "<").replace("\\u003e", ">")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_the_words_of_go() {
        let url = Url::of("http://127.0.0.1:1/m?a=b&c=d").unwrap();
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let address = "127.0.0.1:1".parse().unwrap();
        for (fault, cause) in [
            (
                CallFault::Connect(Some(address), refused),
                "Post \"http://127.0.0.1:1/m?a=b&c=d\": dial tcp 127.0.0.1:1: connect: connection refused",
            ),
            (CallFault::Closed, "Post \"http://127.0.0.1:1/m?a=b&c=d\": EOF"),
            (CallFault::CutBody, "unexpected EOF"),
        ] {
            assert_eq!(fault.failure(&url), Failure::new(cause));
        }
    }
}
