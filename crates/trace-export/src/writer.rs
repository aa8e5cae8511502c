//! The thread that writes records; requests only queue their records for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alipes_protocol::trace::{Context, Record};
use alipes_spec::trace::Destination;
use alipes_stats::events::{Event, EventQueue};
use parking_lot::Mutex;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::file::{self, TraceFile};
use crate::otlp;

/// Capacity of the writer's queue; further traces are dropped, and the log says so.
const MAX_WAITING: usize = 1024;

/// Most bytes of records in memory before they are written, for each of the settings in force.
const MAX_PENDING_BYTES: usize = 1 << 20;

/// Interval between two checks whether the thread has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Levels of lines in the log.
pub(super) const ERROR: u8 = 0;
pub(super) const WARNING: u8 = 1;
pub(super) const INFO: u8 = 2;

/// A job of the writer.
pub enum Job {
    /// A traced request has ended.
    Finished(Finished),
    /// These settings trace no more requests.
    Retired {
        /// Their number.
        settings: u64,
    },
    /// The file may have been moved away.
    Reopen,
}

/// The records of a request that has ended, and of the requests that it caused.
pub struct Finished {
    /// Number of the settings that sampled it.
    pub settings: u64,
    /// Traces per numbered file.
    pub log_frequency: u32,
    /// Whether it is the last trace of the settings.
    pub last: bool,
    /// Its trace context, where spans are sent.
    pub context: Option<Context>,
    /// Its records.
    pub records: Vec<Record>,
}

/// The queue of the writer, whose thread starts with the first record.
pub struct Outbox {
    destination: Destination,
    events: Arc<EventQueue>,
    dropped: AtomicU64,
    state: Mutex<State>,
}

enum State {
    Idle,
    Open(Sender<Job>, JoinHandle<()>),
    Closed,
}

impl Outbox {
    /// A queue without a thread yet.
    pub fn new(destination: Destination, events: Arc<EventQueue>) -> Outbox {
        Outbox { destination, events, dropped: AtomicU64::new(0), state: Mutex::new(State::Idle) }
    }

    /// Queues a job; starts the thread if need be; never waits.
    pub fn post(&self, job: Job) {
        let mut state = self.state.lock();
        if matches!(*state, State::Idle) {
            *state = self.start();
        }
        self.send(&state, job);
    }

    /// Queues a job if the thread runs.
    pub fn post_if_open(&self, job: Job) {
        self.send(&self.state.lock(), job);
    }

    fn send(&self, state: &State, job: Job) {
        if let State::Open(sender, _) = state
            && sender.try_send(job).is_err()
            && self.dropped.fetch_add(1, Ordering::Relaxed) == 0
        {
            let text = "traces are dropped: requests are traced faster than the traces can be written".to_owned();
            self.events.push(Event::Notice { level: WARNING, text });
        }
    }

    fn start(&self) -> State {
        let (sender, jobs) = channel(MAX_WAITING);
        let (destination, events) = (self.destination.clone(), Arc::clone(&self.events));
        let writer = thread::Builder::new().name("alipes-trace".into());
        match writer.spawn(move || write(destination, jobs, &events)) {
            Ok(thread) => State::Open(sender, thread),
            Err(error) => {
                let text = format!("requests are not traced: the system refuses a thread: {error}");
                self.events.push(Event::Notice { level: ERROR, text });
                State::Closed
            }
        }
    }

    /// Closes the queue and waits until the rest is written, or until the deadline.
    #[allow(clippy::disallowed_methods, reason = "a thread cannot be joined with a deadline; only a stop waits here")]
    pub fn close(&self, deadline: Instant) {
        let state = std::mem::replace(&mut *self.state.lock(), State::Closed);
        if let State::Open(sender, thread) = state {
            drop(sender);
            while !thread.is_finished() && alipes_clock::now() < deadline {
                thread::sleep(LOOK);
            }
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}

fn write(destination: Destination, mut jobs: Receiver<Job>, events: &Arc<EventQueue>) {
    match destination {
        Destination::File { path } => {
            let mut files = Files::new(path, Arc::clone(events));
            while let Some(job) = jobs.blocking_recv() {
                files.take(job);
            }
            files.finish();
        }
        Destination::Collector(config) => otlp::export(&config, jobs, events),
    }
}

/// Records that wait for Triton's trace files.
struct Files {
    file: TraceFile,
    events: Arc<EventQueue>,
    // By the number of the settings.
    pending: HashMap<u64, PendingTraces>,
}

/// Traces of one of the settings that wait for their file.
#[derive(Default)]
struct PendingTraces {
    text: String,
    traces: u32,
    /// Whether they go into numbered files.
    numbered: bool,
}

impl Files {
    fn new(path: String, events: Arc<EventQueue>) -> Files {
        Files { file: TraceFile::new(path), events, pending: HashMap::new() }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Retired { settings } => {
                if let Some(pending) = self.pending.remove(&settings) {
                    self.save(pending);
                }
            }
            Job::Reopen => {
                let let_go = self.file.let_go_if_moved();
                self.log_error(let_go);
            }
            Job::Finished(Finished { settings, log_frequency, last, records, .. }) => {
                let pending = self.pending.entry(settings).or_default();
                pending.add(&records, log_frequency);
                let full = log_frequency > 0 && pending.traces >= log_frequency;
                if full || last || pending.text.len() > MAX_PENDING_BYTES {
                    // Source: Triton. The last traces of a limited number go into a file with a number, too.
                    pending.numbered |= last;
                    let pending = std::mem::take(pending);
                    self.save(pending);
                }
            }
        }
    }

    fn finish(mut self) {
        for pending in std::mem::take(&mut self.pending).into_values() {
            self.save(pending);
        }
        let ended = self.file.finish();
        self.log_error(ended);
    }

    fn save(&mut self, pending: PendingTraces) {
        if pending.traces > 0 {
            let saved = self.file.save(&pending.text, pending.numbered);
            self.log_error(saved);
        }
    }

    fn log_error(&self, outcome: std::io::Result<()>) {
        if let Err(error) = outcome {
            let text = format!("failed creating trace file: {error}");
            self.events.push(Event::Notice { level: ERROR, text });
        }
    }
}

impl PendingTraces {
    fn add(&mut self, records: &[Record], log_frequency: u32) {
        if self.traces > 0 {
            self.text.push(',');
        }
        file::render(&mut self.text, records);
        self.traces += 1;
        self.numbered = log_frequency > 0;
    }
}
