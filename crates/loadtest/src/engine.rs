//! A load that runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alipes_client::{ClientError, Kind, Wire};
use tokio::sync::watch;

use crate::plan::{Plan, Prepared};
use crate::record::Record;
use crate::worker::{self, Common, Measured, Part};

/// A load that runs on threads of its own, until it is stopped or done.
pub struct Engine {
    common: Arc<Common>,
    threads: Vec<Running>,
    stop: watch::Sender<Option<Duration>>,
}

struct Running {
    measured: Arc<Measured>,
    /// Its processor time at the last cut.
    counted_ns: AtomicU64,
    handle: Option<JoinHandle<std::io::Result<()>>>,
}

impl Engine {
    /// Begins.
    ///
    /// # Errors
    /// A plan that has no requests, or requests for another protocol; a system that has no thread left.
    pub fn start(plan: Plan) -> Result<Engine, ClientError> {
        check(&plan)?;
        let of = plan.threads.get().min(plan.in_flight());
        let common = Arc::new(Common { plan, stopping: AtomicBool::new(false), begun: AtomicU64::new(0) });
        let (stop, stopped) = watch::channel(None);
        let mut engine = Engine { common, threads: Vec::with_capacity(of), stop };
        for number in 0..of {
            let measured = Arc::new(Measured::default());
            let (common, own, stopped) = (engine.common.clone(), measured.clone(), stopped.clone());
            let begin = thread::Builder::new().name(format!("alipes-loadtest-{number}"));
            let handle = begin
                .spawn(move || worker::run(&common, &own, Part { number, of }, stopped))
                .map_err(|error| ClientError::new(Kind::Connect, format!("the load has no thread: {error}")))?;
            engine.threads.push(Running { measured, counted_ns: AtomicU64::new(0), handle: Some(handle) });
        }
        Ok(engine)
    }

    /// What was measured since the last cut.
    pub fn cut(&self) -> Record {
        let mut all = Record::default();
        for thread in &self.threads {
            // The new record is made before the lock is held: the sender waits for nothing.
            let empty = Record::default();
            let mut record = std::mem::replace(&mut *thread.measured.record.lock(), empty);
            let busy_ns = thread.measured.busy_ns.load(Ordering::Relaxed);
            record.busy_ns = busy_ns - thread.counted_ns.swap(busy_ns, Ordering::Relaxed);
            all.add(record);
        }
        all
    }

    /// Answers since the last cut.
    pub fn answers(&self) -> u64 {
        self.threads.iter().map(|thread| thread.measured.record.lock().answers()).sum()
    }

    /// Whether everything was sent and answered.
    pub fn is_done(&self) -> bool {
        self.threads.iter().all(|thread| thread.handle.as_ref().is_none_or(JoinHandle::is_finished))
    }

    /// Sends nothing more, and waits for calls under way as long as `grace`; what is not answered then is cut off.
    ///
    /// # Errors
    /// What ended a thread before its time.
    pub fn stop(&mut self, grace: Duration) -> Result<(), ClientError> {
        self.common.stopping.store(true, Ordering::Relaxed);
        // An error says that all threads have ended.
        let _ = self.stop.send(Some(grace));
        let mut outcome = Ok(());
        for handle in self.threads.iter_mut().filter_map(|thread| thread.handle.take()) {
            let ended = handle.join().map_err(|_| "a thread of the load has panicked".to_owned());
            let ended = ended.and_then(|ended| ended.map_err(|error| format!("a thread of the load ended: {error}")));
            outcome = outcome.and(ended.map_err(ClientError::broken));
        }
        outcome
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Who drops it has no use for the outcome.
        let _ = self.stop(Duration::ZERO);
    }
}

fn check(plan: &Plan) -> Result<(), ClientError> {
    let wrong = |text: &str| Err(ClientError::new(Kind::Connect, text));
    let fits = |request: &Prepared| {
        matches!((request, plan.target.wire), (Prepared::Http(_), Wire::Http) | (Prepared::Grpc { .. }, Wire::Grpc))
    };
    match &plan.requests[..] {
        [] => wrong("a load needs a request"),
        requests if !requests.iter().all(fits) => {
            wrong("a request of the load is for another protocol than its target")
        }
        _ => Ok(()),
    }
}
