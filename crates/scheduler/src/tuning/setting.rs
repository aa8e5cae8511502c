//! What can be tuned, what is wanted, and within which limits.

use std::time::Duration;

/// What a tuner chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Longest wait for company.
    pub queue_delay: Duration,
    /// Rows that a batch waits for and does not exceed.
    pub batch: u32,
    /// Instances in service.
    pub instances: usize,
}

/// The values that a tuner may choose. The smallest are no delay and one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The longest queue delay.
    pub queue_delay: Duration,
    /// The largest batch, in rows.
    pub batch: u32,
    /// The fewest instances in service.
    pub fewest_instances: usize,
    /// The most instances in service; as many as the fewest where their number cannot be changed.
    pub instances: usize,
}

impl Bounds {
    /// The nearest setting within the bounds.
    pub fn clamp(&self, setting: Setting) -> Setting {
        Setting {
            queue_delay: setting.queue_delay.min(self.queue_delay),
            batch: setting.batch.clamp(1, self.batch.max(1)),
            instances: setting.instances.max(self.fewest_instances).min(self.instances.max(1)),
        }
    }
}

/// The time that 99 of 100 requests are to be answered within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objective {
    /// The time, from the arrival of a request to its answer.
    pub p99: Duration,
}

impl Objective {
    /// The share of requests that may take longer.
    pub(super) const ALLOWED: f64 = 0.01;

    /// So many hundredths of it.
    pub(super) fn percent(&self, percent: u32) -> Duration {
        self.p99 * percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_brought_within_bounds() {
        let bounds = Bounds { queue_delay: Duration::from_millis(5), batch: 8, fewest_instances: 1, instances: 2 };
        let wild = Setting { queue_delay: Duration::from_secs(1), batch: 0, instances: 9 };
        let within = Setting { queue_delay: Duration::from_millis(5), batch: 1, instances: 2 };
        assert_eq!(bounds.clamp(wild), within);
        assert_eq!(bounds.clamp(within), within);
    }
}
