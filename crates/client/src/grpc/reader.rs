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
    let mut batch = Vec::new();
    let outcome = follow(response, inbox, &mut batch).await;
    // Whatever ended the stream, it came after these: one of them may be the server's reason.
    inbox.push(&mut batch);
    match outcome {
        Ok(status) => status,
        Err(error) => StreamStatus { code: UNAVAILABLE, message: error.message },
    }
}

async fn follow(
    response: ResponseFuture,
    inbox: &Inbox,
    batch: &mut Vec<StreamReply>,
) -> Result<StreamStatus, ClientError> {
    let (head, mut body) = response.await.map_err(broken)?.into_parts();
    if let Some((code, message)) = status::of_headers(&head.headers) {
        return Ok(StreamStatus { code, message });
    }
    if !head.status.is_success() {
        let (code, message) = status::of_http(head.status);
        return Ok(StreamStatus { code, message });
    }
    let mut messages = Messages::default();
    while let Some(piece) = next(&mut body, inbox, batch).await? {
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

#[cfg(test)]
mod tests {
    use super::super::abrupt_server;
    use super::*;

    /// The error texts that arrive from a server that says this, and the status behind them.
    async fn read_from(response: Vec<u8>) -> (Vec<String>, StreamStatus) {
        let (mut requests, connection) = abrupt_server::connect(response).await;
        let (response, _body) = requests.send_request(abrupt_server::head(), false).unwrap();
        let _ = connection.await; // all frames are in before the first is looked at
        let inbox = Inbox::default();
        let status = read(response, &inbox).await;
        let replies = inbox.take(8, std::time::Duration::ZERO).unwrap_or_default();
        (replies.into_iter().map(|reply| reply.error).collect(), status)
    }

    #[tokio::test]
    async fn an_error_is_received_though_the_call_is_reset_behind_it() {
        let (errors, status) = read_from(abrupt_server::response(&abrupt_server::failure("no memory"), true)).await;
        assert_eq!((errors, status.code), (vec!["no memory".to_owned()], UNAVAILABLE), "{status:?}");
    }

    #[tokio::test]
    async fn an_error_is_received_though_the_connection_ends_behind_it() {
        let (errors, status) = read_from(abrupt_server::response(&abrupt_server::failure("no memory"), false)).await;
        assert_eq!((errors, status.code), (vec!["no memory".to_owned()], UNAVAILABLE), "{status:?}");
    }

    #[tokio::test]
    async fn an_error_is_received_though_what_follows_it_cannot_be_read() {
        let compressed = [1, 0, 0, 0, 0];
        let body = [&abrupt_server::failure("no memory")[..], &compressed].concat();
        let (errors, status) = read_from(abrupt_server::response(&body, false)).await;
        assert_eq!((errors, status.message.contains("compressed")), (vec!["no memory".to_owned()], true), "{status:?}");
    }
}
