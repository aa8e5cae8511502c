//! The list of GPUs.

use std::sync::OnceLock;
use std::time::Duration;

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::driver::{driver, within};
use crate::visible::{MIG, choose};

/// A driver that keeps no GPU awake starts each of them, which takes seconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A GPU that programs of this process may use: a whole one, or the part of one that NVIDIA calls a MIG device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its number among the GPUs that are visible, as CUDA counts them in PCI order.
    pub index: usize,
    /// As the driver writes it: `GPU-`, or `MIG-` for a part, and 36 characters.
    pub uuid: String,
    /// Its product name.
    pub name: String,
    /// Its memory in bytes; none where it has no memory of its own and uses that of the machine.
    pub memory_total_bytes: Option<u64>,
    /// Its generation as CUDA counts: major and minor number.
    pub compute_capability: (i32, i32),
}

/// A GPU of the machine, with the parts that it is divided into.
struct Present {
    whole: Gpu,
    parts: Vec<Gpu>,
}

/// The GPUs that CUDA lets this process see; none without a driver.
///
/// The driver is asked once in a process: GPUs do not come and go.
///
/// Argument: the text of `CUDA_VISIBLE_DEVICES`; `None` where it is not set and all GPUs are visible.
pub fn visible_gpus(visible: Option<&str>) -> Vec<Gpu> {
    static FOUND: OnceLock<Vec<Present>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        within(START_LIMIT, || driver().map(present).unwrap_or_default()).unwrap_or_else(|| {
            eprintln!("NVIDIA's driver did not tell of its GPUs in {} s: they are left out", START_LIMIT.as_secs());
            Vec::new()
        })
    });
    let seen = visible_of(found, visible).into_iter().enumerate();
    seen.map(|(index, gpu)| Gpu { index, ..gpu.clone() }).collect()
}

/// Where any part is visible, CUDA sees one part, the first, and nothing else.
///
/// Source: NVIDIA Multi-Instance GPU User Guide, "CUDA Device Enumeration".
fn visible_of<'a>(found: &'a [Present], visible: Option<&str>) -> Vec<&'a Gpu> {
    if let Some(text) = visible.filter(|text| text.trim_start().starts_with(MIG)) {
        let parts: Vec<&Gpu> = found.iter().flat_map(|present| &present.parts).collect();
        return chosen(&parts, text).into_iter().take(1).map(|place| parts[place]).collect();
    }
    let wholes: Vec<&Gpu> = found.iter().map(|present| &present.whole).collect();
    let places = visible.map_or_else(|| (0..wholes.len()).collect(), |text| chosen(&wholes, text));
    let part = places.iter().find_map(|&place| found[place].parts.first());
    part.map_or_else(|| places.iter().map(|&place| wholes[place]).collect(), |part| vec![part])
}

fn chosen(gpus: &[&Gpu], text: &str) -> Vec<usize> {
    let uuids: Vec<&str> = gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
    choose(text, &uuids)
}

/// Every GPU of the machine that answers. One that fell off the bus does not, and CUDA does not count it either.
fn present(nvml: &Nvml) -> Vec<Present> {
    let answering = (0..nvml.device_count().unwrap_or(0)).filter_map(|number| nvml.device_by_index(number).ok());
    answering.filter_map(|device| describe(&device).ok()).collect()
}

fn describe(device: &Device<'_>) -> Result<Present, NvmlError> {
    let capability = device.cuda_compute_capability()?;
    let capability = (capability.major, capability.minor);
    // The numbers of parts have gaps where a part was removed.
    let parts =
        (0..device.mig_device_count().unwrap_or(0)).filter_map(|number| device.mig_device_by_index(number).ok());
    let parts = parts.filter_map(|part| named(&part, capability).ok()).collect();
    Ok(Present { whole: named(device, capability)?, parts })
}

fn named(device: &Device<'_>, compute_capability: (i32, i32)) -> Result<Gpu, NvmlError> {
    let memory_total_bytes = device.memory_info().ok().map(|memory| memory.total);
    Ok(Gpu { index: 0, uuid: device.uuid()?, name: device.name()?, memory_total_bytes, compute_capability })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(uuid: &str) -> Gpu {
        let (uuid, name) = (uuid.to_owned(), "G".to_owned());
        Gpu { index: 0, uuid, name, memory_total_bytes: None, compute_capability: (9, 0) }
    }

    fn present(whole: &str, parts: &[&str]) -> Present {
        Present { whole: gpu(whole), parts: parts.iter().map(|uuid| gpu(uuid)).collect() }
    }

    fn seen(found: &[Present], visible: Option<&str>) -> Vec<String> {
        visible_of(found, visible).into_iter().map(|gpu| gpu.uuid.clone()).collect()
    }

    #[test]
    fn all_whole_gpus_are_visible_unless_some_are_named() {
        let found = [present("GPU-1", &[]), present("GPU-2", &[])];
        assert_eq!(seen(&found, None), ["GPU-1", "GPU-2"]);
        assert_eq!(seen(&found, Some("1")), ["GPU-2"]);
        assert_eq!(seen(&found, Some("")), [""; 0]);
        assert_eq!(seen(&found, Some("MIG-1")), [""; 0]);
    }

    #[test]
    fn of_divided_gpus_one_part_is_visible() {
        let found = [present("GPU-1", &[]), present("GPU-2", &["MIG-a", "MIG-b"]), present("GPU-3", &["MIG-c"])];
        for (visible, wanted) in [
            (None, "MIG-a"),
            (Some("0,1"), "MIG-a"),
            (Some("2,1"), "MIG-c"),
            (Some("GPU-3"), "MIG-c"),
            (Some("0"), "GPU-1"),
            (Some("MIG-b"), "MIG-b"),
            (Some(" MIG-c,MIG-a"), "MIG-c"),
        ] {
            assert_eq!(seen(&found, visible), [wanted], "{visible:?}");
        }
        assert_eq!(seen(&found, Some("MIG-")), [""; 0]);
    }
}
