//! What has arrived on a stream and was not received yet.

use std::collections::VecDeque;
use std::time::Duration;

use alipes_protocol::codec::proto::StreamReply;
use alipes_protocol::limits::CLIENT_INBOX_BYTES;
use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::stream::StreamStatus;

/// Responses in the order of their arrival, and in the end the reason for it.
#[derive(Default)]
pub struct Inbox {
    arrived: Mutex<Arrived>,
    news: Condvar,
    drained: Notify,
}

#[derive(Default)]
struct Arrived {
    replies: VecDeque<StreamReply>,
    bytes: usize,
    status: Option<StreamStatus>,
    waiters: usize,
}

impl Inbox {
    /// Appends what came together. Who waits is woken once.
    pub fn push(&self, batch: &mut Vec<StreamReply>) {
        if batch.is_empty() {
            return;
        }
        let mut arrived = self.arrived.lock();
        arrived.bytes += batch.iter().map(weight).sum::<usize>();
        arrived.replies.extend(batch.drain(..));
        let waiters = arrived.waiters;
        drop(arrived);
        if waiters > 0 {
            self.news.notify_one();
        }
    }

    /// Waits while the inbox holds more than a client should, so that the server waits too.
    pub async fn has_room(&self) {
        while self.arrived.lock().bytes > CLIENT_INBOX_BYTES {
            self.drained.notified().await;
        }
    }

    /// The stream is over; the first reason counts.
    pub fn end(&self, status: StreamStatus) {
        let mut arrived = self.arrived.lock();
        arrived.status.get_or_insert(status);
        drop(arrived);
        self.news.notify_all();
    }

    /// Why the stream ended.
    pub fn status(&self) -> Option<StreamStatus> {
        self.arrived.lock().status.clone()
    }

    /// Up to `most` responses, after a wait for the first. Empty when the time is up; `None` at the end.
    pub fn take(&self, most: usize, limit: Duration) -> Option<Vec<StreamReply>> {
        let deadline = alipes_clock::now().checked_add(limit);
        let mut arrived = self.arrived.lock();
        while arrived.replies.is_empty() && arrived.status.is_none() {
            let left = deadline.map_or(limit, |deadline| deadline.saturating_duration_since(alipes_clock::now()));
            if left.is_zero() {
                return Some(Vec::new());
            }
            arrived.waiters += 1;
            self.news.wait_for(&mut arrived, left);
            arrived.waiters -= 1;
        }
        if arrived.replies.is_empty() {
            return None;
        }
        let count = most.min(arrived.replies.len());
        let replies: Vec<StreamReply> = arrived.replies.drain(..count).collect();
        let before = arrived.bytes;
        arrived.bytes -= replies.iter().map(weight).sum::<usize>();
        let drained = before > CLIENT_INBOX_BYTES && arrived.bytes <= CLIENT_INBOX_BYTES;
        let more = !arrived.replies.is_empty() && arrived.waiters > 0;
        drop(arrived);
        if drained {
            self.drained.notify_one();
        }
        if more {
            self.news.notify_one();
        }
        Some(replies)
    }
}

fn weight(reply: &StreamReply) -> usize {
    let outputs = reply.reply.outputs.iter().map(|output| output.data.len());
    size_of::<StreamReply>() + reply.error.len() + outputs.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(count: usize) -> Vec<StreamReply> {
        (0..count).map(|number| StreamReply { error: number.to_string(), ..Default::default() }).collect()
    }

    fn status() -> StreamStatus {
        StreamStatus { code: 0, message: String::new() }
    }

    #[test]
    fn responses_come_in_their_order_and_the_end_after_them() {
        let inbox = Inbox::default();
        inbox.push(&mut replies(3));
        inbox.end(status());
        let errors = |batch: Option<Vec<StreamReply>>| batch.map(|all| all.into_iter().map(|one| one.error).collect());
        assert_eq!(errors(inbox.take(2, Duration::ZERO)), Some(vec!["0".to_owned(), "1".to_owned()]));
        assert_eq!(errors(inbox.take(2, Duration::ZERO)), Some(vec!["2".to_owned()]));
        assert_eq!(errors(inbox.take(2, Duration::ZERO)), None);
        assert_eq!(inbox.arrived.lock().bytes, 0);
    }

    #[test]
    fn nothing_new_is_an_empty_list_and_an_arrival_ends_the_wait() {
        let inbox = Inbox::default();
        assert_eq!(inbox.take(1, Duration::ZERO), Some(Vec::new()));
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| inbox.take(8, Duration::MAX));
            inbox.push(&mut replies(1));
            assert_eq!(taker.join().unwrap().unwrap().len(), 1);
        });
    }

    #[test]
    fn the_first_reason_counts() {
        let inbox = Inbox::default();
        inbox.end(status());
        inbox.end(StreamStatus { code: 1, message: "late".to_owned() });
        assert_eq!(inbox.status(), Some(status()));
    }
}
