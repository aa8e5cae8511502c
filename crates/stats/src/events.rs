//! Events of the data plane for the server's log. One Python thread pulls them in order.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use serde::Serialize;

/// Capacity of the queue. A model that logs faster than the log is written loses lines rather than memory.
const MAX_WAITING: usize = 4096;

/// Which instance an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Name of the model.
    pub model: String,
    /// Its version.
    pub version: i64,
    /// Name of the instance.
    pub instance: String,
}

/// State of a worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It ended without a request to.
    Died,
    /// The server starts it again.
    Restarting,
    /// It takes requests again.
    Ready,
    /// It could not be started.
    Failed,
    /// It takes requests, but its readiness check did not answer.
    Unready,
}

/// An event for the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Event {
    /// A line that a model logged.
    Log {
        /// The instance.
        #[serde(flatten)]
        source: Source,
        /// 0 error, 1 warning, 2 information, 3 verbose.
        level: u8,
        /// File of the model.
        file: String,
        /// Line in it.
        line: u32,
        /// The message.
        text: String,
    },
    /// The end of a request; verbose logs only.
    Request {
        /// Name of the model.
        model: String,
        /// Its version.
        version: i64,
        /// The caller's id; empty where none was given.
        request_id: String,
        /// From its arrival to its last answer, in microseconds.
        micros: u64,
        /// Why it failed, if it did.
        failure: Option<String>,
    },
    /// A request was rejected before it reached a model; verbose logs only.
    Refused {
        /// Name of the model that was asked for; empty where it is not known.
        model: String,
        /// The version that was asked for; empty for the highest.
        version: String,
        /// The caller's id; empty where none was given, or none is known.
        request_id: String,
        /// Why.
        failure: String,
    },
    /// A request that a listener received is over; verbose logs only.
    Access {
        /// What was spoken: `http` or `grpc`.
        protocol: &'static str,
        /// The method of HTTP.
        method: String,
        /// The path without its query, or the gRPC method.
        path: String,
        /// The model that the request names; empty where it names none.
        model: String,
        /// The request's id; empty where none was given.
        request_id: String,
        /// Status of HTTP, or of gRPC.
        status: u16,
        /// From its head to the end of its response, in microseconds.
        micros: u64,
        /// The address of the client; `unix` for a Unix socket.
        peer: String,
    },
    /// A state change of a worker process.
    Worker {
        /// The instance.
        #[serde(flatten)]
        source: Source,
        /// The new state.
        state: WorkerState,
        /// The message.
        text: String,
    },
    /// A message about no model.
    Notice {
        /// 0 error, 1 warning, 2 information, 3 verbose.
        level: u8,
        /// The message.
        text: String,
    },
    /// Lines that were dropped because the queue was full.
    Lost {
        /// Their number.
        lines: u64,
    },
}

/// Bounded queue of events for the log.
#[derive(Default)]
pub struct EventQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    lost: u64,
    closed: bool,
}

impl EventQueue {
    /// Adds an event; a full queue counts lines instead of keeping them.
    pub fn push(&self, event: Event) {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return;
        }
        let is_line = !matches!(event, Event::Worker { .. } | Event::Lost { .. });
        if is_line && waiting.events.len() >= MAX_WAITING {
            waiting.lost += 1;
            return;
        }
        waiting.events.push_back(event);
        drop(waiting);
        self.changed.notify_one();
    }

    /// The next event; none when the deadline passes, or when the queue is closed and empty.
    pub fn next(&self, deadline: Instant) -> Option<Event> {
        let mut waiting = self.waiting.lock();
        while waiting.events.is_empty() && !waiting.closed {
            if self.changed.wait_until(&mut waiting, deadline).timed_out() {
                break;
            }
        }
        match std::mem::take(&mut waiting.lost) {
            0 => waiting.events.pop_front(),
            lines => Some(Event::Lost { lines }),
        }
    }

    /// Accepts no more events; queued events can still be pulled.
    pub fn close(&self) {
        self.waiting.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Event {
        let source = Source { model: "m".into(), version: 1, instance: "m_0_0".into() };
        Event::Log { source, level: 2, file: "model.py".into(), line: 3, text: text.into() }
    }

    #[test]
    fn events_arrive_in_order_and_lost_ones_are_counted() {
        let queue = EventQueue::default();
        (0..=MAX_WAITING).for_each(|number| queue.push(line(&number.to_string())));
        assert_eq!(queue.next(alipes_clock::now()), Some(Event::Lost { lines: 1 }));
        assert_eq!(queue.next(alipes_clock::now()), Some(line("0")));
        assert_eq!(queue.next(alipes_clock::now()), Some(line("1")));
    }

    #[test]
    fn a_closed_queue_gives_what_waits_and_then_nothing() {
        let queue = EventQueue::default();
        queue.push(line("last"));
        queue.close();
        queue.push(line("too late"));
        assert_eq!(queue.next(alipes_clock::now()), Some(line("last")));
        assert_eq!(queue.next(alipes_clock::now() + std::time::Duration::from_secs(3600)), None);
    }

    #[test]
    fn an_event_is_one_flat_document() {
        let document = serde_json::to_value(line("hello")).unwrap();
        let expected = serde_json::json!({"kind": "log", "model": "m", "version": 1, "instance": "m_0_0", "level": 2,
            "file": "model.py", "line": 3, "text": "hello"});
        assert_eq!(document, expected);
    }
}
