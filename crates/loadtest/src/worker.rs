//! One thread that sends and receives.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::arrivals::Schedule;
use crate::line::{Line, Shared};
use crate::plan::{Loop, Plan};
use crate::queue::{Due, Put, Queue};
use crate::record::{Record, Sample, Times};
use crate::timer::Timer;

/// Between two attempts to reach a server that is not there.
const RETRY: Duration = Duration::from_millis(100);

/// How often a thread notes how much processor time it has used.
const NOTE_TIME: Duration = Duration::from_millis(20);

/// What the threads of a load share.
pub struct Common {
    /// What is done.
    pub plan: Plan,
    /// Nothing more is to be sent.
    pub stopping: AtomicBool,
    /// Requests that were begun.
    pub begun: AtomicU64,
}

/// What a thread shares with who measures.
#[derive(Default)]
pub struct Measured {
    /// Since the last cut.
    pub record: Mutex<Record>,
    /// Processor time since the thread began.
    pub busy_ns: AtomicU64,
}

/// A thread's own part of the load.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number.
    pub number: usize,
    /// How many threads there are.
    pub of: usize,
}

impl Part {
    /// Its share of so many things.
    fn share(&self, all: usize) -> usize {
        (all + self.of - 1 - self.number) / self.of
    }
}

/// Runs a thread's part until it is done, or `stop` gives the time in which calls under way may still end.
///
/// # Errors
/// If the system has no descriptor left.
pub fn run(
    common: &Arc<Common>,
    measured: &Arc<Measured>,
    part: Part,
    stop: watch::Receiver<Option<Duration>>,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let target = Arc::new(common.plan.target.clone());
    let thread = Thread { common: common.clone(), measured: measured.clone(), part, target };
    LocalSet::new().block_on(&runtime, thread.run(stop))
}

struct Thread {
    common: Arc<Common>,
    measured: Arc<Measured>,
    part: Part,
    target: Arc<alipes_client::Target>,
}

impl Thread {
    async fn run(self, mut stop: watch::Receiver<Option<Duration>>) -> io::Result<()> {
        let thread = Rc::new(self);
        let queue = Rc::new(Queue::default());
        let mut callers = JoinSet::new();
        let time = tokio::task::spawn_local(note_time(thread.measured.clone()));
        let work = async {
            match &thread.common.plan.pace {
                Loop::Closed { callers: number } => {
                    let mut lines = Lines::new(&thread);
                    for _ in 0..thread.part.share(number.get()) {
                        callers.spawn_local(closed(thread.clone(), lines.next()));
                    }
                }
                Loop::Open { schedule, in_flight } => {
                    dispatch(&thread, schedule, in_flight.get(), &queue, &mut callers).await?;
                    queue.close(false);
                }
            }
            while callers.join_next().await.is_some() {}
            Ok(())
        };
        let outcome = tokio::select! {
            outcome = work => outcome,
            _ = stop.changed() => Ok(()),
        };
        let grace = *stop.borrow();
        if let Some(grace) = grace {
            thread.measured.record.lock().dropped += queue.close(true) as u64;
            // What does not end in time is cut off with its connection.
            let _ = tokio::time::timeout(grace, async { while callers.join_next().await.is_some() {} }).await;
        }
        time.abort();
        thread.measured.busy_ns.store(alipes_clock::thread_cpu_ns(), Ordering::Relaxed);
        outcome
    }

    /// The number of the next request that is to be begun; `None` where there is none.
    fn next(&self) -> Option<u64> {
        if self.common.stopping.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.common.begun.fetch_add(1, Ordering::Relaxed);
        self.common.plan.count.is_none_or(|count| number < count).then_some(number)
    }

    fn request(&self, number: u64) -> usize {
        (number % self.common.plan.requests.len() as u64) as usize
    }
}

/// The lines of a thread, of which over gRPC several share a connection.
struct Lines<'a> {
    thread: &'a Thread,
    shared: Shared,
    opened: usize,
}

impl<'a> Lines<'a> {
    fn new(thread: &'a Thread) -> Lines<'a> {
        Lines { thread, shared: Shared::default(), opened: 0 }
    }

    fn next(&mut self) -> Line {
        if self.opened.is_multiple_of(self.thread.common.plan.calls_per_connection.get()) {
            self.shared = Shared::default();
        }
        self.opened += 1;
        Line::new(self.thread.target.clone(), self.shared.clone())
    }
}

/// Sends the next request when the last one was answered.
async fn closed(thread: Rc<Thread>, mut line: Line) {
    while let Some(number) = thread.next() {
        let due = alipes_clock::now();
        let request = thread.request(number);
        ask(&thread, &mut line, Due { request, due, dispatched: due }).await;
    }
}

/// Puts requests into the queue when they are due, and calls in more callers while all are busy.
async fn dispatch(
    thread: &Rc<Thread>,
    schedule: &Schedule,
    in_flight: usize,
    queue: &Rc<Queue>,
    callers: &mut JoinSet<()>,
) -> io::Result<()> {
    let (timer, origin) = (Timer::new()?, alipes_clock::now());
    let most = thread.part.share(in_flight).max(1);
    let mut lines = Lines::new(thread);
    for moment in schedule.moments().skip(thread.part.number).step_by(thread.part.of) {
        let due = origin + moment;
        timer.until(due).await?;
        let Some(number) = thread.next() else { break };
        let put = queue.put(Due { request: thread.request(number), due, dispatched: alipes_clock::now() });
        match put {
            Put::Claimed => {}
            Put::Dropped => thread.measured.record.lock().dropped += 1,
            Put::Waits if callers.len() < most => {
                callers.spawn_local(open(thread.clone(), lines.next(), queue.clone()));
            }
            Put::Waits => {}
        }
    }
    Ok(())
}

/// Sends what is due.
async fn open(thread: Rc<Thread>, mut line: Line, queue: Rc<Queue>) {
    let own = Rc::new(Notify::new());
    while let Some(due) = queue.take(&own).await {
        ask(&thread, &mut line, due).await;
    }
}

async fn ask(thread: &Thread, line: &mut Line, Due { request, due, dispatched }: Due) {
    match line.open().await {
        Ok(is_new) => thread.measured.record.lock().connections += u64::from(is_new),
        Err(error) => {
            thread.measured.record.lock().failed(&error);
            tokio::time::sleep(RETRY).await;
            return;
        }
    }
    let begun = alipes_clock::now();
    let outcome = line.ask(&thread.common.plan.requests[request]).await;
    let end: Instant = alipes_clock::now();
    let mut record = thread.measured.record.lock();
    match outcome {
        Ok(received) => {
            let times = Times { due, dispatched, begun, sent: received.sent, first: received.first, end };
            record.answered(&times, received.body.len());
            if record.samples.len() < thread.common.plan.samples {
                record.samples.push(Sample { request, answer: received.body });
            }
        }
        Err(error) => record.failed(&error),
    }
}

async fn note_time(measured: Arc<Measured>) {
    loop {
        measured.busy_ns.store(alipes_clock::thread_cpu_ns(), Ordering::Relaxed);
        tokio::time::sleep(NOTE_TIME).await;
    }
}
