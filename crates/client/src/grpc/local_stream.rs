//! A stream of inference requests whose holder moves the messages itself: without a task, a thread or a queue.

use alipes_protocol::codec::proto::mark::StreamMark;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::Request;

use super::messages::Messages;
use super::status::UNKNOWN;
use super::{call, status, unary, writer};
use crate::error::{ClientError, Kind};
use crate::target::Target;

/// The head of a `ModelStreamInfer`.
///
/// # Errors
/// Headers of the target that HTTP does not know or gRPC keeps for itself.
pub fn head(target: &Target) -> Result<Request<()>, ClientError> {
    call::head(target, "ModelStreamInfer", None)
}

/// A `ModelStreamInfer` on a connection that somebody else drives. Dropping it withdraws it.
pub struct LocalStream {
    requests: SendStream<Bytes>,
    responses: Responses,
    messages: Messages,
}

enum Responses {
    /// The server has not said anything.
    Awaited(ResponseFuture),
    Open(RecvStream),
}

impl LocalStream {
    /// Opens it; the server is not waited for.
    ///
    /// # Errors
    /// A broken connection.
    pub async fn open(requests: SendRequest<Bytes>, head: Request<()>) -> Result<LocalStream, ClientError> {
        let mut requests = requests.ready().await.map_err(|error| broken(&error))?;
        let (response, body) = requests.send_request(head, false).map_err(|error| broken(&error))?;
        Ok(LocalStream { requests: body, responses: Responses::Awaited(response), messages: Messages::default() })
    }

    /// Sends a request: its prefix, then its message.
    ///
    /// # Errors
    /// The status with which the server has ended the stream, or a broken connection.
    pub async fn send(&mut self, framed: Bytes) -> Result<(), ClientError> {
        match writer::send(&mut self.requests, framed).await {
            Ok(()) => Ok(()),
            // Nothing can be sent since something else happened, which is what is read next.
            Err(error) => Err(self.reason().await.unwrap_or_else(|| broken(&error))),
        }
    }

    /// Why the server takes no further request: an error that it sent before the end, or the status of the end.
    async fn reason(&mut self) -> Option<ClientError> {
        let mut refusal = None;
        loop {
            match self.receive().await {
                Ok((_, mark)) if mark.error.is_empty() => {}
                Ok((_, mark)) => refusal = refusal.or(Some(ClientError::new(Kind::Refused(UNKNOWN), mark.error))),
                Err(end) => return refusal.or(Some(end)),
            }
        }
    }

    /// The next response, and what it says beside its tensors.
    ///
    /// # Errors
    /// The status with which the server has ended the stream, or a broken connection.
    pub async fn receive(&mut self) -> Result<(Bytes, StreamMark), ClientError> {
        loop {
            if let Some(message) = self.messages.next()? {
                let mark = StreamMark::read(message.clone()).map_err(|error| ClientError::broken(error.message))?;
                return Ok((message, mark));
            }
            let body = self.responses().await?;
            match body.data().await {
                Some(piece) => {
                    let piece = piece.map_err(|error| broken(&error))?;
                    let _ = body.flow_control().release_capacity(piece.len());
                    self.messages.push(piece);
                }
                None => return Err(ended(body).await),
            }
        }
    }

    async fn responses(&mut self) -> Result<&mut RecvStream, ClientError> {
        if let Responses::Awaited(response) = &mut self.responses {
            let (head, body) = response.await.map_err(|error| broken(&error))?.into_parts();
            if let Some(status) = status::of_headers(&head.headers) {
                return Err(unary::refused(status));
            }
            if !head.status.is_success() {
                return Err(unary::refused(status::of_http(head.status)));
            }
            self.responses = Responses::Open(body);
        }
        match &mut self.responses {
            Responses::Open(body) => Ok(body),
            Responses::Awaited(_) => unreachable!("it was opened above"),
        }
    }
}

/// Why the server has ended a stream that was not to end.
async fn ended(body: &mut RecvStream) -> ClientError {
    match body.trailers().await {
        Ok(trailers) => match status::of_headers(&trailers.unwrap_or_default()) {
            Some((0, _)) => ClientError::broken("the server ended the stream before it had answered"),
            Some(status) => unary::refused(status),
            None => ClientError::broken("the server ended the stream without a status"),
        },
        Err(error) => broken(&error),
    }
}

fn broken(error: &h2::Error) -> ClientError {
    ClientError::of_http2("the connection to the server broke", error)
}

#[cfg(test)]
mod tests {
    use super::super::abrupt_server;
    use super::*;

    #[tokio::test]
    async fn a_request_that_cannot_be_sent_fails_with_the_error_that_came_before_the_end() {
        let (requests, connection) =
            abrupt_server::connect(abrupt_server::response(&abrupt_server::failure("no memory"), true)).await;
        let driven = tokio::spawn(connection);
        let mut stream = LocalStream::open(requests, abrupt_server::head()).await.unwrap();
        let _ = driven.await.unwrap();
        let error = stream.send(Bytes::from_static(&[0; 5])).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (Kind::Refused(UNKNOWN), "no memory"));
    }
}
