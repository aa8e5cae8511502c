//! Connections to a gRPC endpoint.

use alipes_protocol::limits::{CLIENT_FRAME_BYTES, CLIENT_SEND_BUFFER_BYTES, CLIENT_WINDOW_BYTES};
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::time::timeout;

use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::socket::{self, Socket, failed};
use crate::target::Target;

/// Connects; the connection has to be driven by whoever runs it.
///
/// # Errors
/// If nobody is there, or does not speak HTTP/2, within the target's time.
pub async fn connect(target: &Target) -> Result<(SendRequest<Bytes>, Connection<Socket>), ClientError> {
    let limit = target.connect_limit;
    match timeout(limit, open(target)).await {
        Ok(connection) => connection,
        Err(_) => Err(failed(target, Kind::Connect, format!("no answer within {} s", limit.as_secs_f64()))),
    }
}

async fn open(target: &Target) -> Result<(SendRequest<Bytes>, Connection<Socket>), ClientError> {
    let socket = socket::open(target, Driver::Runtime).await?;
    let connected = handshake(socket).await;
    connected.map_err(|error| match ClientError::of_http2(format!("cannot connect to {}", target.address), &error) {
        ClientError { kind: Kind::Tls, message } => ClientError::new(Kind::Tls, message),
        other => ClientError::new(Kind::Connect, other.message),
    })
}

/// Begins HTTP/2 on a socket.
///
/// # Errors
/// If the server does not speak it.
pub async fn handshake(socket: Socket) -> Result<(SendRequest<Bytes>, Connection<Socket>), h2::Error> {
    let mut builder = Builder::new();
    builder
        .initial_window_size(CLIENT_WINDOW_BYTES)
        .initial_connection_window_size(CLIENT_WINDOW_BYTES)
        .max_frame_size(CLIENT_FRAME_BYTES)
        .max_send_buffer_size(CLIENT_SEND_BUFFER_BYTES)
        .enable_push(false);
    builder.handshake(socket).await
}
