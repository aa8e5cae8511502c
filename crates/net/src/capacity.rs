//! The most connections at a time, and the answer to one too many.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::limits;
use parking_lot::{Condvar, Mutex};
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::{Accepted, Carrier};

/// One descriptor in so many is left to everything else: models, workers, logs.
const RESERVED_SHARE: usize = 4;

/// A number of connections, and those that are open.
pub struct Capacity {
    most: usize,
    open: Mutex<Open>,
    ended: Condvar,
}

/// The open connections.
#[derive(Default)]
struct Open {
    all: usize,
    /// Those that were admitted before `late` was set.
    early: usize,
    late: bool,
}

/// The permit of one open connection, released when it is dropped.
pub struct ConnectionPermit {
    capacity: Arc<Capacity>,
    is_early: bool,
}

impl Capacity {
    /// Capacity for `most` connections; 0 takes as many as the process may have further descriptors, less a share for
    /// the rest.
    pub fn new(most: usize) -> Arc<Capacity> {
        let most = if most == 0 { free_descriptors() / RESERVED_SHARE * (RESERVED_SHARE - 1) } else { most };
        Arc::new(Capacity { most, open: Mutex::default(), ended: Condvar::new() })
    }

    /// The most connections at a time.
    pub fn most(&self) -> usize {
        self.most
    }

    /// A permit for one more connection, where there is capacity.
    pub fn acquire(self: &Arc<Self>) -> Option<ConnectionPermit> {
        self.acquire_below(self.most)
    }

    /// A permit for one in the place of another, which was asked to end and may not have done so yet.
    pub fn acquire_in_exchange(self: &Arc<Self>) -> Option<ConnectionPermit> {
        self.acquire_below(2 * self.most)
    }

    fn acquire_below(self: &Arc<Self>, most: usize) -> Option<ConnectionPermit> {
        let mut open = self.open.lock();
        if open.all >= most {
            return None;
        }
        let is_early = !open.late;
        open.all += 1;
        open.early += usize::from(is_early);
        Some(ConnectionPermit { capacity: Arc::clone(self), is_early })
    }

    /// Waits until no connection is open; false where the deadline came first.
    pub fn wait_all(&self, deadline: Instant) -> bool {
        self.wait_while(deadline, |open| open.all > 0)
    }

    /// Waits until none of the connections is open that were admitted before the first such call; false where the
    /// deadline came first.
    pub fn wait_early(&self, deadline: Instant) -> bool {
        self.open.lock().late = true;
        self.wait_while(deadline, |open| open.early > 0)
    }

    fn wait_while(&self, deadline: Instant, waits: impl Fn(&Open) -> bool) -> bool {
        let mut open = self.open.lock();
        while waits(&open) {
            if self.ended.wait_until(&mut open, deadline).timed_out() {
                return !waits(&open);
            }
        }
        true
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.capacity.open.lock();
        open.all -= 1;
        open.early -= usize::from(self.is_early);
        if open.all == 0 || open.early == 0 {
            self.capacity.ended.notify_all();
        }
    }
}

/// How many descriptors the process may have beside those that are open.
#[allow(clippy::disallowed_methods, reason = "once for each listener, before it accepts anything")]
fn free_descriptors() -> usize {
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    most.saturating_sub(open)
}

/// Answers a client that there is no capacity, and waits a moment for it to read that: to close at once would withdraw
/// the answer if the client has sent something. An encrypted connection is closed without an answer.
pub async fn reject(encrypted: bool, most: usize, mut stream: Carrier) {
    if encrypted {
        return;
    }
    let response = rejection(&format!("the server has {most} connections and takes no more, try again later"));
    let _ = tokio::time::timeout(limits::REFUSAL_TIME, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        io::Result::Ok(())
    })
    .await;
}

/// The same without a task, and so without another descriptor: writes what fits into the socket's buffer, which the
/// answer does, and lets the connection be closed.
pub fn reject_at_once(stream: &Accepted, why: &str) {
    let response = rejection(why);
    // What cannot be written to a client that has left is no loss.
    let _ = match stream {
        Accepted::Tcp(stream, _) => answer(stream, response.as_bytes(), || stream.shutdown(Shutdown::Write)),
        Accepted::Unix(stream) => answer(stream, response.as_bytes(), || stream.shutdown(Shutdown::Write)),
    };
}

fn answer<S>(mut stream: &S, response: &[u8], end: impl FnOnce() -> io::Result<()>) -> io::Result<()>
where
    for<'s> &'s S: Read + Write,
{
    stream.write_all(response)?;
    end()?;
    // A close with unread bytes would withdraw the answer. The socket never blocks: no byte is an error here.
    while stream.read(&mut [0; 4096])? > 0 {}
    Ok(())
}

/// The same on every listener: a gRPC client that is rejected in HTTP/2 connects again at once, and one that reads
/// HTTP/1 backs off and reports the server as unavailable.
fn rejection(why: &str) -> String {
    let body = format!(r#"{{"error":"{why}"}}"#);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_released_with_its_connection() {
        let capacity = Capacity::new(2);
        let first = capacity.acquire();
        let second = capacity.acquire();
        assert!(first.is_some() && second.is_some() && capacity.acquire().is_none());
        drop(first);
        assert!(capacity.acquire().is_some());
    }

    #[test]
    fn without_a_number_descriptors_are_left_for_everything_else() {
        let most = Capacity::new(0).most();
        assert!(most > 0 && most < free_descriptors());
    }
}
