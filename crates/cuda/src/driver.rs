//! The driver of this machine's GPUs.

use std::ffi::{CStr, OsStr, c_int};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::calls::{Calls, Outcome};
use crate::error::DriverError;

/// The library's name in the system's search path, under which NVIDIA's driver installs it.
const LIBRARY: &str = "libcuda.so.1";

/// The driver of this machine, loaded by the first call; none where there is no driver, or no GPU that it shows to this
/// process. The first call takes long.
pub fn driver() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(|| Driver::load(OsStr::new(LIBRARY))).as_ref()
}

/// A driver that has at least one device.
pub struct Driver {
    pub(crate) calls: Calls,
    devices: c_int,
}

impl Driver {
    /// Loads a driver's library, by a path or a name, and starts it; none where it cannot be loaded, lacks a function,
    /// or has no device. It stays loaded.
    pub fn load(library: &OsStr) -> Option<Driver> {
        // SAFETY: opening a library runs its initializers. The system's search path, or the caller that names a path,
        // decides which code that is, as for every program that uses a GPU.
        let library = unsafe { Library::new(library) }.ok()?;
        // SAFETY: a library of this name is a CUDA driver, whose functions have kept their signatures under these names
        // since CUDA 11. It is never unloaded, see below.
        let calls = unsafe { Calls::find(&library) }?;
        // Drivers leave threads and handlers behind, so they cannot be unloaded.
        mem::forget(library);
        let mut driver = Driver { calls, devices: 0 };
        // SAFETY: the driver's own functions; the pointer is to an integer that lives across the call.
        let started = driver.check(unsafe { (driver.calls.init)(0) });
        started.ok()?;
        let mut devices = 0;
        // SAFETY: as above.
        driver.check(unsafe { (driver.calls.device_count)(&mut devices) }).ok()?;
        driver.devices = devices;
        (devices > 0).then_some(driver)
    }

    /// Number of devices, which are numbered from 0.
    pub fn devices(&self) -> i32 {
        self.devices
    }

    /// # Errors
    ///
    /// A call that failed, in the driver's words.
    pub(crate) fn check(&self, outcome: Outcome) -> Result<(), DriverError> {
        if outcome == 0 { Ok(()) } else { Err(DriverError { code: outcome, text: self.words(outcome) }) }
    }

    /// The driver's words for an error.
    fn words(&self, outcome: Outcome) -> String {
        let mut text = ptr::null();
        // SAFETY: the pointer to fill lives across the call.
        let known = unsafe { (self.calls.error_string)(outcome, &mut text) };
        if known != 0 || text.is_null() {
            return format!("unrecognized error code {outcome}");
        }
        // SAFETY: the driver gives a text of its own, which ends with a zero and stays.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
