//! Connections to servers of steps that wait for their next call, of each network thread its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Instant;

use alipes_protocol::limits::{STEP_IDLE_TIME, STEP_MAX_IDLE_CONNECTIONS};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;

/// A connection that can be asked.
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
            if !sender.is_closed() && alipes_clock::elapsed(since) < STEP_IDLE_TIME {
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
        all.retain(|(sender, since)| !sender.is_closed() && alipes_clock::elapsed(*since) < STEP_IDLE_TIME);
        if all.len() < STEP_MAX_IDLE_CONNECTIONS {
            all.push((sender, alipes_clock::now()));
        }
    });
}
