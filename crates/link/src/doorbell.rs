//! How a worker rings for its server.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::abort;

use rustix::io::{Errno, fcntl_dupfd_cloexec, write};

/// Lowest number of the descriptor. Files that a model opens get the lowest free numbers, so that none gets this one
/// after code of the model has closed descriptors that it did not open, and is written to in its place.
const LOWEST: i32 = 768;

/// The worker's side of the eventfd that its server listens to.
#[derive(Debug)]
pub(crate) struct Doorbell(OwnedFd);

impl Doorbell {
    /// Moves the descriptor out of the way. It stays where it is if the process may not have one that high.
    pub fn new(eventfd: OwnedFd) -> Doorbell {
        Doorbell(fcntl_dupfd_cloexec(&eventfd, LOWEST).unwrap_or(eventfd))
    }

    /// Its number.
    pub fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Rings. Without its doorbell a worker would seem to be at work for ever, so that it ends at once: its server sees
    /// that, and starts another one.
    pub fn ring(&self) {
        // Another error is a full counter: the server has not heard the last 2^64 rings.
        if let Err(Errno::BADF | Errno::INVAL) = write(&self.0, &1u64.to_ne_bytes()) {
            eprintln!("alipes: the model has closed descriptors that it did not open, so that this worker ends");
            abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn the_descriptor_is_out_of_the_way_and_rings() {
        let server = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let doorbell = Doorbell::new(server.try_clone().unwrap());
        assert!(doorbell.0.as_raw_fd() >= LOWEST);
        doorbell.ring();
        doorbell.ring();
        let mut rings = [0; 8];
        rustix::io::read(&server, &mut rings).unwrap();
        assert_eq!(u64::from_ne_bytes(rings), 2);
    }
}
