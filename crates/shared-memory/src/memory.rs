//! The memory of a region: a mapping, or memory of a GPU.

use std::thread;

use alipes_cuda::DeviceMemory;
use alipes_protocol::{InferError, copies};
use bytes::Bytes;

use crate::mapping::Mapping;

/// Memory of either kind. Its client may change the bytes at any time.
pub(crate) enum Memory {
    /// In this process's addresses.
    Mapped(Mapping),
    /// On a GPU: bytes are copied, which may take long.
    Device(OnDevice),
}

impl Memory {
    /// The length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Memory::Mapped(mapping) => mapping.len(),
            Memory::Device(device) => device.memory().map_or(0, DeviceMemory::len),
        }
    }

    /// Whether an access found that the memory was cut off; see [`Mapping::is_lost`]. That of a GPU cannot be: a copy
    /// that fails says so itself.
    pub fn is_lost(&self) -> bool {
        match self {
            Memory::Mapped(mapping) => mapping.is_lost(),
            Memory::Device(_) => false,
        }
    }

    /// The mapping, where it is one.
    pub fn mapping(&self) -> Option<&Mapping> {
        match self {
            Memory::Mapped(mapping) => Some(mapping),
            Memory::Device(_) => None,
        }
    }

    /// Whether a copy may take long, because a GPU does it.
    pub fn is_on_device(&self) -> bool {
        matches!(self, Memory::Device(_))
    }

    /// A copy of a part, out of the client's reach.
    ///
    /// # Errors
    ///
    /// `Internal` where a GPU's driver does not copy.
    pub fn copy(&self, name: &str, offset: usize, len: usize) -> Result<Bytes, InferError> {
        match self {
            Memory::Mapped(mapping) => Ok(mapping.copy(offset, len)),
            Memory::Device(device) => {
                copies::note(len);
                let copy = device.memory().map(|memory| memory.read(offset, len)).transpose();
                copy.map(|bytes| Bytes::from(bytes.unwrap_or_default())).map_err(|error| failed("read", name, &error))
            }
        }
    }

    /// Writes bytes to a part.
    ///
    /// # Errors
    ///
    /// As for `copy`.
    pub fn write(&self, name: &str, offset: usize, bytes: &[u8]) -> Result<(), InferError> {
        match self {
            Memory::Mapped(mapping) => mapping.write(offset, bytes),
            Memory::Device(device) => {
                copies::note(bytes.len());
                let written = device.memory().map(|memory| memory.write(offset, bytes)).transpose();
                written.map_err(|error| failed("written", name, &error))?;
            }
        }
        Ok(())
    }
}

/// Memory of a GPU, closed on a thread of its own unless somebody who may wait closes it: the driver waits for the
/// device, and the last lease may end on a network thread.
pub(crate) struct OnDevice {
    // None only while it is dropped.
    memory: Option<DeviceMemory>,
}

impl OnDevice {
    pub fn new(memory: DeviceMemory) -> OnDevice {
        OnDevice { memory: Some(memory) }
    }

    fn memory(&self) -> Option<&DeviceMemory> {
        self.memory.as_ref()
    }

    /// Closes the memory on this thread.
    pub fn close(mut self) {
        drop(self.memory.take());
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // Where there is no thread to be had, it is closed at once.
            drop(thread::Builder::new().name("alipes-unmap".into()).spawn(move || drop(memory)));
        }
    }
}

fn failed(verb: &str, name: &str, error: &alipes_cuda::DriverError) -> InferError {
    InferError::internal(format!(
        "GPU memory of shared memory region '{name}' cannot be {verb}: {error}; register the region again, with memory \
         that its process still holds"
    ))
}
