//! One thread that sends and receives.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use crate::arrivals::Schedule;
use crate::caller::Caller;
use crate::line::{Line, Shared};
use crate::plan::{Loop, Waves};
use crate::queue::{Due, Put, Queue};
use crate::thread::{Common, Measured, Part, Thread};
use crate::timer::Timer;
use crate::waves::Wave;

/// How often a thread notes how much processor time it has used.
const NOTE_TIME: Duration = Duration::from_millis(20);

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
    let thread = Thread::new(common, measured, part);
    LocalSet::new().block_on(&runtime, drive(Rc::new(thread), stop))
}

async fn drive(thread: Rc<Thread>, mut stop: watch::Receiver<Option<Duration>>) -> io::Result<()> {
    let queues = thread.queues();
    let mut callers = JoinSet::new();
    let time = tokio::task::spawn_local(note_time(thread.measured.clone()));
    let work = async {
        match &thread.common.plan.pace {
            Loop::Closed { callers: number } => {
                let mut lines: Vec<_> = (0..queues.len()).map(|source| Lines::new(&thread, source)).collect();
                for _ in 0..thread.part.share(number.get()) {
                    let own = lines.iter_mut().map(Lines::next).collect();
                    callers.spawn_local(Caller::new(thread.clone(), own, 0).closed());
                }
            }
            Loop::Waves(waves) => send_waves(&thread, waves, &mut callers).await,
            Loop::Open { schedule, in_flight } => {
                Dispatcher::new(&thread, in_flight.get(), &queues).run(schedule, &mut callers).await?;
                for queue in &queues {
                    queue.close(false);
                }
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
        for (source, queue) in queues.iter().enumerate() {
            thread.measured.records.lock()[source].dropped += queue.close(true) as u64;
        }
        // What does not end in time is cut off with its connection.
        let _ = tokio::time::timeout(grace, async { while callers.join_next().await.is_some() {} }).await;
    }
    time.abort();
    thread.measured.busy_ns.store(alipes_clock::thread_cpu_ns(), Ordering::Relaxed);
    outcome
}

/// Begins wave after wave, until all requests were sent or nothing more is to be.
async fn send_waves(thread: &Rc<Thread>, waves: &Waves, callers: &mut JoinSet<()>) {
    let mut lines: Vec<_> = (0..thread.targets.len()).map(|source| Lines::new(thread, source)).collect();
    let wave = Rc::new(Wave::default());
    let (mut left, mut size) = (waves.all.get(), waves.first.get());
    while left > 0 {
        size = size.min(left);
        wave.begin(size);
        for _ in 0..size {
            let Some((source, nth)) = thread.next() else { return };
            let caller = Caller::new(thread.clone(), vec![lines[source].next()], source);
            callers.spawn_local(caller.once(source, nth, waves.responses.get(), wave.clone()));
        }
        wave.over().await;
        left -= size;
        size = waves.further.get();
    }
}

/// The lines of a thread to one source, of which over gRPC several share a connection.
struct Lines<'a> {
    thread: &'a Thread,
    source: usize,
    shared: Shared,
    opened: usize,
    is_small: bool,
}

impl<'a> Lines<'a> {
    fn new(thread: &'a Thread, source: usize) -> Lines<'a> {
        let is_small = thread.common.plan.sources[source].is_small();
        Lines { thread, source, shared: Shared::default(), opened: 0, is_small }
    }

    fn next(&mut self) -> Line {
        if self.opened.is_multiple_of(self.thread.common.plan.calls_per_connection.get()) {
            self.shared = Shared::default();
        }
        self.opened += 1;
        Line::new(self.thread.targets[self.source].clone(), self.shared.clone(), self.is_small)
    }
}

/// Puts requests into the queues of their sources when they are due, and calls in more callers while all are busy.
struct Dispatcher<'a> {
    thread: &'a Rc<Thread>,
    sources: Vec<Sending<'a>>,
}

/// The callers of one source.
struct Sending<'a> {
    source: usize,
    queue: &'a Rc<Queue>,
    lines: Lines<'a>,
    callers: usize,
    most: usize,
}

impl<'a> Dispatcher<'a> {
    fn new(thread: &'a Rc<Thread>, in_flight: usize, queues: &'a [Rc<Queue>]) -> Dispatcher<'a> {
        let of_source = |(source, queue): (usize, &'a Rc<Queue>)| {
            let sequences = thread.common.plan.sources[source].sequences.as_ref();
            let all = sequences.map_or(in_flight, |sequences| in_flight.min(sequences.most()));
            let most = thread.part.share(all).max(1);
            Sending { source, queue, lines: Lines::new(thread, source), callers: 0, most }
        };
        Dispatcher { thread, sources: queues.iter().enumerate().map(of_source).collect() }
    }

    async fn run(mut self, schedule: &Schedule, callers: &mut JoinSet<()>) -> io::Result<()> {
        let (timer, origin) = (Timer::new()?, alipes_clock::now());
        let part = self.thread.part;
        for moment in schedule.moments().skip(part.number).step_by(part.of) {
            let due = origin + moment;
            timer.until(due).await?;
            let Some((source, nth)) = self.thread.next() else { break };
            let request = self.thread.request(source, nth);
            self.put(source, Due { request, due, dispatched: alipes_clock::now() }, callers);
        }
        Ok(())
    }

    fn put(&mut self, source: usize, due: Due, callers: &mut JoinSet<()>) {
        let sending = &mut self.sources[source];
        match sending.queue.put(due) {
            Put::Claimed => {}
            Put::Dropped => self.thread.measured.records.lock()[source].dropped += 1,
            Put::Waits => {
                // Sequences that are begun go on in turn, so all that may be are.
                let further = if self.thread.common.chains[source].is_some() { sending.most } else { 1 };
                for _ in 0..further.min(sending.most - sending.callers) {
                    sending.callers += 1;
                    let line = sending.lines.next();
                    let caller = Caller::new(self.thread.clone(), vec![line], source);
                    callers.spawn_local(caller.open(sending.source, sending.queue.clone()));
                }
            }
        }
    }
}

async fn note_time(measured: Arc<Measured>) {
    loop {
        measured.busy_ns.store(alipes_clock::thread_cpu_ns(), Ordering::Relaxed);
        tokio::time::sleep(NOTE_TIME).await;
    }
}
