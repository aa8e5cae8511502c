//! The most connections at a time, and the answer to one too many.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Instant;

use alipes_protocol::limits;
use parking_lot::{Condvar, Mutex};
use rustix::process::{Resource, getrlimit};

use super::connection::{Accepted, Carrier, end_with_answer};

/// One descriptor in so many is left to everything else: models, workers, logs.
const RESERVED_SHARE: usize = 4;

/// A number of connections, and those that are open.
pub struct Capacity {
    /// What descriptors allow, where the number follows from them and from memory.
    descriptors: Option<usize>,
    open: Mutex<Open>,
    ended: Condvar,
}

/// The open connections.
#[derive(Default)]
struct Open {
    most: usize,
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
    /// Capacity for `most` connections.
    pub fn of(most: usize) -> Arc<Capacity> {
        Capacity::new(None, most)
    }

    /// Capacity for as many connections as fit into `memory_bytes`, and as the process may have further descriptors,
    /// less a share for the rest.
    pub fn derived(memory_bytes: u64) -> Arc<Capacity> {
        let descriptors = free_descriptors() / RESERVED_SHARE * (RESERVED_SHARE - 1);
        Capacity::new(Some(descriptors), that_fit(descriptors, memory_bytes))
    }

    fn new(descriptors: Option<usize>, most: usize) -> Arc<Capacity> {
        let open = Mutex::new(Open { most, ..Open::default() });
        Arc::new(Capacity { descriptors, open, ended: Condvar::new() })
    }

    /// Has a derived number follow from another amount of memory. Connections that are open stay.
    pub fn limit_memory(&self, memory_bytes: u64) {
        if let Some(descriptors) = self.descriptors {
            self.open.lock().most = that_fit(descriptors, memory_bytes);
        }
    }

    /// The most connections at a time.
    pub fn most(&self) -> usize {
        self.open.lock().most
    }

    /// A permit for one more connection, where there is capacity.
    pub fn acquire(self: &Arc<Self>) -> Option<ConnectionPermit> {
        self.acquire_of(|most| most)
    }

    /// A permit for one in the place of another, which was asked to end and may not have done so yet.
    pub fn acquire_in_exchange(self: &Arc<Self>) -> Option<ConnectionPermit> {
        self.acquire_of(|most| 2 * most)
    }

    fn acquire_of(self: &Arc<Self>, most: impl Fn(usize) -> usize) -> Option<ConnectionPermit> {
        let mut open = self.open.lock();
        if open.all >= most(open.most) {
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

/// How many connections there may be, of those that descriptors allow; one at least.
fn that_fit(descriptors: usize, memory_bytes: u64) -> usize {
    usize::try_from(memory_bytes / limits::CONNECTION_BYTES).unwrap_or(usize::MAX).clamp(1, descriptors.max(1))
}

/// How many descriptors the process may have beside those that are open.
#[allow(clippy::disallowed_methods, reason = "once for each listener, before it accepts anything")]
fn free_descriptors() -> usize {
    let most = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    most.saturating_sub(open)
}

/// Answers a client that there is no capacity. An encrypted connection is closed without an answer.
pub async fn reject(encrypted: bool, most: usize, stream: Carrier) {
    if encrypted {
        return;
    }
    let response = rejection(&format!("the server has {most} connections and takes no more, try again later"));
    end_with_answer(stream, response.as_bytes()).await;
}

/// Answers a client with the reason of its rejection, without a task and so without another descriptor: writes what
/// fits into the socket's buffer, which the answer does, and lets the connection be closed.
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

/// The answer to a rejected client, in HTTP/1 on every listener: a gRPC client that is rejected in HTTP/2 connects
/// again at once, and one that reads HTTP/1 backs off and reports the server as unavailable.
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
        let capacity = Capacity::of(2);
        let first = capacity.acquire();
        let second = capacity.acquire();
        assert!(first.is_some() && second.is_some() && capacity.acquire().is_none());
        drop(first);
        assert!(capacity.acquire().is_some());
    }

    #[test]
    fn without_a_number_descriptors_are_left_for_everything_else() {
        let most = Capacity::derived(u64::MAX).most();
        assert!(most > 0 && most < free_descriptors());
    }

    #[test]
    fn a_number_that_is_derived_follows_memory_and_another_does_not() {
        let (derived, given) = (Capacity::derived(3 * limits::CONNECTION_BYTES), Capacity::of(7));
        assert_eq!(derived.most(), 3);
        let open = [derived.acquire(), derived.acquire()];
        for capacity in [&derived, &given] {
            capacity.limit_memory(limits::CONNECTION_BYTES);
        }
        assert!(derived.acquire().is_none());
        drop(open);
        assert!(derived.acquire().is_some());
        assert_eq!((derived.most(), given.most()), (1, 7));
        derived.limit_memory(0);
        assert_eq!(derived.most(), 1);
    }
}
