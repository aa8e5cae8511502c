//! A descriptor that is kept back, so that a client can be answered when there is no other one left.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// Whether accepting failed because the process, or the system, may have no further descriptor.
pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

/// A copy of a descriptor that is open anyway.
pub struct SpareDescriptor(Option<OwnedFd>);

impl SpareDescriptor {
    /// Takes one, if the system has one.
    pub fn of(open: BorrowedFd<'_>) -> SpareDescriptor {
        SpareDescriptor(open.try_clone_to_owned().ok())
    }

    /// Gives it up, so that the next connection can be accepted.
    pub fn give_up(&mut self) {
        self.0 = None;
    }
}
