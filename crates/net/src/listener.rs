//! A listener: a listening socket, TCP or Unix, the protocol behind it and its encryption.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use super::bind::SocketFile;
use super::connection::Accepted;
use super::protocol::Protocol;
use super::tls::Tls;

/// A listening socket with all that its connections need.
pub struct Listener {
    /// The socket that accepts connections.
    pub socket: ListeningSocket,
    /// What is spoken on the connections.
    pub protocol: Arc<dyn Protocol>,
    /// How connections are encrypted; none leaves them plain.
    pub tls: Option<Arc<Tls>>,
}

/// A listening socket.
pub struct ListeningSocket {
    listener: AnyListener,
    /// Whether another process holds it too, and goes on listening once this one has ended.
    inherited: bool,
}

enum AnyListener {
    /// Over TCP.
    Tcp(TcpListener),
    /// On a path, whose file is removed with it where it was made for it.
    Unix(UnixListener, Option<SocketFile>),
}

/// A listening socket on an event loop.
pub enum AcceptingSocket {
    /// Over TCP.
    Tcp(tokio::net::TcpListener),
    /// On a path, whose file lives as long as the socket, unless it was inherited.
    Unix(tokio::net::UnixListener, Option<SocketFile>),
}

impl ListeningSocket {
    /// A socket over TCP.
    pub fn tcp(listener: TcpListener, inherited: bool) -> ListeningSocket {
        ListeningSocket { listener: AnyListener::Tcp(listener), inherited }
    }

    /// A socket on a path; without the file, it is another process's.
    pub fn unix(listener: UnixListener, file: Option<SocketFile>) -> ListeningSocket {
        ListeningSocket { inherited: file.is_none(), listener: AnyListener::Unix(listener, file) }
    }

    /// Whether another process holds it too, and goes on listening once this one has ended.
    pub fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// The address that the socket is bound to: `host:port`, or `unix:` and the path.
    pub fn address(&self) -> Option<String> {
        match &self.listener {
            AnyListener::Tcp(listener) => listener.local_addr().ok().map(|address| address.to_string()),
            AnyListener::Unix(_, Some(file)) => Some(format!("unix:{}", file.path().display())),
            AnyListener::Unix(listener, None) => {
                let address = listener.local_addr().ok()?;
                Some(format!("unix:{}", address.as_pathname()?.display()))
            }
        }
    }

    /// Registers the socket with the event loop of this thread.
    ///
    /// # Errors
    ///
    /// The system refuses to watch it.
    pub fn adopt(self) -> io::Result<AcceptingSocket> {
        match self.listener {
            AnyListener::Tcp(listener) => tokio::net::TcpListener::from_std(listener).map(AcceptingSocket::Tcp),
            AnyListener::Unix(listener, file) => {
                tokio::net::UnixListener::from_std(listener).map(|listener| AcceptingSocket::Unix(listener, file))
            }
        }
    }
}

impl AsFd for AcceptingSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            AcceptingSocket::Tcp(listener) => listener.as_fd(),
            AcceptingSocket::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl AcceptingSocket {
    /// The next connection.
    ///
    /// # Errors
    ///
    /// The client has closed it again, or descriptors have run out.
    pub async fn accept(&self) -> io::Result<Accepted> {
        match self {
            AcceptingSocket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Accepted::Tcp(stream.into_std()?, address.ip()))
            }
            AcceptingSocket::Unix(listener, _) => listener.accept().await?.0.into_std().map(Accepted::Unix),
        }
    }
}
