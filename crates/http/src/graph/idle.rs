//! Connections to servers of steps that wait for their next call, of each network thread its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;

/// Most idle connections that a network thread holds to one server.
const MAX_CONNECTIONS: usize = 64;

/// Longest time that a connection is idle before it is used again: Go's clients take 90 seconds, KServe's servers close
/// after 65.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// A connection over which requests can be sent.
pub type Sender = SendRequest<Full<Bytes>>;

/// Which server: the number of the graph's client, and host and port with their scheme.
type Server = (u64, String);

thread_local! {
    static IDLE: RefCell<HashMap<Server, Vec<(Sender, Instant)>>> = RefCell::default();
}

/// A connection of this thread that is still open; none where there is none.
pub fn take(client: u64, server: &str) -> Option<Sender> {
    IDLE.with_borrow_mut(|idle| {
        let all = idle.get_mut(&(client, server.to_owned()))?;
        while let Some((sender, since)) = all.pop() {
            if !sender.is_closed() && alipes_clock::elapsed(since) < MAX_IDLE_TIME {
                return Some(sender);
            }
        }
        None
    })
}

/// Keeps a connection whose answer has been read.
pub fn put(client: u64, server: &str, sender: Sender) {
    IDLE.with_borrow_mut(|idle| {
        let all = idle.entry((client, server.to_owned())).or_default();
        all.retain(|(sender, since)| !sender.is_closed() && alipes_clock::elapsed(*since) < MAX_IDLE_TIME);
        if all.len() < MAX_CONNECTIONS {
            all.push((sender, alipes_clock::now()));
        }
    });
}
