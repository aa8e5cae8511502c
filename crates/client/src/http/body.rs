//! Bodies of responses, received where they stay.

use alipes_protocol::limits::{CLIENT_MAX_BODY_BYTES, CLIENT_SMALL_BODY_BYTES, HTTP_MAX_HEADER_BYTES};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::head::{Head, Length};
use crate::aligned;
use crate::error::ClientError;

/// The body behind a head that was just taken out of `buffer`, which holds what came with it.
///
/// # Errors
/// If the connection breaks, or the body is longer than the limit.
pub async fn read<S: AsyncRead + Unpin>(
    socket: &mut S,
    buffer: &mut BytesMut,
    head: &Head,
) -> Result<Bytes, ClientError> {
    match head.length {
        Length::Known(length) if length > CLIENT_MAX_BODY_BYTES => Err(too_long()),
        Length::Known(length) if length <= CLIENT_SMALL_BODY_BYTES => {
            while buffer.len() < length {
                more(socket, buffer).await?;
            }
            Ok(buffer.split_to(length).freeze())
        }
        Length::Known(length) => large(socket, buffer, length, head.json_length.unwrap_or(0)).await,
        Length::Chunked => chunked(socket, buffer).await,
        Length::UntilClosed => {
            while socket.read_buf(buffer).await.map_err(broken)? > 0 {
                if buffer.len() > CLIENT_MAX_BODY_BYTES {
                    return Err(too_long());
                }
            }
            Ok(buffer.split().freeze())
        }
    }
}

/// A large body lies by itself, so that the first tensor is aligned and nothing else keeps the memory.
async fn large<S: AsyncRead + Unpin>(
    socket: &mut S,
    buffer: &mut BytesMut,
    length: usize,
    offset: usize,
) -> Result<Bytes, ClientError> {
    let mut body = aligned::room(length, offset.min(length));
    let come = buffer.len().min(length);
    body.extend_from_slice(&buffer[..come]);
    buffer.advance(come);
    while body.len() < length {
        let missing = length - body.len();
        if socket.read_buf(&mut (&mut body).limit(missing)).await.map_err(broken)? == 0 {
            return Err(ended());
        }
    }
    Ok(body.freeze())
}

async fn chunked<S: AsyncRead + Unpin>(socket: &mut S, buffer: &mut BytesMut) -> Result<Bytes, ClientError> {
    let mut body = BytesMut::new();
    loop {
        let size = loop {
            match httparse::parse_chunk_size(buffer) {
                Ok(httparse::Status::Complete((line, size))) => {
                    buffer.advance(line);
                    break usize::try_from(size).unwrap_or(usize::MAX);
                }
                Ok(httparse::Status::Partial) if buffer.len() < HTTP_MAX_HEADER_BYTES => more(socket, buffer).await?,
                _ => return Err(ClientError::broken("the answer has an unreadable chunk")),
            }
        };
        if size == 0 {
            return trailers(socket, buffer).await.map(|()| body.freeze());
        }
        if size.saturating_add(body.len()) > CLIENT_MAX_BODY_BYTES {
            return Err(too_long());
        }
        while buffer.len() < size + 2 {
            more(socket, buffer).await?;
        }
        body.extend_from_slice(&buffer[..size]);
        buffer.advance(size + 2);
    }
}

/// What follows the last chunk, up to an empty line.
async fn trailers<S: AsyncRead + Unpin>(socket: &mut S, buffer: &mut BytesMut) -> Result<(), ClientError> {
    loop {
        match buffer.windows(2).position(|pair| pair == b"\r\n") {
            Some(0) => {
                buffer.advance(2);
                return Ok(());
            }
            Some(end) => buffer.advance(end + 2),
            None if buffer.len() < HTTP_MAX_HEADER_BYTES => more(socket, buffer).await?,
            None => return Err(ClientError::broken("the answer has an endless trailer")),
        }
    }
}

/// Reads something.
///
/// # Errors
/// At the end of the connection.
pub async fn more<S: AsyncRead + Unpin>(socket: &mut S, buffer: &mut BytesMut) -> Result<(), ClientError> {
    if socket.read_buf(buffer).await.map_err(broken)? == 0 { Err(ended()) } else { Ok(()) }
}

fn broken(error: std::io::Error) -> ClientError {
    ClientError::of_socket("the connection broke", &error)
}

fn ended() -> ClientError {
    ClientError::broken("the server closed the connection before it had answered")
}

fn too_long() -> ClientError {
    ClientError::broken(format!("the answer is longer than {CLIENT_MAX_BODY_BYTES} bytes"))
}
