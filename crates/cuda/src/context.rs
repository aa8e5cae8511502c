//! A device's primary context, in which everything on the device happens.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;

use crate::driver::Driver;
use crate::error::DriverError;

/// A share of a device's primary context. The driver destroys the context after the last share, so an idle server takes
/// no memory of the device.
pub(crate) struct Context {
    pub driver: &'static Driver,
    device: c_int,
    handle: *mut c_void,
}

// SAFETY: the driver lets any thread use a context that it has made current, and release it.
unsafe impl Send for Context {}
// SAFETY: as above; the structure itself never changes.
unsafe impl Sync for Context {}

impl Context {
    /// A share of the context of the device with this number.
    ///
    /// # Errors
    ///
    /// What the driver refuses, such as a device that another process has to itself.
    pub fn of(driver: &'static Driver, number: c_int) -> Result<Context, DriverError> {
        let (mut device, mut handle) = (0, ptr::null_mut());
        // SAFETY: the value to fill lives across the call.
        driver.check(unsafe { (driver.calls.device)(&mut device, number) })?;
        // SAFETY: as above, and the device is the driver's own name for it.
        driver.check(unsafe { (driver.calls.retain_context)(&mut handle, device) })?;
        Ok(Context { driver, device, handle })
    }

    /// Makes the context current on this thread until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// What the driver refuses.
    pub fn enter(&self) -> Result<Current<'_>, DriverError> {
        // SAFETY: the context is retained as long as this lives.
        self.driver.check(unsafe { (self.driver.calls.push_context)(self.handle) })?;
        Ok(Current { context: self, thread: PhantomData })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the share that `of` has taken is given back once. A failure leaves nothing to do.
        let _ = unsafe { (self.driver.calls.release_context)(self.device) };
    }
}

/// A context that is current on this thread.
pub(crate) struct Current<'a> {
    context: &'a Context,
    // It stays on its thread.
    thread: PhantomData<*mut c_void>,
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: `enter` has pushed, on this thread, what is taken off here; the value to fill lives across the call.
        let _ = unsafe { (self.context.driver.calls.pop_context)(&mut popped) };
    }
}
