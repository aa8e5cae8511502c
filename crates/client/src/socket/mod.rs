//! What carries a connection's bytes: TCP or a Unix socket, plain or encrypted.

mod encrypted;
pub mod refusal;
pub mod security;
mod stream;
mod timed;

use std::io;
use std::path::Path;

use alipes_protocol::limits::CLIENT_SILENCE;
use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use encrypted::Encrypted;
pub use stream::Socket;
pub use timed::Arrival;
use timed::Timed;

use crate::address::Address;
use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::target::Target;

/// Connects, and agrees on encryption where there is to be one.
///
/// # Errors
/// If nobody is there within the target's time, or who is there is not to be trusted.
pub async fn open(target: &Target, driver: Driver) -> Result<Socket, ClientError> {
    let limit = target.connect_limit;
    match timeout(limit, begin(target, driver)).await {
        Ok(socket) => socket,
        Err(_) => Err(failed(target, Kind::Connect, format!("no answer within {} s", limit.as_secs_f64()))),
    }
}

/// The error of a connection that does not come about.
pub fn failed(target: &Target, kind: Kind, why: impl std::fmt::Display) -> ClientError {
    ClientError::new(kind, format!("cannot connect to {}: {why}", target.address))
}

async fn begin(target: &Target, driver: Driver) -> Result<Socket, ClientError> {
    let carrier = match &target.address {
        Address::Tcp { host, port } => tcp(host, *port, target.timed).await,
        Address::Unix(path) => unix(path).await,
    };
    let carrier = carrier.map_err(|error| failed(target, Kind::Connect, error))?;
    let Some(seal) = &target.seal else {
        return match driver {
            Driver::Runtime => Ok(carrier),
            Driver::Caller => carrier.waited().map_err(|error| failed(target, Kind::Connect, error)),
        };
    };
    let name: ServerName<'static> = seal.name.clone();
    let agreed = TlsConnector::from(seal.config.clone()).connect(name, carrier).await;
    agreed.map(|stream| Socket::Tls(Box::new(Encrypted::new(stream)))).map_err(|error| {
        let error = refusal::explain(error);
        let kind = if refusal::is(&error) { Kind::Tls } else { Kind::Connect };
        failed(target, kind, error)
    })
}

async fn tcp(host: &str, port: u16, timed: bool) -> io::Result<Socket> {
    let socket = TcpStream::connect((host, port)).await?;
    // What is sent is complete: waiting for more would only add time.
    socket.set_nodelay(true)?;
    notice_silence(&socket)?;
    if timed { Timed::new(socket).map(Socket::Timed) } else { Ok(Socket::Tcp(socket)) }
}

/// Has the system end a connection whose other machine has gone without a word, so that nobody waits for it for ever.
/// A server that is merely slow still acknowledges bytes. The system asks, not HTTP/2: other servers count the pings of
/// a client and end its connection.
fn notice_silence(socket: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, CLIENT_SILENCE / 2)?;
    sockopt::set_tcp_keepintvl(socket, CLIENT_SILENCE / 8)?;
    sockopt::set_tcp_keepcnt(socket, 4)?;
    sockopt::set_tcp_user_timeout(socket, CLIENT_SILENCE.as_millis() as u32)
}

async fn unix(path: &Path) -> io::Result<Socket> {
    UnixStream::connect(path).await.map(Socket::Unix)
}
