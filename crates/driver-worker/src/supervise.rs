//! The life of a worker: started, watched, ended, and started again.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use alipes_protocol::InferError;
use alipes_protocol::limits::WORKER_SILENCE;
use alipes_runtime::model::{Gone, ModelVersion};
use alipes_stats::events::WorkerState;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::{task, time};

use super::claims::{ClaimWatch, LOOK_INTERVAL, Look, Verdict};
use super::exits::{load_error, on_exit, report_exit};
use super::faults::{Backoff, Fault, HEALTHY_AFTER, Lived};
use super::peer::{Ending, Peer};
use super::process::Inherited;
use super::receive::Drained;
use super::warmup::warm_up;
use super::worker::{State, Worker};
use super::{new_link, place, receive};

/// How long after its last request a model gives unused memory back: long enough that a pause between two bursts costs
/// nothing, since memory that was given back is zeroed by the system when it is used again.
const IDLE: Duration = Duration::from_secs(5);

/// How often limits are checked.
const TICK: Duration = Duration::from_millis(100);

/// Whether the first start has succeeded; sent once to the load of the model.
pub type FirstStart = Sender<Result<(), InferError>>;

/// How a worker's process came to its end.
enum End {
    /// It was asked to leave and did.
    Left,
    Fault(Fault),
}

/// Keeps a worker alive until it is asked to stop. Ends only when its process has.
pub async fn supervise(worker: Arc<Worker>, first: FirstStart, gone: Arc<Gone>) {
    let mut first = Some(first);
    let mut backoff = Backoff::default();
    loop {
        let began = alipes_clock::now();
        let end = live(&worker, &mut first).await.unwrap_or_else(|error| End::Fault(start_fault(&worker, &error)));
        let fault = match end {
            End::Left => Fault::Start("it was stopped".into()),
            End::Fault(fault) => fault,
        };
        let lived = lived(&worker, began);
        on_exit(&worker, &fault);
        if let Some(first) = first.take() {
            let _ = first.send(Err(load_error(&worker, &fault)));
            break;
        }
        if worker.is_leaving() {
            worker.stopping.ask();
        }
        if worker.stopping.is_requested() {
            break;
        }
        let pause = backoff.pause(lived);
        report_exit(&worker, &fault, lived, pause);
        if fault == Fault::Orphaned {
            worker.stopping.wait().await;
            break;
        }
        tokio::select! {
            () = time::sleep(pause) => {}
            () = worker.stopping.wait() => break,
        }
        worker.restarts.fetch_add(1, Ordering::Relaxed);
        worker.log(WorkerState::Restarting, "is started again".into());
    }
    if worker.is_leaving() {
        give_turns_back(&worker);
    }
    if let Some(supervisor) = worker.supervisor.upgrade() {
        supervisor.leave(&worker);
    }
    drop(gone);
}

/// Why an instance could not be started.
fn start_fault(worker: &Worker, error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset if worker.host.is_script() => Fault::Orphaned,
        _ => Fault::Start(error.to_string()),
    }
}

/// Lets go of the turns of a worker that will not come back, while its model goes on.
fn give_turns_back(worker: &Worker) {
    let parked = std::mem::take(&mut worker.state.lock().parked);
    if let Some(model) = worker.model() {
        parked.into_iter().for_each(|turn| model.driver.start(&model, turn));
    }
}

/// What a process has done since it began, asked at its end.
fn lived(worker: &Worker, began: Instant) -> Lived {
    let useful = worker.useful.swap(false, Ordering::Relaxed);
    match (worker.is_up(), useful) {
        (false, _) => Lived::Never,
        (true, _) if alipes_clock::elapsed(began) > HEALTHY_AFTER => Lived::Long,
        (true, true) => Lived::Usefully,
        (true, false) => Lived::InVain,
    }
}

/// One process from its start to its end.
async fn live(worker: &Arc<Worker>, first: &mut Option<FirstStart>) -> io::Result<End> {
    let link = new_link(worker.slots, worker.response_bytes)?;
    let bell = link.doorbell_fd().try_clone_to_owned()?;
    link.set_verbose(worker.context.upgrade().is_some_and(|context| context.log.is_verbose()));
    let inherited = Inherited {
        link: link.link_fd(),
        requests: worker.arena.fd(),
        doorbell: link.doorbell_fd(),
        setup: &worker.setup,
    };
    let process = worker.host.start(inherited).await?;
    *worker.process.lock() = worker.host.process_of(&process);
    let exit = watched(process.exit().try_clone_to_owned()?)?;
    let bell = watched(bell)?;
    worker.state.lock().link = Some(link);
    // The log's wish may have changed while nobody could reach the link.
    worker.pass_on_verbosity();
    let (warming, draining, fault, claims, leaving) = Default::default();
    let started = alipes_clock::now();
    let mut life = Life { worker, process, first, warming, draining, fault, claims, started, leaving };
    // Arms the doorbell. A script may have said that the model is ready by now, for which nobody rang.
    life.listen();
    let (mut ticks, mut looks) = (ticks_of(TICK), ticks_of(LOOK_INTERVAL));
    let mut tidy = true;
    let idle = time::sleep(IDLE);
    // Made once: each message of the worker would have them queue for their events, and leave the queue, again.
    let (exited, damaged, stopped) = (exit.readable(), worker.damage.wait(), worker.stopping.wait());
    tokio::pin!(idle, exited, damaged, stopped);
    loop {
        tokio::select! {
            ready = bell.readable() => {
                ready?.clear_ready();
                life.listen();
                if std::mem::take(&mut tidy) {
                    idle.as_mut().reset(time::Instant::now() + IDLE);
                }
            }
            () = idle.as_mut(), if !tidy => {
                tidy = worker.arena.used_bytes() == 0;
                if tidy {
                    // Beside this thread: the system takes a while for gigabytes.
                    let arena = Arc::clone(&worker.arena);
                    drop(task::spawn_blocking(move || arena.trim()));
                } else {
                    idle.as_mut().reset(time::Instant::now() + IDLE);
                }
            }
            _ = &mut exited => {
                life.listen();
                while life.draining.is_some() {
                    let drained = outcome(&mut life.draining).await;
                    life.drained(drained);
                }
                return Ok(life.end());
            }
            outcome = outcome(&mut life.warming) => life.warmed(outcome),
            drained = outcome(&mut life.draining) => life.drained(drained),
            damage = &mut damaged => {
                life.fail(Fault::Violation(damage));
                damaged.set(worker.damage.wait());
            }
            _ = ticks.tick(), if life.is_limited() => life.check_limits(),
            () = worker.placed.notified(), if life.claims.is_none() => {
                life.claims = Some(ClaimWatch::new(alipes_clock::now()));
                looks.reset();
            }
            _ = looks.tick(), if life.claims.is_some() => life.watch_claims(),
            () = &mut stopped, if life.leaving.is_none() => life.stop(),
        }
    }
}

fn ticks_of(interval: Duration) -> time::Interval {
    let mut ticks = time::interval(interval);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    ticks
}

fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same, until the registration is dropped with it.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

/// What a supervisor waits for beside the worker.
type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The outcome of what is under way; never there where nothing is.
async fn outcome<T>(running: &mut Option<Running<T>>) -> T {
    match running {
        Some(running) => running.await,
        None => pending().await,
    }
}

/// A running process and what is known of it.
struct Life<'a> {
    worker: &'a Arc<Worker>,
    process: Peer,
    first: &'a mut Option<FirstStart>,
    // While it executes its samples.
    warming: Option<Running<Result<(), InferError>>>,
    // While another thread takes in what is too long for this one.
    draining: Option<Running<Drained>>,
    fault: Option<Fault>,
    // While it is looked whether the worker claims what it is given.
    claims: Option<ClaimWatch>,
    started: Instant,
    // Since when it was asked to leave.
    leaving: Option<Instant>,
}

impl Life<'_> {
    /// Takes in what the worker says, until the doorbell is armed again.
    fn listen(&mut self) {
        // Once it has ended, this is called again.
        while self.draining.is_none() {
            match self.worker.model() {
                Some(model) => self.take_in(&model),
                None => {
                    self.ask_to_leave();
                    receive::drain_final(self.worker);
                }
            }
            if self.worker.state.lock().link.as_ref().is_none_or(|link| link.arm()) {
                return;
            }
        }
    }

    fn take_in(&mut self, model: &Arc<ModelVersion>) {
        let drained = receive::drain(self.worker, model);
        if drained.is_long {
            let (worker, model) = (Arc::clone(self.worker), Arc::clone(model));
            let draining = task::spawn_blocking(move || receive::drain(&worker, &model));
            self.draining = Some(Box::pin(async { draining.await.unwrap_or_default() }));
        }
        self.heard(model, drained);
    }

    /// Another thread has taken in what the worker said.
    fn drained(&mut self, drained: Drained) {
        self.draining = None;
        if let Some(model) = self.worker.model() {
            self.heard(&model, drained);
        }
        self.listen();
    }

    fn heard(&mut self, model: &Arc<ModelVersion>, Drained { ready, refused, .. }: Drained) {
        if ready && model.samples.is_empty() {
            self.open(model);
        } else if ready {
            self.warming = Some(Box::pin(warm_up(Arc::clone(self.worker))));
        }
        if let Some(text) = refused {
            self.fault = Some(Fault::Start(text));
        }
    }

    /// The samples have been executed, or one has failed.
    fn warmed(&mut self, outcome: Result<(), InferError>) {
        self.warming = None;
        match (outcome, self.worker.model()) {
            (Ok(()), Some(model)) => self.open(&model),
            (Ok(()), None) => self.ask_to_leave(),
            (Err(error), _) => self.fail(Fault::Warmup(error.message)),
        }
    }

    /// Has requests placed, those first that wait for this worker.
    fn take_requests(&self, model: &Arc<ModelVersion>) {
        let parked = {
            let mut state = self.worker.state.lock();
            state.open = self.leaving.is_none();
            std::mem::take(&mut state.parked)
        };
        parked.into_iter().for_each(|turn| model.driver.start(model, turn));
    }

    /// The worker is ready: requests may come.
    fn open(&mut self, model: &Arc<ModelVersion>) {
        self.worker.up.store(true, Ordering::Release);
        model.failing.store(false, Ordering::Release);
        match self.first.take() {
            Some(first) => drop(first.send(Ok(()))),
            None => self.worker.log(WorkerState::Ready, "takes requests again".into()),
        }
        self.take_requests(model);
    }

    fn is_limited(&self) -> bool {
        let limits = &self.worker.limits;
        limits.execute_timeout.is_some()
            || limits.max_memory_bytes.is_some()
            || limits.start_timeout.is_some_and(|_| !self.worker.is_up())
            || self.leaving.is_some()
    }

    fn check_limits(&mut self) {
        let limits = self.worker.limits;
        if self.leaving.is_some_and(|since| alipes_clock::elapsed(since) >= limits.stop_timeout) {
            self.process.kill();
        }
        if let Some(limit) =
            limits.start_timeout.filter(|limit| !self.worker.is_up() && alipes_clock::elapsed(self.started) > *limit)
        {
            self.fail(Fault::Start(format!("its model was not loaded within {} s", limit.as_secs_f64())));
        }
        if let (Some(allowed), Some(found)) = (limits.max_memory_bytes, self.process.resident_bytes())
            && found > allowed
        {
            self.fail(Fault::Memory(found, allowed));
        }
        if let Some(limit) = limits.execute_timeout.filter(|limit| self.longest_execution() > *limit) {
            self.fail(Fault::Stalled(limit));
        }
    }

    /// For how long the oldest execution has been running, as far as was seen.
    fn longest_execution(&self) -> Duration {
        let mut guard = self.worker.state.lock();
        let state = &mut *guard;
        let Some(link) = state.link.as_ref() else { return Duration::ZERO };
        let running = state.slots.all().filter(|(_, request)| !request.executed);
        let since = running.filter_map(|(slot, request)| {
            if request.claimed.is_none() && link.is_claimed(slot, request.ticket) {
                request.claimed = Some(alipes_clock::now());
            }
            request.claimed
        });
        since.min().map_or(Duration::ZERO, alipes_clock::elapsed)
    }

    /// Sees to it that requests do not stay with a worker that does not claim them.
    fn watch_claims(&mut self) {
        let mut state = self.worker.state.lock();
        let look = look(&mut state);
        let Some(verdict) = self.claims.as_mut().map(|claims| claims.judge(alipes_clock::now(), look)) else { return };
        if verdict == Verdict::Rest {
            // Under the lock: the thread that places the next request wakes this task again.
            state.watched = false;
            self.claims = None;
        }
        drop(state);
        match (verdict, self.worker.model()) {
            (Verdict::TakeOver, Some(model)) => {
                let suspended = place::take_over(&model, self.worker);
                self.claims.iter_mut().for_each(|claims| claims.suspended = suspended);
            }
            (Verdict::PassOn, Some(model)) => place::pass_on(&model, self.worker),
            (Verdict::Resume, Some(model)) => self.take_requests(&model),
            (Verdict::Silent, _) => self.fail(Fault::Silent(WORKER_SILENCE)),
            _ => {}
        }
    }

    /// Ends the process; its end is seen like any other.
    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.process.kill();
    }

    /// It was asked to leave, or is to end at once.
    fn stop(&mut self) {
        if self.worker.stopping.is_immediate() {
            self.fail(Fault::Cancelled);
        }
        self.ask_to_leave();
    }

    fn ask_to_leave(&mut self) {
        self.leaving.get_or_insert_with(alipes_clock::now);
        let mut state = self.worker.state.lock();
        state.open = false;
        if let Some(link) = &state.link {
            link.stop();
        }
    }

    fn end(mut self) -> End {
        let status = self.process.ended();
        match (self.fault.take(), status) {
            (Some(fault), _) => End::Fault(fault),
            (None, _) if self.leaving.is_some() => End::Left,
            (None, Some(Ending::Exit(status))) => End::Fault(Fault::Ended(status)),
            (None, Some(Ending::Detached)) => End::Fault(Fault::Detached),
            (None, None) => End::Fault(Fault::Start("its end could not be seen".into())),
        }
    }
}

/// What a worker does with what it holds.
fn look(state: &mut State) -> Look {
    let Some(link) = state.link.as_mut() else { return Look::default() };
    let caught_up = link.is_caught_up();
    let (mut executes, mut unclaimed) = (false, None);
    for (slot, request) in state.slots.all().filter(|(_, request)| !request.executed) {
        if link.is_claimed(slot, request.ticket) {
            executes = true;
        } else {
            unclaimed = Some(unclaimed.map_or(request.ticket, |oldest: u64| oldest.min(request.ticket)));
        }
    }
    Look { holds: !state.slots.is_empty(), executes, caught_up, unclaimed }
}
