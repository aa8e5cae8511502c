//! Processor and memory use of the machine, for the `nv_cpu_*` gauges, and processor time of single processes.

#![allow(clippy::disallowed_methods, reason = "/proc is read when metrics are scraped")]

use std::fs;

use parking_lot::Mutex;
use rustix::param::clock_ticks_per_second;

/// Gauges of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuGauges {
    /// Share of busy processor time since the last reading, 0 to 1.
    pub utilization: f64,
    /// Memory of the machine in bytes.
    pub memory_total_bytes: u64,
    /// Memory in use in bytes.
    pub memory_used_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuTimes {
    busy: u64,
    all: u64,
}

/// Reads the gauges; utilization is that between two readings.
#[derive(Debug, Default)]
pub struct CpuMeter {
    last: Mutex<CpuTimes>,
}

impl CpuMeter {
    /// The gauges now; zeros where the system does not tell.
    pub fn read(&self) -> CpuGauges {
        let (memory_total_bytes, available) = memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        let now = cpu_times(&fs::read_to_string("/proc/stat").unwrap_or_default());
        let before = std::mem::replace(&mut *self.last.lock(), now);
        let all = now.all.saturating_sub(before.all);
        let busy = now.busy.saturating_sub(before.busy);
        CpuGauges {
            utilization: if all == 0 { 0.0 } else { busy as f64 / all as f64 },
            memory_total_bytes,
            memory_used_bytes: memory_total_bytes.saturating_sub(available),
        }
    }
}

/// Processor time of a process so far, in seconds: that of all its threads, as the program and in the system. By its
/// number, or `self`; none where there is no such process.
pub fn process_seconds(process: &str) -> Option<f64> {
    let ticks = process_ticks(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    Some(ticks as f64 / clock_ticks_per_second() as f64)
}

/// Ticks of a process. Source: proc(5), `/proc/pid/stat`; fields 14 and 15 are `utime` and `stime`, and the second is
/// a name in parentheses that may hold any characters.
fn process_ticks(text: &str) -> Option<u64> {
    let (_, behind_name) = text.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(ticks()? + ticks()?)
}

/// Total and available memory in bytes. Source: proc(5), `/proc/meminfo`, in kibibytes.
fn memory(text: &str) -> (u64, u64) {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    (value("MemTotal:") * 1024, value("MemAvailable:") * 1024)
}

/// Busy and total ticks of all processors. Source: proc(5), `/proc/stat`; fields 4 and 5 are idle and iowait.
fn cpu_times(text: &str) -> CpuTimes {
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).filter_map(|tick| tick.parse().ok()).collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    CpuTimes { busy: all - idle, all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemTotal:       2048 kB\nMemFree:  1 kB\nMemAvailable:   1024 kB\n";
        assert_eq!(memory(text), (2 << 20, 1 << 20));
    }

    #[test]
    fn the_ticks_of_a_process_stand_behind_a_name_of_any_characters() {
        let text = "7 (a b) R 9) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 1 2 20 0 3 0 99 1000 10";
        assert_eq!(process_ticks(text), Some(300));
        assert_eq!((process_ticks("7 (a) S 1"), process_ticks("")), (None, None));
    }

    #[test]
    fn this_process_has_used_processors_and_one_that_is_not_there_has_not() {
        let begin = alipes_clock::thread_cpu_ns();
        while alipes_clock::thread_cpu_ns() - begin < 50_000_000 {}
        assert!(process_seconds("self").unwrap() >= 0.03);
        assert_eq!(process_seconds("0"), None);
    }

    #[test]
    fn idle_and_iowait_are_not_busy() {
        let times = cpu_times("cpu  10 0 5 80 5 0 0 0 0 0\ncpu0 1 2 3\n");
        assert_eq!((times.busy, times.all), (15, 100));
    }
}
