//! Connections to a gRPC door.

use std::time::Duration;

use alipes_protocol::limits::{CLIENT_FRAME_BYTES, CLIENT_SEND_BUFFER_BYTES, CLIENT_WINDOW_BYTES};
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::address::Address;
use crate::carrier::Carrier;
use crate::connection::Driver;
use crate::{ClientError, Kind};

/// Connects; the connection has to be driven by whoever runs it.
///
/// # Errors
/// If nobody is there, or does not speak HTTP/2, within `limit`.
pub async fn connect(
    address: &Address,
    limit: Duration,
) -> Result<(SendRequest<Bytes>, Connection<TcpStream>), ClientError> {
    match timeout(limit, open(address)).await {
        Ok(connection) => connection,
        Err(_) => Err(failed(address, format!("no answer within {} s", limit.as_secs_f64()))),
    }
}

/// Connects, and no more.
///
/// # Errors
/// If nobody is there within `limit`.
pub async fn socket(address: &Address, limit: Duration, driver: Driver) -> Result<Carrier, ClientError> {
    let socket = timeout(limit, tcp(address)).await;
    let socket = socket.map_err(|_| failed(address, format!("no answer within {} s", limit.as_secs_f64())))??;
    match driver {
        Driver::Runtime => Ok(Carrier::Tcp(socket)),
        Driver::Caller => Carrier::Tcp(socket).waited().map_err(|error| failed(address, error)),
    }
}

async fn tcp(address: &Address) -> Result<TcpStream, ClientError> {
    let socket = TcpStream::connect((address.host.as_str(), address.port)).await;
    let socket = socket.map_err(|error| failed(address, error))?;
    // What is sent is complete: waiting for more would only add time.
    socket.set_nodelay(true).map_err(|error| failed(address, error))?;
    Ok(socket)
}

async fn open(address: &Address) -> Result<(SendRequest<Bytes>, Connection<TcpStream>), ClientError> {
    let socket = tcp(address).await?;
    let mut builder = Builder::new();
    builder
        .initial_window_size(CLIENT_WINDOW_BYTES)
        .initial_connection_window_size(CLIENT_WINDOW_BYTES)
        .max_frame_size(CLIENT_FRAME_BYTES)
        .max_send_buffer_size(CLIENT_SEND_BUFFER_BYTES)
        .enable_push(false);
    builder.handshake(socket).await.map_err(|error| failed(address, error))
}

fn failed(address: &Address, why: impl std::fmt::Display) -> ClientError {
    ClientError::new(Kind::Connect, format!("cannot connect to {}: {why}", address.authority()))
}
