//! Sockets that are ours before any model is loaded, so that a port in use is told at once.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use socket2::{Domain, Protocol, Socket, Type};

use crate::spec::Endpoint;

/// Connections that may wait to be accepted: room for a burst of clients that all start at once.
const BACKLOG: i32 = 1024;

/// Why a socket could not be had.
#[derive(Debug)]
pub struct BindError {
    address: String,
    cause: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cause.kind() == io::ErrorKind::AddrInUse {
            write!(f, "Socket '{}' already in use ", self.address)
        } else {
            write!(f, "cannot listen on '{}': {}", self.address, self.cause)
        }
    }
}

impl std::error::Error for BindError {}

/// A socket that is bound but does not listen yet: clients are refused rather than kept waiting while models load.
pub struct Bound {
    socket: Socket,
    address: String,
}

impl Bound {
    /// Binds an endpoint's address; none where the endpoint is switched off.
    ///
    /// # Errors
    ///
    /// The port is taken, or the address is not one of this machine.
    pub fn new(endpoint: &Endpoint) -> Result<Option<Bound>, BindError> {
        if !endpoint.enabled {
            return Ok(None);
        }
        let address = format!("{}:{}", endpoint.address, endpoint.port);
        match bind(&endpoint.address, endpoint.port) {
            Ok(socket) => Ok(Some(Bound { socket, address })),
            Err(cause) => Err(BindError { address, cause }),
        }
    }

    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// Another process listens on the port since it was bound.
    pub fn listen(self) -> Result<TcpListener, BindError> {
        match self.socket.listen(BACKLOG) {
            Ok(()) => Ok(self.socket.into()),
            Err(cause) => Err(BindError { address: self.address, cause }),
        }
    }
}

fn bind(host: &str, port: u16) -> io::Result<Socket> {
    let mut failure = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match bind_to(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn bind_to(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the last connections of the process before.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
