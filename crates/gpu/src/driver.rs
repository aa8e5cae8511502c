//! The driver's management library (NVML), loaded once in a process.

use std::sync::OnceLock;

use nvml_wrapper::Nvml;

/// The library; none where there is no driver, or one that does not start.
///
/// It stays loaded: its start can take a second, and the driver may put GPUs to rest that nobody has open.
pub fn driver() -> Option<&'static Nvml> {
    static DRIVER: OnceLock<Option<Nvml>> = OnceLock::new();
    DRIVER.get_or_init(|| Nvml::init().ok()).as_ref()
}
