//! A socket that listens: TCP or Unix.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::bind::SocketFile;
use super::connection::Accepted;

/// A listening socket.
pub enum Listener {
    /// Over TCP.
    Tcp(TcpListener),
    /// On a path.
    Unix(UnixListener, SocketFile),
}

/// The same on an event loop.
pub enum Accepting {
    /// Over TCP.
    Tcp(tokio::net::TcpListener),
    /// On a path, whose file is kept as long.
    Unix(tokio::net::UnixListener, SocketFile),
}

impl Listener {
    /// Where it really listens: `host:port`, or `unix:` and the path.
    pub fn address(&self) -> Option<String> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok().map(|address| address.to_string()),
            Listener::Unix(_, file) => Some(format!("unix:{}", file.path().display())),
        }
    }

    /// The listener on the event loop of this thread.
    ///
    /// # Errors
    ///
    /// The system refuses to watch it.
    pub fn adopt(self) -> io::Result<Accepting> {
        match self {
            Listener::Tcp(listener) => tokio::net::TcpListener::from_std(listener).map(Accepting::Tcp),
            Listener::Unix(listener, file) => {
                tokio::net::UnixListener::from_std(listener).map(|listener| Accepting::Unix(listener, file))
            }
        }
    }
}

impl Accepting {
    /// The next connection.
    ///
    /// # Errors
    ///
    /// The client has gone again, or descriptors have run out.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Accepting::Tcp(listener) => listener.accept().await?.0.into_std().map(Accepted::Tcp),
            Accepting::Unix(listener, _) => listener.accept().await?.0.into_std().map(Accepted::Unix),
        }
    }
}
