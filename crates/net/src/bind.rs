//! Binds sockets before any model is loaded, so that an address in use is reported at once.

#![allow(clippy::disallowed_methods, reason = "sockets are bound before a request comes")]

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use alipes_spec::Endpoint;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::listener::ListeningSocket;

/// Connections that may wait to be accepted: room for a burst of clients that all start at once.
const BACKLOG: i32 = 1024;

/// Prefix of an address that is the path of a Unix socket.
const UNIX: &str = "unix:";

/// Why a socket could not be bound.
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
pub struct BoundSocket {
    socket: Socket,
    address: String,
    file: Option<SocketFile>,
    inherited: bool,
}

impl BoundSocket {
    /// A listening socket that another process made, and goes on to hold.
    ///
    /// # Errors
    ///
    /// It is no stream socket that can be listened on.
    pub fn inherited(socket: OwnedFd) -> Result<BoundSocket, BindError> {
        let socket = Socket::from(socket);
        let address = "an inherited socket".to_owned();
        // Keep-alive changes nothing of a Unix socket.
        match socket.set_keepalive(true).and_then(|()| socket.set_nonblocking(true)) {
            Ok(()) => Ok(BoundSocket { socket, address, file: None, inherited: true }),
            Err(cause) => Err(BindError { address, cause }),
        }
    }

    /// Binds an endpoint's address; none where the endpoint is switched off.
    ///
    /// # Errors
    ///
    /// The port or path is taken, or the address is not one of this machine.
    pub fn new(endpoint: &Endpoint) -> Result<Option<BoundSocket>, BindError> {
        if !endpoint.enabled {
            return Ok(None);
        }
        let (address, bound) = match endpoint.address.strip_prefix(UNIX) {
            Some(path) => (endpoint.address.clone(), bind_path(Path::new(path))),
            None => (format!("{}:{}", endpoint.address, endpoint.port), bind(endpoint).map(|socket| (socket, None))),
        };
        match bound {
            Ok((socket, file)) => Ok(Some(BoundSocket { socket, address, file, inherited: false })),
            Err(cause) => Err(BindError { address, cause }),
        }
    }

    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// Another process listens on the port since it was bound.
    pub fn listen(self) -> Result<ListeningSocket, BindError> {
        let is_path = self.socket.local_addr().is_ok_and(|address| address.as_socket().is_none());
        match self.socket.listen(BACKLOG) {
            Ok(()) if is_path => Ok(ListeningSocket::unix(self.socket.into(), self.file)),
            Ok(()) => Ok(ListeningSocket::tcp(self.socket.into(), self.inherited)),
            Err(cause) => Err(BindError { address: self.address, cause }),
        }
    }
}

/// The file that clients of a Unix socket open; removed when the server goes, unless another one took its place.
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn bind(endpoint: &Endpoint) -> io::Result<Socket> {
    let mut failure = io::Error::new(io::ErrorKind::AddrNotAvailable, "the name has no address");
    for address in (endpoint.address.as_str(), endpoint.port).to_socket_addrs()? {
        match bind_to(address, endpoint.reuse_port) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn bind_to(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the last connections of the process before.
    socket.set_reuse_address(true)?;
    if reuse_port {
        socket.set_reuse_port(true)?;
    }
    // Accepted sockets inherit it: a client whose machine is gone is noticed after two hours, at no cost to requests.
    socket.set_keepalive(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn bind_path(path: &Path) -> io::Result<(Socket, Option<SocketFile>)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    let address = SockAddr::unix(path)?;
    if let Err(error) = socket.bind(&address) {
        if error.kind() != io::ErrorKind::AddrInUse || !is_stale(path) {
            return Err(error);
        }
        std::fs::remove_file(path)?;
        socket.bind(&address)?;
    }
    let inode = std::fs::symlink_metadata(path)?.ino();
    Ok((socket, Some(SocketFile { path: path.to_owned(), inode })))
}

/// Whether a path is a socket that a killed process left behind: connections to it are refused.
fn is_stale(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(address: String) -> Endpoint {
        Endpoint { enabled: true, address, port: 0, reuse_port: false, tls: None }
    }

    fn fresh_path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("alipes-{name}-{}.sock", std::process::id()))
    }

    #[test]
    fn the_file_of_a_socket_is_removed_with_it_and_a_stale_one_is_replaced() {
        let path = fresh_path("left");
        let address = endpoint(format!("unix:{}", path.display()));
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listener = BoundSocket::new(&address).unwrap().unwrap().listen().unwrap();
        let error = BoundSocket::new(&address).err().unwrap();
        assert_eq!(error.to_string(), format!("Socket 'unix:{}' already in use ", path.display()));
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let path = fresh_path("file");
        std::fs::write(&path, "precious").unwrap();
        assert!(BoundSocket::new(&endpoint(format!("unix:{}", path.display()))).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_inherited_socket_has_its_address_and_leaves_its_file() {
        let path = fresh_path("inherited");
        let held = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let socket = BoundSocket::inherited(held.try_clone().unwrap().into()).unwrap().listen().unwrap();
        assert!(socket.is_inherited());
        assert_eq!(socket.address().unwrap(), format!("unix:{}", path.display()));
        drop(socket);
        assert!(UnixStream::connect(&path).is_ok());
        std::fs::remove_file(&path).unwrap();
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = BoundSocket::inherited(held.try_clone().unwrap().into()).unwrap().listen().unwrap();
        assert_eq!(socket.address().unwrap(), held.local_addr().unwrap().to_string());
        assert!(socket.is_inherited());
    }

    #[test]
    fn a_port_is_shared_only_by_those_who_all_say_so() {
        let first = Endpoint { reuse_port: true, ..endpoint("127.0.0.1".to_owned()) };
        let listener = BoundSocket::new(&first).unwrap().unwrap().listen().unwrap();
        let port = listener.address().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        assert!(BoundSocket::new(&Endpoint { port, ..first.clone() }).is_ok());
        assert!(BoundSocket::new(&Endpoint { port, ..endpoint("127.0.0.1".to_owned()) }).is_err());
    }
}
