//! Reads the GPUs again and again, on threads of its own, so that nobody who wants a reading waits for a driver.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::driver::driver;
use crate::reading::{EnergyMeter, GpuReading, read};

/// Readings of this many intervals, and as much as this beside, count as the present: a machine may be busy.
const CURRENT_INTERVALS: u32 = 3;
const CURRENT_BESIDE: Duration = Duration::from_secs(5);

/// Drivers renew their values less often than this, and a reading may take some of it.
const LEAST_INTERVAL: Duration = Duration::from_millis(10);

/// The GPUs' latest readings. Its threads end with it.
#[derive(Default)]
pub struct GpuMeter {
    watched: Vec<Arc<Watched>>,
    current: Duration,
}

/// One GPU, its reading, and the word that nobody wants another.
struct Watched {
    uuid: String,
    latest: Mutex<Option<(Instant, GpuReading)>>,
    ended: Mutex<bool>,
    end: Condvar,
}

impl GpuMeter {
    /// Begins to read the GPUs with these UUIDs, each on a thread: one whose driver does not answer holds up no other.
    pub fn start(uuids: &[String], interval: Duration) -> GpuMeter {
        let sources = uuids.iter().map(|uuid| (uuid.clone(), source(uuid.clone())));
        GpuMeter::watch(sources, interval.max(LEAST_INTERVAL))
    }

    fn watch<R>(sources: impl Iterator<Item = (String, R)>, interval: Duration) -> GpuMeter
    where
        R: FnMut() -> GpuReading + Send + 'static,
    {
        let watched = sources.map(|(uuid, read)| {
            let (latest, ended, end) = (Mutex::default(), Mutex::default(), Condvar::new());
            let watched = Arc::new(Watched { uuid, latest, ended, end });
            let work = Arc::clone(&watched);
            // A GPU without a thread has no readings, as one that does not answer.
            drop(thread::Builder::new().name("alipes-gpu".into()).spawn(move || work.run(read, interval)));
            watched
        });
        GpuMeter { watched: watched.collect(), current: interval * CURRENT_INTERVALS + CURRENT_BESIDE }
    }

    /// Each GPU that answers, by its UUID, with what it told last. Never waits for a GPU.
    pub fn readings(&self) -> Vec<(String, GpuReading)> {
        let now = alipes_clock::now();
        let current = |watched: &Arc<Watched>| {
            let (at, reading) = (*watched.latest.lock())?;
            let fresh = now.saturating_duration_since(at) <= self.current;
            fresh.then(|| (watched.uuid.clone(), reading))
        };
        self.watched.iter().filter_map(current).collect()
    }
}

impl Drop for GpuMeter {
    /// Nobody waits for the threads: one may be inside a driver that never returns.
    fn drop(&mut self) {
        for watched in &self.watched {
            *watched.ended.lock() = true;
            watched.end.notify_all();
        }
    }
}

impl Watched {
    fn run(&self, mut read: impl FnMut() -> GpuReading, interval: Duration) {
        let mut ended = self.ended.lock();
        while !*ended {
            drop(ended);
            let reading = read();
            *self.latest.lock() = Some((alipes_clock::now(), reading));
            ended = self.ended.lock();
            if !*ended {
                self.end.wait_for(&mut ended, interval);
            }
        }
    }
}

/// Reads one GPU. It is looked up each time, so that one that comes back is read again.
fn source(uuid: String) -> impl FnMut() -> GpuReading + Send + 'static {
    let mut energy = EnergyMeter::default();
    move || {
        let device = driver().and_then(|driver| driver.device_by_uuid(&*uuid).ok());
        device.map(|device| read(&device, &mut energy)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    type Source = Box<dyn FnMut() -> GpuReading + Send>;

    const HOUR: Duration = Duration::from_secs(3600);

    fn busy(utilization: f64) -> GpuReading {
        GpuReading { utilization: Some(utilization), ..GpuReading::default() }
    }

    /// A source that returns what is sent to it, and ends with what it returned last.
    fn sent(readings: Receiver<GpuReading>) -> Source {
        Box::new(move || readings.recv().unwrap_or_default())
    }

    fn named(uuid: &str, source: Source) -> (String, Source) {
        (uuid.to_owned(), source)
    }

    fn wait_for(meter: &GpuMeter, wanted: &[(&str, GpuReading)]) {
        let wanted: Vec<_> = wanted.iter().map(|(uuid, reading)| ((*uuid).to_owned(), *reading)).collect();
        while meter.readings() != wanted {
            thread::yield_now();
        }
    }

    #[test]
    fn a_gpu_that_does_not_answer_costs_its_own_reading_alone() {
        let (stuck, readings) = channel();
        let sources = [named("GPU-1", sent(readings)), named("GPU-2", Box::new(|| busy(0.5)))];
        let meter = GpuMeter::watch(sources.into_iter(), HOUR);
        wait_for(&meter, &[("GPU-2", busy(0.5))]);
        stuck.send(busy(0.25)).unwrap();
        wait_for(&meter, &[("GPU-1", busy(0.25)), ("GPU-2", busy(0.5))]);
    }

    #[test]
    fn a_thread_ends_once_its_driver_returns() {
        let (stuck, readings) = channel();
        let meter = GpuMeter::watch([named("GPU-1", sent(readings))].into_iter(), HOUR);
        let watched = Arc::downgrade(&meter.watched[0]);
        drop(meter);
        stuck.send(busy(0.25)).unwrap();
        while watched.strong_count() > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn readings_come_again_after_each_interval() {
        let (source, readings) = channel();
        let meter = GpuMeter::watch([named("GPU-1", sent(readings))].into_iter(), Duration::from_millis(1));
        for utilization in [0.25, 0.5, 0.75] {
            source.send(busy(utilization)).unwrap();
            wait_for(&meter, &[("GPU-1", busy(utilization))]);
        }
    }

    #[test]
    fn an_old_reading_is_none() {
        let clock = alipes_clock::Held::new();
        let _entered = clock.enter();
        let (latest, ended, end) = (Mutex::new(Some((clock.now(), busy(0.5)))), Mutex::new(false), Condvar::new());
        let watched = vec![Arc::new(Watched { uuid: "GPU-1".to_owned(), latest, ended, end })];
        let meter = GpuMeter { watched, current: Duration::from_secs(11) };
        assert_eq!(meter.readings().len(), 1);
        clock.advance(Duration::from_secs(12));
        assert_eq!(meter.readings(), []);
    }
}
