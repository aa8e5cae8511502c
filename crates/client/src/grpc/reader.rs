//! Takes the responses of a stream as they come.

use std::future::poll_fn;
use std::task::Poll;

use alipes_protocol::codec::proto::StreamReply;
use bytes::Bytes;
use h2::RecvStream;
use h2::client::ResponseFuture;

use super::inbox::Inbox;
use super::messages::Messages;
use super::status::{self, UNAVAILABLE};
use super::stream::StreamStatus;
use crate::error::ClientError;

/// Most responses that are handed over together: who receives begins with them while others still arrive.
const BATCH: usize = 256;

/// Runs until the server ends the stream, or it breaks; says why.
pub async fn read(response: ResponseFuture, inbox: &Inbox) -> StreamStatus {
    match follow(response, inbox).await {
        Ok(status) => status,
        Err(error) => StreamStatus { code: UNAVAILABLE, message: error.message },
    }
}

async fn follow(response: ResponseFuture, inbox: &Inbox) -> Result<StreamStatus, ClientError> {
    let (head, mut body) = response.await.map_err(broken)?.into_parts();
    if let Some((code, message)) = status::of_headers(&head.headers) {
        return Ok(StreamStatus { code, message });
    }
    if !head.status.is_success() {
        let (code, message) = status::of_http(head.status);
        return Ok(StreamStatus { code, message });
    }
    let (mut messages, mut batch) = (Messages::default(), Vec::new());
    while let Some(piece) = next(&mut body, inbox, &mut batch).await? {
        messages.push(piece);
        while let Some(message) = messages.next()? {
            batch.push(StreamReply::decode(message).map_err(|error| ClientError::broken(error.message))?);
        }
    }
    if messages.is_begun() {
        return Err(ClientError::broken("the server ended the stream within a message"));
    }
    let trailers = body.trailers().await.map_err(broken)?.unwrap_or_default();
    let cut = || ClientError::broken("the server ended the stream without a status");
    let (code, message) = status::of_headers(&trailers).ok_or_else(cut)?;
    Ok(StreamStatus { code, message })
}

/// The next piece of the body. Before it waits for one, what has been read is handed over.
async fn next(
    body: &mut RecvStream,
    inbox: &Inbox,
    batch: &mut Vec<StreamReply>,
) -> Result<Option<Bytes>, ClientError> {
    let ready = match batch.len() {
        BATCH.. => None,
        _ => {
            poll_fn(|context| match body.poll_data(context) {
                Poll::Ready(piece) => Poll::Ready(Some(piece)),
                Poll::Pending => Poll::Ready(None),
            })
            .await
        }
    };
    let piece = match ready {
        Some(piece) => piece,
        None => {
            inbox.push(batch);
            inbox.has_room().await;
            body.data().await
        }
    };
    if piece.is_none() {
        inbox.push(batch);
    }
    let Some(piece) = piece.transpose().map_err(broken)? else { return Ok(None) };
    // The window is given back at once: what is kept here is bounded by the inbox, which is waited for.
    let _ = body.flow_control().release_capacity(piece.len());
    Ok(Some(piece))
}

fn broken(error: h2::Error) -> ClientError {
    ClientError::of_http2("the connection to the server broke", &error)
}
