//! What waits to be sent on a stream: messages of several threads, as the bytes they leave in.

use std::time::Duration;

use alipes_protocol::codec::proto::RequestMessage;
use alipes_protocol::limits::{CLIENT_OUTBOX_BYTES, GRPC_MAX_MESSAGE_BYTES};
use bytes::{BufMut, Bytes, BytesMut};
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::messages::PREFIX_BYTES;
use crate::error::{ClientError, Kind};

/// Messages are written straight into one buffer, so that many leave in one frame.
#[derive(Default)]
pub struct Outbox {
    waiting: Mutex<Waiting>,
    room: Condvar,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    bytes: BytesMut,
    /// Nothing follows.
    closed: bool,
    /// Nobody sends any more.
    ended: bool,
    /// Threads that wait for room.
    waiters: usize,
}

/// What a sender found.
#[derive(Debug, PartialEq, Eq)]
pub enum Put {
    /// The message is on its way.
    Accepted,
    /// There is no room now.
    Full,
}

impl Outbox {
    /// Appends a message, if there is room; a message of any size fits where nothing waits.
    ///
    /// # Errors
    /// If the stream takes none any more, or the message is too long for gRPC.
    pub fn put(&self, message: &RequestMessage<'_>) -> Result<Put, ClientError> {
        let length = message.encoded_len();
        if length > GRPC_MAX_MESSAGE_BYTES {
            let text =
                format!("the request has {length} bytes, more than the {GRPC_MAX_MESSAGE_BYTES} of a gRPC message");
            return Err(ClientError::new(Kind::Refused(3), text));
        }
        let mut waiting = self.waiting.lock();
        if waiting.ended || waiting.closed {
            // What the caller did itself explains more than what came of it.
            let why = if waiting.closed { "the stream was half-closed" } else { "the stream has ended" };
            return Err(ClientError::broken(why));
        }
        if !waiting.bytes.is_empty() && waiting.bytes.len() + length > CLIENT_OUTBOX_BYTES {
            return Ok(Put::Full);
        }
        let first = waiting.bytes.is_empty();
        waiting.bytes.reserve(PREFIX_BYTES + length);
        waiting.bytes.put_u8(0);
        waiting.bytes.put_u32(length as u32);
        message.write(&mut waiting.bytes);
        drop(waiting);
        if first {
            self.wake.notify_one();
        }
        Ok(Put::Accepted)
    }

    /// Waits until something was taken out, or the time is up.
    pub fn wait_for_room(&self, limit: Duration) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.is_empty() || waiting.ended {
            return;
        }
        waiting.waiters += 1;
        self.room.wait_for(&mut waiting, limit);
        waiting.waiters -= 1;
    }

    /// Nothing follows what was put.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
        self.wake.notify_one();
    }

    /// Ends the outbox, and wakes the senders that wait for room.
    pub fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ended = true;
        waiting.bytes = BytesMut::new();
        drop(waiting);
        self.room.notify_all();
    }

    /// All that waits, as soon as there is something; `None` at the end.
    pub async fn take(&self) -> Option<Bytes> {
        loop {
            if let Some(outcome) = self.try_take() {
                return outcome;
            }
            self.wake.notified().await;
        }
    }

    fn try_take(&self) -> Option<Option<Bytes>> {
        let mut waiting = self.waiting.lock();
        if waiting.bytes.is_empty() {
            return waiting.closed.then_some(None);
        }
        let bytes = waiting.bytes.split().freeze();
        let waiters = waiting.waiters;
        drop(waiting);
        if waiters > 0 {
            self.room.notify_all();
        }
        Some(Some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::codec::proto::MessageInput;

    use super::*;

    fn put(outbox: &Outbox, size: usize) -> Result<Put, ClientError> {
        let data = vec![0; size];
        let shape = [size as i64];
        let inputs = [MessageInput { name: "X", datatype: "UINT8", shape: &shape, parameters: &[], data: Some(&data) }];
        outbox.put(&RequestMessage { inputs: &inputs, ..Default::default() })
    }

    #[test]
    fn one_large_message_or_small_ones_up_to_the_limit_fit() {
        let outbox = Outbox::default();
        assert_eq!(put(&outbox, CLIENT_OUTBOX_BYTES * 2), Ok(Put::Accepted));
        assert_eq!(put(&outbox, 1), Ok(Put::Full));
        assert!(outbox.try_take().unwrap().unwrap().len() > CLIENT_OUTBOX_BYTES * 2);
        assert_eq!((put(&outbox, 1), put(&outbox, 1)), (Ok(Put::Accepted), Ok(Put::Accepted)));
    }

    #[test]
    fn what_was_put_leaves_before_the_end() {
        let outbox = Outbox::default();
        put(&outbox, 1).unwrap();
        outbox.close();
        assert!(put(&outbox, 1).unwrap_err().message.contains("half-closed"));
        assert!(matches!(outbox.try_take(), Some(Some(_))));
        assert_eq!(outbox.try_take(), Some(None));
        outbox.end();
        assert!(put(&outbox, 1).unwrap_err().message.contains("half-closed"));
    }

    #[test]
    fn the_end_wakes_who_waits_for_room() {
        let outbox = Outbox::default();
        put(&outbox, 1).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| outbox.wait_for_room(Duration::from_secs(600)));
            outbox.end();
        });
        assert!(put(&outbox, 1).unwrap_err().message.contains("ended"));
    }
}
