//! A load that runs.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alipes_client::{ClientError, Kind, Wire};
use tokio::sync::watch;

use crate::chains::{Chains, Sequences};
use crate::log::Calendar;
use crate::mix::Mix;
use crate::plan::{Loop, Plan, Source};
use crate::prepared::Prepared;
use crate::record::Record;
use crate::thread::{Common, Measured, Part, empty};
use crate::worker;

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
        let mix = Mix::new(&plan.sources.iter().map(|source| source.weight).collect::<Vec<_>>())?;
        let sequences = plan.sources.iter().filter_map(|source| source.sequences.as_ref());
        let of = plan.senders().min(sequences.map(Sequences::most).min().unwrap_or(usize::MAX));
        let (sources, keep) = (plan.sources.len(), plan.keep);
        let common = Arc::new(Common {
            chains: plan.sources.iter().map(|source| source.sequences.as_ref().map(Chains::new)).collect(),
            plan,
            mix,
            calendar: Calendar::now(),
            stopping: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            claimed: AtomicU64::new(0),
        });
        let (stop, stopped) = watch::channel(None);
        let mut engine = Engine { common, threads: Vec::with_capacity(of), stop };
        for number in 0..of {
            let measured = Arc::new(Measured::new(sources, keep));
            let (common, own, stopped) = (engine.common.clone(), measured.clone(), stopped.clone());
            let begin = thread::Builder::new().name(format!("alipes-loadtest-{number}"));
            let handle = begin
                .spawn(move || worker::run(&common, &own, Part { number, of }, stopped))
                .map_err(|error| ClientError::new(Kind::Connect, format!("the load has no thread: {error}")))?;
            engine.threads.push(Running { measured, counted_ns: AtomicU64::new(0), handle: Some(handle) });
        }
        Ok(engine)
    }

    /// What was measured since the last cut, for each source; the processor time is in the first.
    pub fn cut(&self) -> Vec<Record> {
        let plan = &self.common.plan;
        let mut all = empty(plan.sources.len(), plan.keep);
        for thread in &self.threads {
            // The new records are made before the lock is held: the sender waits for nothing.
            let empty = empty(plan.sources.len(), plan.keep);
            let records = std::mem::replace(&mut *thread.measured.records.lock(), empty);
            let busy_ns = thread.measured.busy_ns.load(Ordering::Relaxed);
            all[0].busy_ns += busy_ns - thread.counted_ns.swap(busy_ns, Ordering::Relaxed);
            all.iter_mut().zip(records).for_each(|(sum, record)| sum.add(record));
        }
        all
    }

    /// Answers since the last cut.
    pub fn answers(&self) -> u64 {
        let of_thread = |thread: &Running| thread.measured.records.lock().iter().map(Record::answers).sum::<u64>();
        self.threads.iter().map(of_thread).sum()
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
    if plan.sources.is_empty() {
        return Err(wrong("a load needs a request"));
    }
    plan.sources.iter().try_for_each(|source| check_source(source, &plan.pace))
}

fn check_source(source: &Source, pace: &Loop) -> Result<(), ClientError> {
    let fits = |request: &Prepared| match request {
        Prepared::Http(_) => source.target.wire == Wire::Http,
        Prepared::Grpc { .. } | Prepared::Stream { .. } => source.target.wire == Wire::Grpc,
        Prepared::OfSequence(_) => source.sequences.is_some(),
    };
    if source.requests.is_empty() {
        return Err(wrong("a load needs a request"));
    }
    if !source.requests.iter().all(fits) {
        return Err(wrong("a request of the load is for another protocol than its target"));
    }
    source.sequences.as_ref().map_or(Ok(()), |sequences| check_sequences(sequences, &source.requests, pace))
}

fn check_sequences(sequences: &Sequences, requests: &[Prepared], pace: &Loop) -> Result<(), ClientError> {
    let is_wrong = |chain: &Range<usize>| chain.is_empty() || chain.end > requests.len();
    if sequences.chains.is_empty() || sequences.chains.iter().any(is_wrong) {
        return Err(wrong("a chain has no requests"));
    }
    if !requests.iter().all(|request| matches!(request, Prepared::OfSequence(_))) {
        return Err(wrong("a request of a sequence has no place for its id"));
    }
    match (pace, sequences.most()) {
        (_, 0) => Err(wrong("sequences need an id")),
        (Loop::Closed { callers }, most) if callers.get() > most => {
            Err(wrong(format!("{callers} callers need as many sequences under way: there may be {most}")))
        }
        (Loop::Waves(_), _) => Err(wrong("requests of sequences are not sent in waves")),
        _ => Ok(()),
    }
}

fn wrong(text: impl Into<String>) -> ClientError {
    ClientError::new(Kind::Connect, text)
}
