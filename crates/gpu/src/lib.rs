//! The machine's GPUs, as NVIDIA's driver tells of them through its management library (NVML).
//!
//! The library comes with the driver and is loaded on first use. Where there is none, there are no GPUs: nothing fails
//! and nothing is said, since most machines that run alipes have none.

#![forbid(unsafe_code)]

mod driver;
mod list;
mod meter;
mod reading;
mod visible;

pub use list::{Gpu, visible_gpus};
pub use meter::GpuMeter;
pub use reading::GpuReading;
