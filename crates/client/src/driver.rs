//! Which thread drives a connection.

/// Which thread drives a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The thread that waits for its calls, one after the other.
    Caller,
    /// The runtime that it was opened on.
    Runtime,
}
