//! Connections to a gRPC endpoint.

use alipes_protocol::limits::{
    CLIENT_FRAME_BYTES, CLIENT_SEND_BUFFER_BYTES, CLIENT_WINDOW_BYTES, CLIENT_WITHDRAWN_CALLS,
};
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use tokio::time::timeout;

use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::socket::{self, Socket, failed};
use crate::target::Target;

/// Connects; the caller has to drive the connection.
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
        .max_concurrent_reset_streams(CLIENT_WITHDRAWN_CALLS)
        // The library counts the answers to calls that were withdrawn over a connection's whole life, and breaks it,
        // with all its calls, at a thousand of them.
        .max_local_error_reset_streams(None)
        .enable_push(false);
    builder.handshake(socket).await
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::task::Poll;

    use http::Request;
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;

    use super::*;

    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const END: u8 = 5;

    /// A frame without payload, or with the status 200.
    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, flags], &stream.to_be_bytes()[..], payload].concat()
    }

    #[tokio::test]
    async fn late_answers_to_withdrawn_calls_leave_the_connection_to_others() {
        // More than are remembered, and than the library takes by default on top of them.
        const WITHDRAWN: u32 = CLIENT_WITHDRAWN_CALLS as u32 + 2000;
        let (own, server) = UnixStream::pair().unwrap();
        let (mut unread, mut server) = server.into_split();
        let reading = tokio::spawn(async move { tokio::io::copy(&mut unread, &mut tokio::io::sink()).await });
        server.write_all(&[frame(SETTINGS, 0, 0, &[]), frame(SETTINGS, 1, 0, &[])].concat()).await.unwrap();
        let (mut requests, mut connection) = handshake(Socket::Unix(own)).await.unwrap();
        let call = || Request::builder().uri("http://localhost/").body(()).unwrap();
        // The library takes further calls only once the connection has moved.
        for _ in 0..WITHDRAWN {
            drop(requests.send_request(call(), true).unwrap());
            poll_fn(|cx| {
                assert!(Pin::new(&mut connection).poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        let driving = tokio::spawn(connection);
        let (answer, _) = requests.send_request(call(), true).unwrap();
        for stream in (1..2 * WITHDRAWN + 2).step_by(2) {
            server.write_all(&frame(HEADERS, END, stream, &[0x88])).await.unwrap();
        }
        assert_eq!(answer.await.unwrap().status(), 200);
        driving.abort();
        reading.abort();
    }
}
