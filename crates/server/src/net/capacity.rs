//! How many connections there may be, and what one too many is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use alipes_protocol::limits;
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::Carrier;

/// Descriptors that are left to everything else, one in so many: models, workers, logs.
const KEPT_SHARE: usize = 4;

/// A number of places.
pub struct Capacity {
    most: usize,
    taken: AtomicUsize,
}

/// One place, free again when it is dropped.
pub struct Place(Arc<Capacity>);

impl Capacity {
    /// So many places; 0 takes as many as the process may have descriptors, less a share for everything else.
    pub fn new(most: usize) -> Arc<Capacity> {
        let most = if most == 0 { descriptors() / KEPT_SHARE * (KEPT_SHARE - 1) } else { most };
        Arc::new(Capacity { most, taken: AtomicUsize::new(0) })
    }

    /// How many there are.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes a place, if one is free.
    pub fn take(self: &Arc<Self>) -> Option<Place> {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(self));
        (before < self.most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

fn descriptors() -> usize {
    getrlimit(Resource::Nofile).current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}

/// Tells a client that there is no place for it, and waits a moment for it to read that: to close at once would take
/// the answer back if the client has sent something. Where connections are encrypted, it is closed without a word.
pub async fn turn_away(encrypted: bool, most: usize, mut stream: Carrier) {
    if encrypted {
        return;
    }
    let farewell = farewell(most);
    let _ = tokio::time::timeout(limits::REFUSAL_TIME, async {
        stream.write_all(farewell.as_bytes()).await?;
        stream.shutdown().await?;
        let mut unread = [0; 4096];
        while stream.read(&mut unread).await? > 0 {}
        std::io::Result::Ok(())
    })
    .await;
}

/// The same for every door: a client of gRPC that is told so in HTTP/2 connects again at once, and one that meets
/// HTTP/1 waits longer each time, and tells its caller that the server is unavailable.
fn farewell(most: usize) -> String {
    let body = format!(r#"{{"error":"the server has {most} connections and takes no more, try again later"}}"#);
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
    fn a_place_is_free_again_when_it_is_left() {
        let capacity = Capacity::new(2);
        let first = capacity.take();
        let second = capacity.take();
        assert!(first.is_some() && second.is_some() && capacity.take().is_none());
        drop(first);
        assert!(capacity.take().is_some());
    }

    #[test]
    fn without_a_number_descriptors_are_left_for_everything_else() {
        let most = Capacity::new(0).most();
        assert!(most > 0 && most < descriptors());
    }
}
