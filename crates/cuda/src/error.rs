//! What the driver refuses.

use thiserror::Error;

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct DriverError {
    /// The driver's number for it.
    pub code: i32,
    /// The driver's words for it.
    pub text: String,
}

/// Why memory of another process cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OpenError {
    /// The device does not exist.
    #[error("there is no device {wanted}: devices 0 to {last} exist")]
    NoDevice {
        /// The device that was asked for.
        wanted: i64,
        /// The last device that exists.
        last: i32,
    },
    /// The device cannot be used.
    #[error("device {device} cannot be used: {cause}")]
    Unusable {
        /// The device that was asked for.
        device: i32,
        /// What the driver says.
        cause: DriverError,
    },
    /// The driver does not take the handle.
    #[error("failed to open CUDA IPC handle: {0}")]
    Handle(DriverError),
    /// The memory lies on another device.
    #[error("invalid args: the memory lies on device {actual}, not on device {wanted}")]
    OtherDevice {
        /// The device that was asked for.
        wanted: i32,
        /// The device of the memory.
        actual: i32,
    },
    /// The allocation is shorter than the part that was asked for, or that is empty.
    #[error("invalid args: {wanted} bytes were given as its size, and the allocation has {actual}")]
    Size {
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes of the allocation.
        actual: u64,
    },
}
