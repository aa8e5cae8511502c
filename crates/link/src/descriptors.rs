//! Where a worker finds its files.

use std::os::fd::RawFd;

/// The file descriptors that a worker process inherits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// The link's memory.
    pub link: RawFd,
    /// The request arena of the model version.
    pub requests: RawFd,
    /// The set-up document, a sealed memory file.
    pub setup: RawFd,
    /// The eventfd that wakes the server.
    pub doorbell: RawFd,
}

/// The descriptors of every worker: the first free numbers after standard input, output and error.
pub const DESCRIPTORS: Descriptors = Descriptors { link: 3, requests: 4, setup: 5, doorbell: 6 };
