//! One stream of inference requests: `ModelStreamInfer`.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::codec::proto::{RequestMessage, StreamReply};
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::inbox::Inbox;
use super::outbox::{Outbox, Put};
use super::{call, connect, reader, status, writer};
use crate::error::{ClientError, Kind};
use crate::runtime;
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
            self.work.abort();
            let message = "Locally cancelled by application!".to_owned();
            self.boxes.end(StreamStatus { code: status::CANCELLED, message });
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
    // All in one task: bytes that were put leave without a turn of another, and its end is the end of everything.
    let (mut connection, mut writing) = (Box::pin(connection), Box::pin(writer::write(body, &boxes.outbox)));
    let (mut written, mut closed) = (false, false);
    let mut reading = Box::pin(reader::read(response, &boxes.inbox));
    let status = loop {
        tokio::select! {
            biased;
            () = &mut writing, if !written => written = true,
            _ = &mut connection, if !closed => closed = true,
            status = &mut reading => break status,
        }
    };
    boxes.end(status);
}
