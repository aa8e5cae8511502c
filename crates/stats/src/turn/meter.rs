//! The meter of a network thread: its longest turn, and reports of long ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use alipes_protocol::limits::{TURN_CPU_TIME, TURN_TIME};
use alipes_spec::TurnClock;
use compact_str::CompactString;
use parking_lot::Mutex;

use super::kind::Task;
use crate::events::{Event, EventQueue};

/// Shortest time between two lines of one thread about turns that have ended.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// A request that a turn worked on.
pub(super) struct Request {
    /// Its route or method.
    pub(super) what: &'static str,
    /// Its model; empty where it has none.
    pub(super) model: CompactString,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { what, model } = self;
        if model.is_empty() { f.write_str(what) } else { write!(f, "{what} for model '{model}'") }
    }
}

/// What a network thread has shown so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnReading {
    /// The thread's number.
    pub thread: usize,
    /// Its longest turn, be it the one that it is in.
    pub longest: Duration,
    /// Turns that have ended and were longer than the limit.
    pub long_turns: u64,
}

/// The meters of a server's network threads.
pub struct TurnMeters {
    clock: TurnClock,
    events: Arc<EventQueue>,
    meters: Mutex<Vec<Arc<TurnMeter>>>,
}

impl TurnMeters {
    /// Meters with this clock, which report long turns to the log.
    pub fn new(clock: TurnClock, events: Arc<EventQueue>) -> TurnMeters {
        TurnMeters { clock, events, meters: Mutex::default() }
    }

    /// A meter for one more thread.
    pub(super) fn add(&self, thread: usize) -> Arc<TurnMeter> {
        let meter = Arc::new(TurnMeter::new(thread, self.clock, Arc::clone(&self.events)));
        self.meters.lock().push(Arc::clone(&meter));
        meter
    }

    /// What the threads have shown so far, by their numbers.
    pub fn readings(&self) -> Vec<TurnReading> {
        let mut readings: Vec<_> = self.meters.lock().iter().map(|meter| meter.reading()).collect();
        readings.sort_unstable_by_key(|reading| reading.thread);
        readings
    }

    /// Reports turns that are still under way and have been so for longer than the limit, each once. A turn that never
    /// ends would be reported by nobody else.
    pub fn report_overdue(&self) {
        self.meters.lock().iter().for_each(|meter| meter.report_overdue());
    }
}

/// The meter of one network thread, which alone writes most of it.
pub(super) struct TurnMeter {
    thread: usize,
    clock: TurnClock,
    /// By how much the clock may show a turn longer than it was.
    slack_ns: u64,
    limit_ns: u64,
    /// When the turn under way began; 0 between turns.
    begun_ns: AtomicU64,
    /// The number of its task.
    task: AtomicU8,
    longest_ns: AtomicU64,
    long_turns: AtomicU64,
    /// When the turn began that was last reported as overdue.
    overdue_ns: AtomicU64,
    reports: Mutex<Reports>,
    events: Arc<EventQueue>,
}

/// When the log last heard of the thread, and what it did not hear since.
#[derive(Default)]
struct Reports {
    last_ns: Option<u64>,
    left_out: u64,
}

impl TurnMeter {
    fn new(thread: usize, clock: TurnClock, events: Arc<EventQueue>) -> TurnMeter {
        let (slack_ns, limit) = match clock {
            // A turn may see a tick that began long before it: what is shown is what it took at least.
            TurnClock::Wall => (alipes_clock::coarse_tick_ns(), TURN_TIME),
            TurnClock::Cpu => (0, TURN_CPU_TIME),
        };
        TurnMeter {
            thread,
            clock,
            slack_ns,
            limit_ns: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            begun_ns: AtomicU64::new(0),
            task: AtomicU8::new(0),
            longest_ns: AtomicU64::new(0),
            long_turns: AtomicU64::new(0),
            overdue_ns: AtomicU64::new(0),
            reports: Mutex::default(),
            events,
        }
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        match self.clock {
            TurnClock::Wall => alipes_clock::coarse_ns(),
            TurnClock::Cpu => alipes_clock::thread_cpu_ns(),
        }
    }

    fn took_ns(&self, begun_ns: u64, now_ns: u64) -> u64 {
        now_ns.saturating_sub(begun_ns).saturating_sub(self.slack_ns)
    }

    /// A turn of this task begins; gives the moment. A turn that ends in a panic lasts until the next one begins.
    #[inline]
    pub(super) fn begin(&self, task: Task) -> u64 {
        let now_ns = self.now_ns();
        self.task.store(task as u8, Ordering::Relaxed);
        self.begun_ns.store(now_ns, Ordering::Relaxed);
        now_ns
    }

    /// The turn has ended.
    #[inline]
    pub(super) fn end(&self, task: Task, begun_ns: u64, request: Option<&Request>) {
        self.begun_ns.store(0, Ordering::Relaxed);
        let now_ns = self.now_ns();
        let took_ns = self.took_ns(begun_ns, now_ns);
        if took_ns > self.longest_ns.load(Ordering::Relaxed) {
            self.longest_ns.store(took_ns, Ordering::Relaxed);
        }
        if took_ns >= self.limit_ns {
            self.report(task, begun_ns, now_ns, request);
        }
    }

    #[cold]
    fn report(&self, task: Task, begun_ns: u64, now_ns: u64, request: Option<&Request>) {
        self.long_turns.fetch_add(1, Ordering::Relaxed);
        let was_announced = self.overdue_ns.load(Ordering::Relaxed) == begun_ns;
        let Some(left_out) = self.reports.lock().enter(now_ns, self.clock == TurnClock::Cpu || was_announced) else {
            return;
        };
        let took_s = seconds(self.took_ns(begun_ns, now_ns));
        let clock = if self.clock == TurnClock::Cpu { " of processor time" } else { "" };
        let task = task.words();
        let request = request.map(|request| format!(" ({request})")).unwrap_or_default();
        let more = if left_out > 0 { format!("; {left_out} more such turns were not logged") } else { String::new() };
        self.notice(format!(
            "network thread {} spent {took_s:.3} s{clock} in one turn on {task}{request}; its other connections \
             waited{more}",
            self.thread
        ));
    }

    /// Time of the processor passes for the thread alone, so that nobody else can tell how long it is in a turn.
    fn under_way(&self) -> Option<(u64, u64)> {
        let begun_ns = self.begun_ns.load(Ordering::Relaxed);
        let visible = begun_ns != 0 && self.clock == TurnClock::Wall;
        visible.then(|| (begun_ns, self.took_ns(begun_ns, self.now_ns())))
    }

    fn report_overdue(&self) {
        let Some((begun_ns, took_ns)) = self.under_way().filter(|(_, took_ns)| *took_ns >= self.limit_ns) else {
            return;
        };
        if self.overdue_ns.swap(begun_ns, Ordering::Relaxed) != begun_ns {
            let task = Task::numbered(self.task.load(Ordering::Relaxed)).words();
            let (thread, took_s) = (self.thread, seconds(took_ns));
            self.notice(format!(
                "network thread {thread} has spent {took_s:.3} s in one turn on {task} so far; its other \
                 connections wait"
            ));
        }
    }

    fn notice(&self, text: String) {
        self.events.push(Event::Notice { level: 1, text });
    }

    fn reading(&self) -> TurnReading {
        let ended_ns = self.longest_ns.load(Ordering::Relaxed);
        let longest_ns = self.under_way().map_or(ended_ns, |(_, took_ns)| ended_ns.max(took_ns));
        TurnReading {
            thread: self.thread,
            longest: Duration::from_nanos(longest_ns),
            long_turns: self.long_turns.load(Ordering::Relaxed),
        }
    }
}

impl Reports {
    /// Whether the log hears of one more turn, and if so, of how many it did not hear before.
    fn enter(&mut self, now_ns: u64, always: bool) -> Option<u64> {
        let since = |last_ns| Duration::from_nanos(now_ns.saturating_sub(last_ns));
        if !always && self.last_ns.is_some_and(|last_ns| since(last_ns) < REPORT_INTERVAL) {
            self.left_out += 1;
            return None;
        }
        self.last_ns = Some(now_ns);
        Some(std::mem::take(&mut self.left_out))
    }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
