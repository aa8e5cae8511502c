//! Memory of a GPU that another process has allocated.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use crate::calls::{DeviceAddress, HANDLE_BYTES, IpcHandle};
use crate::context::Context;
use crate::driver::Driver;
use crate::error::{DriverError, OpenError};

/// The memory may lie on a device that the context's device reaches as a peer. Source: `cuIpcOpenMemHandle`.
const LAZY_ENABLE_PEER_ACCESS: c_uint = 1;

/// A stream that waits for none of the other streams: copies do not wait for models.
const NON_BLOCKING: c_uint = 1;

/// The number of the device on which a pointer's memory lies. Source: `CUpointer_attribute`.
const DEVICE_ORDINAL: c_int = 9;

/// Part of another process's allocation, from its begin, opened in this process. Its owner may change the bytes at any
/// time.
pub struct DeviceMemory {
    /// 0 until it is opened.
    address: DeviceAddress,
    /// Null until it is made.
    stream: *mut c_void,
    len: usize,
    // Last: what is above ends in it.
    context: Context,
}

// SAFETY: address and stream belong to the context, which any thread may use.
unsafe impl Send for DeviceMemory {}
// SAFETY: as above; the structure never changes once it is opened, and the driver takes calls of several threads at a
// time, on one stream too.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Opens the first bytes of an allocation, by the handle that its process got from `cuIpcGetMemHandle`.
    ///
    /// # Errors
    ///
    /// An unknown device, a handle that the driver does not take, memory of another device, no or more bytes than the
    /// allocation has.
    pub fn open(
        driver: &'static Driver,
        handle: [u8; HANDLE_BYTES],
        device: i64,
        byte_size: u64,
    ) -> Result<DeviceMemory, OpenError> {
        let no_device = OpenError::NoDevice { wanted: device, last: driver.devices() - 1 };
        let device = c_int::try_from(device).ok().filter(|device| (0..driver.devices()).contains(device));
        let device = device.ok_or(no_device)?;
        let unusable = |cause| OpenError::Unusable { device, cause };
        let context = Context::of(driver, device).map_err(unusable)?;
        // From here on `drop` undoes what has been done.
        let mut memory = DeviceMemory { address: 0, stream: ptr::null_mut(), len: 0, context };
        let current = memory.context.enter().map_err(unusable)?;
        // SAFETY: the value to fill lives across the call, and a context is current.
        let made = unsafe { (driver.calls.create_stream)(&mut memory.stream, NON_BLOCKING) };
        driver.check(made).map_err(unusable)?;
        // SAFETY: as above. The driver checks the handle, whatever its bytes are: it comes from another process by
        // design.
        let opened =
            unsafe { (driver.calls.open_handle)(&mut memory.address, IpcHandle(handle), LAZY_ENABLE_PEER_ACCESS) };
        driver.check(opened).map_err(OpenError::Handle)?;
        drop(current);
        memory.len = memory.checked(device, byte_size)?;
        Ok(memory)
    }

    /// The size as a length, once the allocation is found to hold it on the device.
    fn checked(&self, device: c_int, byte_size: u64) -> Result<usize, OpenError> {
        let Context { driver, .. } = self.context;
        let _current = self.context.enter().map_err(OpenError::Handle)?;
        let (mut begin, mut bytes) = (0, 0usize);
        // SAFETY: the values to fill live across the call, a context is current, and the address is open.
        let found = unsafe { (driver.calls.address_range)(&mut begin, &mut bytes, self.address) };
        driver.check(found).map_err(OpenError::Handle)?;
        let mut ordinal: c_int = device;
        // SAFETY: as above; this attribute is an `int`. A driver that does not know it leaves the value as it is.
        let known = unsafe {
            (driver.calls.pointer_attribute)(ptr::from_mut(&mut ordinal).cast(), DEVICE_ORDINAL, self.address)
        };
        if known == 0 && ordinal != device {
            return Err(OpenError::OtherDevice { wanted: device, actual: ordinal });
        }
        // Small allocations are parts of a block, which the driver shares as a whole.
        let actual = (begin + bytes as DeviceAddress).saturating_sub(self.address);
        let fits = begin <= self.address && (1..=actual).contains(&byte_size);
        let wrong = OpenError::Size { wanted: byte_size, actual };
        usize::try_from(byte_size).ok().filter(|_| fits).ok_or(wrong)
    }

    /// The length in bytes; never 0.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// A copy of a part, in the host's memory.
    ///
    /// # Errors
    ///
    /// What the driver refuses.
    ///
    /// # Panics
    ///
    /// If the part does not lie in the memory.
    pub fn read(&self, offset: usize, len: usize) -> Result<Vec<u8>, DriverError> {
        let from = self.at(offset, len);
        let mut copy: Vec<u8> = Vec::with_capacity(len);
        let _current = self.context.enter()?;
        let Context { driver, .. } = self.context;
        // SAFETY: the source lies in memory that is open (`at`), the destination has the capacity. The driver returns
        // from a copy to pageable memory when the bytes are there, and the wait below covers other ones.
        let copied = unsafe { (driver.calls.copy_to_host)(copy.as_mut_ptr().cast(), from, len, self.stream) };
        // Waited for in any case: nothing writes to the destination once it is freed.
        let waited = self.wait();
        driver.check(copied)?;
        waited?;
        // SAFETY: the driver has written all of the bytes.
        unsafe { copy.set_len(len) };
        Ok(copy)
    }

    /// Writes bytes to a part; they are there for every process when this returns.
    ///
    /// # Errors
    ///
    /// What the driver refuses.
    ///
    /// # Panics
    ///
    /// If the part does not lie in the memory.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DriverError> {
        let to = self.at(offset, bytes.len());
        let _current = self.context.enter()?;
        let Context { driver, .. } = self.context;
        // SAFETY: the destination lies in memory that is open (`at`); the source is borrowed until the copy is done,
        // which is waited for.
        let copied = unsafe { (driver.calls.copy_to_device)(to, bytes.as_ptr().cast(), bytes.len(), self.stream) };
        // A copy from pageable memory may still be on its way when the call returns.
        let waited = self.wait();
        driver.check(copied)?;
        waited
    }

    /// Waits for the copies of this memory. A context is current.
    fn wait(&self) -> Result<(), DriverError> {
        // SAFETY: the stream lives as long as this does.
        self.context.driver.check(unsafe { (self.context.driver.calls.synchronize)(self.stream) })
    }

    fn at(&self, offset: usize, len: usize) -> DeviceAddress {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(fits, "parts are checked when a request names them");
        self.address + offset as DeviceAddress
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        let calls = &self.context.driver.calls;
        // What fails here has failed before, and leaves nothing to do.
        if self.address != 0 {
            // SAFETY: the address was opened once, and no copy runs: each borrows this.
            let _ = unsafe { (calls.close_handle)(self.address) };
        }
        if !self.stream.is_null() {
            // SAFETY: as above.
            let _ = unsafe { (calls.destroy_stream)(self.stream) };
        }
    }
}
