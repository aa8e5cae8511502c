//! Memory of GPUs that other processes share with this one, through NVIDIA's driver.
//!
//! The driver's library is loaded at run time: this builds, and runs, on machines without a GPU, where [`driver()`] is
//! none. Knows the published driver API; nothing of regions, tensors or requests.
//!
//! Every call of the driver may take long: the first one on a device makes a context there, and a copy waits for the
//! device. None belongs on a network thread.

mod calls;
mod context;
mod driver;
mod error;
mod memory;
#[cfg(test)]
mod tests;

pub use calls::HANDLE_BYTES;
pub use driver::{Driver, driver};
pub use error::{DriverError, OpenError};
pub use memory::DeviceMemory;
