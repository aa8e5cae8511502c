//! Why a call has no answer, in terms that say whether it may be repeated.

use std::fmt;
use std::io;

use crate::socket::refusal;

/// What failed: who was never reached can be asked again without a doubt, who may have begun cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No connection came about: nothing was sent.
    Connect,
    /// Client and server do not agree on an encrypted connection; they will not the next time either.
    Tls,
    /// The connection broke, or what came over it makes no sense; the server may have worked.
    Broken,
    /// The caller's time was up.
    Timeout,
    /// The server answered with an error: number of the gRPC code.
    Refused(i32),
}

/// A call without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    /// What failed.
    pub kind: Kind,
    /// For people.
    pub message: String,
}

impl ClientError {
    /// An error of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> ClientError {
        ClientError { kind, message: message.into() }
    }

    /// The connection broke.
    pub fn broken(message: impl fmt::Display) -> ClientError {
        ClientError::new(Kind::Broken, message.to_string())
    }

    /// What the socket of an open connection says.
    pub fn of_io(error: &io::Error) -> ClientError {
        let kind = if refusal::is(error) { Kind::Tls } else { Kind::Broken };
        ClientError::new(kind, error.to_string())
    }

    /// What the socket of an open connection says, behind `doing`: the words of the code that used the socket.
    pub fn of_socket(doing: impl fmt::Display, error: &io::Error) -> ClientError {
        ClientError::new(ClientError::of_io(error).kind, format!("{doing}: {error}"))
    }

    /// What HTTP/2, or the socket below it, says of an open connection, behind `doing`.
    pub fn of_http2(doing: impl fmt::Display, error: &h2::Error) -> ClientError {
        match error.get_io() {
            Some(error) => ClientError::of_socket(doing, error),
            None => ClientError::broken(format!("{doing}: {error}")),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClientError {}
