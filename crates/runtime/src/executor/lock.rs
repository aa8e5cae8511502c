//! The locks of what the model checker plays. It puts its own in their place (`tests/all/interleavings/lock.rs`).

pub use parking_lot::{Condvar, Mutex};
