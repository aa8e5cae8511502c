//! How busy one GPU is.

use nvml_wrapper::Device;

/// What a GPU tells of its use; none for each value that it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuReading {
    /// Share of the time in which it computed, 0 to 1, over the driver's own last period.
    pub utilization: Option<f64>,
    /// Memory in bytes.
    pub memory_total_bytes: Option<u64>,
    /// Memory in use in bytes.
    pub memory_used_bytes: Option<u64>,
    /// Power in watts.
    pub power_usage_w: Option<f64>,
    /// The power in watts that it is kept below.
    pub power_limit_w: Option<f64>,
    /// Energy in joules since the first reading.
    pub energy_j: Option<f64>,
}

/// The energy of a GPU since it was first read.
///
/// The driver counts since it was loaded; where it is loaded again, its count begins again and this one goes on.
#[derive(Debug, Default)]
pub struct EnergyMeter {
    last_mj: Option<u64>,
    total_mj: u64,
}

impl EnergyMeter {
    /// Joules so far, after the driver's count in millijoules.
    pub fn after(&mut self, count_mj: u64) -> f64 {
        let last_mj = self.last_mj.replace(count_mj).unwrap_or(count_mj);
        self.total_mj += count_mj.saturating_sub(last_mj);
        self.total_mj as f64 / 1e3
    }
}

/// Asks a GPU for every value. One that fell off the bus tells none.
pub fn read(device: &Device<'_>, energy: &mut EnergyMeter) -> GpuReading {
    let memory = device.memory_info().ok();
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    GpuReading {
        utilization: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
        memory_total_bytes: memory.as_ref().map(|memory| memory.total),
        memory_used_bytes: memory.as_ref().map(|memory| memory.used),
        power_usage_w: device.power_usage().ok().map(watts),
        power_limit_w: device.power_management_limit().ok().map(watts),
        energy_j: device.total_energy_consumption().ok().map(|count_mj| energy.after(count_mj)),
    }
}

#[cfg(test)]
mod tests {
    use super::EnergyMeter;

    #[test]
    fn energy_counts_from_the_first_reading_and_survives_the_drivers_restart() {
        let mut energy = EnergyMeter::default();
        let counts = [7_000, 7_500, 9_000, 100, 600];
        assert_eq!(counts.map(|count_mj| energy.after(count_mj)), [0.0, 0.5, 2.0, 2.0, 2.5]);
    }
}
