//! The list of GPUs.

use std::sync::OnceLock;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::driver::driver;
use crate::visible::choose;

/// A GPU that programs of this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number among the GPUs that are visible, as CUDA counts them in PCI order.
    pub index: usize,
    /// As the driver writes it: `GPU-` and 36 characters.
    pub uuid: String,
    /// Its product name.
    pub name: String,
    /// Its memory in bytes; none where it has no memory of its own and uses that of the machine.
    pub memory_total_bytes: Option<u64>,
    /// Its generation as CUDA counts: major and minor number.
    pub compute_capability: (i32, i32),
}

/// The GPUs that CUDA lets this process see; none without a driver.
///
/// The driver is asked once in a process: GPUs do not come and go.
///
/// Argument: the text of `CUDA_VISIBLE_DEVICES`; `None` where it is not set and all GPUs are visible.
pub fn visible_gpus(visible: Option<&str>) -> Vec<Gpu> {
    static FOUND: OnceLock<Vec<Gpu>> = OnceLock::new();
    let found = FOUND.get_or_init(|| driver().map(present).unwrap_or_default());
    let Some(visible) = visible else { return found.clone() };
    let uuids: Vec<&str> = found.iter().map(|gpu| gpu.uuid.as_str()).collect();
    let chosen = choose(visible, &uuids).into_iter().enumerate();
    chosen.map(|(index, place)| Gpu { index, ..found[place].clone() }).collect()
}

/// Every GPU of the machine that answers. One that fell off the bus does not, and CUDA does not count it either.
fn present(nvml: &Nvml) -> Vec<Gpu> {
    let answering = (0..nvml.device_count().unwrap_or(0)).filter_map(|number| nvml.device_by_index(number).ok());
    let described = answering.filter_map(|device| describe(&device).ok()).enumerate();
    described.map(|(index, gpu)| Gpu { index, ..gpu }).collect()
}

fn describe(device: &Device<'_>) -> Result<Gpu, NvmlError> {
    let capability = device.cuda_compute_capability()?;
    Ok(Gpu {
        index: 0,
        uuid: device.uuid()?,
        name: device.name()?,
        memory_total_bytes: device.memory_info().ok().map(|memory| memory.total),
        compute_capability: (capability.major, capability.minor),
    })
}
