//! One stream of inference requests: `ModelStreamInfer`.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::codec::proto::{RequestMessage, StreamReply};
use bytes::Bytes;
use h2::SendStream;
use h2::client::{Connection, ResponseFuture};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::inbox::Inbox;
use super::outbox::{Outbox, Put};
use super::{call, connect, reader, status, writer};
use crate::error::{ClientError, Kind};
use crate::runtime;
use crate::socket::Socket;
use crate::target::Target;

/// Why a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Number of the gRPC code.
    pub code: i32,
    /// What the server, or this client, says of it.
    pub message: String,
}

/// A stream with a connection of its own. Its work is done on the process's runtime; it ends when this is dropped.
pub struct Stream {
    boxes: Arc<Boxes>,
    work: AbortHandle,
    process: u32,
}

#[derive(Default)]
struct Boxes {
    outbox: Outbox,
    inbox: Inbox,
}

impl Stream {
    /// Connects and opens the stream; waits for the connection.
    ///
    /// # Errors
    /// If nobody answers there within the target's time, or its headers cannot be sent.
    pub fn open(target: Target) -> Result<Stream, ClientError> {
        let head = call::head(&target, "ModelStreamInfer", None)?;
        let runtime = runtime::handle().map_err(|error| ClientError::new(Kind::Connect, error.to_string()))?;
        let boxes = Arc::new(Boxes::default());
        let (opened, outcome) = oneshot::channel();
        let work = runtime.spawn(run(target, head, boxes.clone(), opened)).abort_handle();
        let outcome = outcome.blocking_recv();
        outcome.unwrap_or_else(|_| Err(ClientError::broken("the client's runtime has ended")))?;
        Ok(Stream { boxes, work, process: std::process::id() })
    }

    /// Puts a request behind those that wait; [`Put::Full`] asks to come again after [`Stream::wait_for_room`].
    ///
    /// # Errors
    /// If the stream takes none any more.
    pub fn send(&self, message: &RequestMessage<'_>) -> Result<Put, ClientError> {
        self.check_process()?;
        self.boxes.outbox.put(message)
    }

    /// Waits until something has left, or the time is up.
    pub fn wait_for_room(&self, limit: Duration) {
        self.boxes.outbox.wait_for_room(limit);
    }

    /// Up to `most` responses, after a wait for the first. Empty when the time is up, `None` when the stream has ended
    /// and nothing is left.
    ///
    /// # Errors
    /// In a process that was forked from the one with the stream.
    pub fn receive(&self, most: usize, limit: Duration) -> Result<Option<Vec<StreamReply>>, ClientError> {
        self.check_process()?;
        Ok(self.boxes.inbox.take(most, limit))
    }

    /// Nothing follows what was sent.
    pub fn half_close(&self) {
        if self.check_process().is_ok() {
            self.boxes.outbox.close();
        }
    }

    /// Ends the stream at once.
    pub fn cancel(&self) {
        if self.check_process().is_ok() {
            let message = "Locally cancelled by application!".to_owned();
            self.boxes.end(StreamStatus { code: status::CANCELLED, message });
            // Behind it: the end of the work ends the boxes too, and the first reason counts.
            self.work.abort();
        }
    }

    /// Why the stream ended; `None` while it is open.
    pub fn status(&self) -> Option<StreamStatus> {
        self.check_process().ok().and_then(|()| self.boxes.inbox.status())
    }

    /// A forked process has a copy of everything but the thread that moves the bytes, and locks in an unknown state.
    fn check_process(&self) -> Result<(), ClientError> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(ClientError::broken("the stream belongs to the process that this one was forked from: open one here"))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Boxes {
    fn end(&self, status: StreamStatus) {
        self.inbox.end(status);
        self.outbox.end();
    }
}

/// Ends the boxes together with the work: nobody waits for a task that panicked, or that its runtime gave up.
struct EndOfWork(Arc<Boxes>);

impl Drop for EndOfWork {
    fn drop(&mut self) {
        let message = "the client's work on the stream has ended".to_owned();
        self.0.end(StreamStatus { code: status::UNAVAILABLE, message });
    }
}

async fn run(
    target: Target,
    head: http::Request<()>,
    boxes: Arc<Boxes>,
    opened: oneshot::Sender<Result<(), ClientError>>,
) {
    let (mut requests, connection) = match connect::connect(&target).await {
        Ok(connected) => connected,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (response, body) = match requests.send_request(head, false) {
        Ok(call) => call,
        Err(error) => return drop(opened.send(Err(ClientError::broken(error)))),
    };
    drop::<h2::client::SendRequest<Bytes>>(requests);
    let _ = opened.send(Ok(()));
    work(connection, response, body, boxes).await;
}

/// Moves messages between the boxes and the call until it ends.
async fn work(
    connection: Connection<Socket, Bytes>,
    response: ResponseFuture,
    body: SendStream<Bytes>,
    boxes: Arc<Boxes>,
) {
    let EndOfWork(boxes) = &EndOfWork(boxes);
    // All in one task: bytes that were put leave without a turn of another, and its end is the end of everything.
    let mut driving = Box::pin(drive(connection));
    let mut writing = Box::pin(writer::write(body, &boxes.outbox));
    let mut reading = Box::pin(reader::read(response, &boxes.inbox));
    let (mut written, mut closed) = (false, false);
    let status = loop {
        tokio::select! {
            biased;
            () = &mut writing, if !written => written = true,
            () = &mut driving, if !closed => closed = true,
            status = &mut reading => break status,
        }
    };
    boxes.end(status);
}

/// Moves the bytes of a connection until it ends. It is dropped then: where a write has failed, that alone tells the
/// call that waits to be read.
async fn drive(connection: Connection<Socket, Bytes>) {
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, OwnedFd};
    use std::task::Poll;

    use rustix::net::{Shutdown, shutdown};
    use tokio::net::UnixStream;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;
    use crate::target::Wire;

    /// A stream whose server has answered its head and says nothing more.
    struct Opened {
        boxes: Arc<Boxes>,
        work: JoinHandle<()>,
        /// The server's socket, beside the task that serves.
        server: OwnedFd,
    }

    async fn open() -> Opened {
        let (own, other) = UnixStream::pair().unwrap();
        let (answered, is_answered) = oneshot::channel();
        let server = other.as_fd().try_clone_to_owned().unwrap();
        tokio::spawn(serve(other, answered));
        let (mut requests, connection) = connect::handshake(Socket::Unix(own)).await.unwrap();
        let target = Target::new("localhost:1", Wire::Grpc, Vec::new(), Duration::ZERO).unwrap();
        let head = call::head(&target, "ModelStreamInfer", None).unwrap();
        let (response, body) = requests.send_request(head, false).unwrap();
        drop(requests);
        let boxes = Arc::new(Boxes::default());
        let work = tokio::spawn(work(connection, response, body, boxes.clone()));
        put(&boxes);
        is_answered.await.unwrap();
        for _ in 0..1000 {
            yield_now().await; // until everybody waits for somebody else
        }
        Opened { boxes, work, server }
    }

    async fn serve(socket: UnixStream, answered: oneshot::Sender<()>) {
        let mut connection = h2::server::handshake(socket).await.unwrap();
        let (mut request, mut respond) = connection.accept().await.unwrap().unwrap();
        let _body = respond.send_response(http::Response::new(()), false).unwrap();
        let mut answered = Some(answered);
        std::future::poll_fn(|context| {
            while let Poll::Ready(Some(piece)) = request.body_mut().poll_data(context) {
                assert!(!piece.unwrap().is_empty());
                answered.take().into_iter().for_each(|answered| answered.send(()).unwrap());
            }
            connection.poll_closed(context).map(drop)
        })
        .await;
    }

    fn put(boxes: &Boxes) {
        assert_eq!(boxes.outbox.put(&RequestMessage::default()), Ok(Put::Accepted));
    }

    #[tokio::test]
    async fn a_write_that_fails_before_the_end_is_read_ends_the_stream() {
        let Opened { boxes, work, server } = open().await;
        // Both before the runtime looks at its sockets again, so that the stream writes before it can know of the end.
        shutdown(server, Shutdown::Both).unwrap();
        put(&boxes);
        tokio::time::timeout(Duration::from_secs(30), work).await.expect("the stream waits for ever").unwrap();
        let status = boxes.inbox.status().unwrap();
        assert_eq!((status.code, status.message.contains("broke")), (status::UNAVAILABLE, true), "{status:?}");
        assert_eq!(boxes.inbox.take(1, Duration::ZERO), None);
    }

    #[tokio::test]
    async fn the_end_of_the_work_ends_the_wait_for_answers() {
        let Opened { boxes, work, .. } = open().await;
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        let status = boxes.inbox.status().unwrap();
        assert_eq!((status.code, status.message.contains("has ended")), (status::UNAVAILABLE, true), "{status:?}");
    }
}
