//! Metrics of the machine's GPUs.

use super::text::{escape, family, sample};

/// What one GPU tells.
pub struct GpuRow {
    /// The driver's name of it.
    pub uuid: String,
    /// Its values in the order of `FAMILIES`; none for what it does not tell.
    pub values: [Option<f64>; FAMILIES.len()],
}

/// Names, texts and kinds, in the order of Triton's page. Source: its metrics.
const FAMILIES: [(&str, &str, &str); 6] = [
    ("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "gauge"),
    ("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "gauge"),
    ("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "gauge"),
    ("nv_gpu_power_usage", "GPU power usage in watts", "gauge"),
    ("nv_gpu_power_limit", "GPU power management limit in watts", "gauge"),
    ("nv_energy_consumption", "GPU energy consumption in joules since the Triton Server started", "counter"),
];

/// Appends the families of GPUs, those that any of them has a value for.
pub fn gpus(text: &mut String, rows: &[GpuRow]) {
    for (place, (name, help, kind)) in FAMILIES.into_iter().enumerate() {
        let mut samples = rows.iter().filter_map(|row| Some((&row.uuid, row.values[place]?))).peekable();
        if samples.peek().is_some() {
            family(text, name, help, kind);
        }
        samples.for_each(|(uuid, value)| sample(text, name, &format!("gpu_uuid=\"{}\"", escape(uuid)), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &[GpuRow]) -> String {
        let mut text = String::new();
        gpus(&mut text, rows);
        text
    }

    #[test]
    fn each_gpu_shows_what_it_tells() {
        let all = [0.25, 80e9, 3e9, 120.5, 700.0, 5.25].map(Some);
        let some = [None, Some(16e9), None, None, None, None];
        let rows = [("GPU-1", all), ("GPU-2", some)].map(|(uuid, values)| GpuRow { uuid: uuid.to_owned(), values });
        let wanted = r#"# HELP nv_gpu_utilization GPU utilization rate [0.0 - 1.0)
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.25
# HELP nv_gpu_memory_total_bytes GPU total memory, in bytes
# TYPE nv_gpu_memory_total_bytes gauge
nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 80000000000
nv_gpu_memory_total_bytes{gpu_uuid="GPU-2"} 16000000000
# HELP nv_gpu_memory_used_bytes GPU used memory, in bytes
# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 3000000000
# HELP nv_gpu_power_usage GPU power usage in watts
# TYPE nv_gpu_power_usage gauge
nv_gpu_power_usage{gpu_uuid="GPU-1"} 120.5
# HELP nv_gpu_power_limit GPU power management limit in watts
# TYPE nv_gpu_power_limit gauge
nv_gpu_power_limit{gpu_uuid="GPU-1"} 700
# HELP nv_energy_consumption GPU energy consumption in joules since the Triton Server started
# TYPE nv_energy_consumption counter
nv_energy_consumption{gpu_uuid="GPU-1"} 5.25
"#;
        assert_eq!(page(&rows), wanted);
    }

    #[test]
    fn without_gpus_or_values_there_is_no_family() {
        assert_eq!(page(&[]), "");
        assert_eq!(page(&[GpuRow { uuid: "GPU-1".to_owned(), values: [None; 6] }]), "");
    }
}
