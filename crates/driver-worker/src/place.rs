//! From the queue into a worker's ring.

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use alipes_link::{Entry, LinkHandle, Placed, RequestHead, TensorName, TensorRef};
use alipes_protocol::limits::COPIED_AT_ONCE_BYTES;
use alipes_protocol::{Code, Datatype, InferError, Origin};
use alipes_request::check::RequestContext;
use alipes_request::completion;
use alipes_request::responder::AnswerBatch;
use alipes_runtime::executor::{Run, pool};
use alipes_runtime::model::{ModelVersion, Pending};
use alipes_scheduler::{Effect, Next};
use alipes_stats::clock;
use alipes_stats::statistics::FailureReason;
use alipes_stats::trace::context;
use alipes_stats::trace::underway::Underway;
use smallvec::SmallVec;

use super::caller::{Caller, Watch};
use super::frames::parameters_json;
use super::received::Received;
use super::request_slots::InFlight;
use super::worker::{State, Worker};
use super::{Workers, receive};

thread_local! {
    /// The requests that a turn has just taken; kept so that a turn allocates nothing.
    static BATCH: Cell<Vec<Pending>> = const { Cell::new(Vec::new()) };
}

/// Turns that are to be driven; almost always one.
type Turns = SmallVec<[usize; 4]>;

/// Drives a claimed turn until it waits, is idle, or has brought something to its worker; likewise every turn that the
/// queue claims on the way.
///
/// Gives the moment at which this turn is to be driven again, where its requests wait for company.
pub fn drive(model: &Arc<ModelVersion>, workers: &Workers, turn: usize) -> Option<Instant> {
    let mut turns: Turns = SmallVec::from_slice(&[turn]);
    let mut batch = BATCH.take();
    let mut again = None;
    let first = turn;
    while let Some(turn) = turns.pop() {
        if let Some(mut left) = take_left(workers, turn) {
            place(model, workers, turn, &mut left, &mut turns);
            continue;
        }
        if model.limited.as_ref().is_some_and(|limited| !limited.ask(model, turn)) {
            // Still claimed; driven again when its worker may execute.
            continue;
        }
        let (next, effect) = model.with_queue(|queue, now| queue.next(now, turn, &mut batch));
        follow(workers, effect, &mut turns);
        if let Some(limited) = model.limited.as_ref().filter(|_| next != Next::Take) {
            limited.give_back(turn);
        }
        match next {
            Next::Take if is_left_to_the_pool(workers, &batch) => {
                workers.left.lock().push((turn, mem::take(&mut batch)));
                pool::drive(Run { model: Arc::clone(model), instance: turn });
            }
            Next::Take => place(model, workers, turn, &mut batch, &mut turns),
            Next::WaitUntil(until) if turn == first => again = Some(until),
            Next::WaitUntil(_) => pool::drive(Run { model: Arc::clone(model), instance: turn }),
            Next::Idle => relieve(model, workers, turn, &mut turns),
        }
    }
    BATCH.set(batch);
    again
}

/// Whether this thread, which is one of the network's, would copy too much to write a batch.
fn is_left_to_the_pool(workers: &Workers, batch: &[Pending]) -> bool {
    completion::is_network_thread()
        && batch.iter().map(|pending| pending.bytes()).sum::<usize>() > COPIED_AT_ONCE_BYTES
        && batch.iter().map(|pending| copied_bytes(workers, pending)).sum::<usize>() > COPIED_AT_ONCE_BYTES
}

/// Bytes of a request that were not received where workers see them.
fn copied_bytes(workers: &Workers, pending: &Pending) -> usize {
    let inputs = pending.checked.inputs.iter();
    inputs.filter(|input| workers.arena.offset_of(&input.data).is_none()).map(|input| input.data.len()).sum()
}

/// The batch that a network thread has left with this turn.
fn take_left(workers: &Workers, turn: usize) -> Option<Vec<Pending>> {
    if completion::is_network_thread() {
        return None;
    }
    let mut left = workers.left.lock();
    let at = left.iter().position(|(other, _)| *other == turn)?;
    Some(left.swap_remove(at).1)
}

/// What a turn was granted and could not use is for others.
fn end_use(model: &ModelVersion, turn: usize) {
    if let Some(limited) = &model.limited {
        limited.end_use(turn, false);
    }
}

/// Does what the queue asked for; what it starts joins the turns to be driven.
fn follow(workers: &Workers, effect: Effect, turns: &mut Turns) {
    match effect {
        Effect::None => {}
        Effect::Start(turn) => turns.push(turn),
        Effect::Wake(turn) => workers.set().turn(turn).parker.unpark(),
    }
}

/// Brings requests to the worker whose turn it is.
fn place(model: &Arc<ModelVersion>, workers: &Workers, turn: usize, batch: &mut Vec<Pending>, turns: &mut Turns) {
    let set = workers.set();
    let worker = set.turn(turn);
    let mut outgoing = AnswerBatch::default();
    let mut written: SmallVec<[Written; 1]> = SmallVec::new();
    if let Some(sequences) = &model.sequences {
        sequences.fill_rows(&model.spec, batch);
    }
    for pending in batch.drain(..) {
        let Some(mut pending) = withdraw_if_cancelled(model, pending) else { continue };
        let Some(placed) = write(model, worker, &pending) else {
            refuse(model, &mut outgoing, pending, arena_is_full(worker));
            continue;
        };
        let ticket = worker.tickets.next();
        let caller = Caller::new(worker, ticket);
        pending.responder.observe(Watch(Arc::clone(&caller)));
        written.push(Written { pending, placed, ticket, caller });
    }
    outgoing.send();
    if written.is_empty() {
        end_use(model, turn);
        turns.push(turn);
        return;
    }
    let group = if workers.forms_batches { written[0].ticket } else { 0 };
    if let Some(limited) = &model.limited {
        // Before its answer can come, which would let the next one in.
        limited.note_use(turn);
    }
    let delivering = worker.delivering.try_lock();
    let mut state = worker.state.lock();
    let outcome = enter(&mut state, worker, Some(turn), group, written);
    if !matches!(outcome, Entered::Yes(_)) {
        // As long as nobody else can find the turn where it is parked.
        end_use(model, turn);
    }
    // Where another thread delivers now, it looks for more before it leaves.
    let look = state.open && delivering.is_some();
    let received = if look { receive::receive(&mut state, worker, model) } else { Received::default() };
    drop(state);
    let rest = received.deliver(model, worker);
    drop(delivering);
    match outcome {
        Entered::Yes(entered) => entered.wake(),
        Entered::NotNow(mut pending) => {
            pending.retain(|pending| !pending.is_filler());
            follow(workers, model.with_queue(|queue, now| queue.put_back(now, &mut pending.into_iter())), turns)
        }
        Entered::Refused(pending, error) => {
            let refused = pending.into_iter().filter(|pending| !pending.is_filler());
            refused.for_each(|pending| refuse(model, &mut outgoing, pending, error.clone()));
            outgoing.send();
            turns.push(turn);
        }
    }
    turns.extend(rest.settle(model, worker));
}

/// A request that stands in the arena, ready to be placed.
pub(super) struct Written {
    pub(super) pending: Pending,
    pub(super) placed: Placed,
    pub(super) ticket: u64,
    pub(super) caller: Arc<Caller>,
}

/// What became of requests that were to enter a worker's ring.
pub(super) enum Entered {
    Yes(InRing),
    /// The worker is down or its ring is full: the turn is parked, the requests go back.
    NotNow(Vec<Pending>),
    Refused(Vec<Pending>, InferError),
}

/// Requests that stand in a worker's ring, which may not know yet.
pub(super) struct InRing {
    link: LinkHandle,
    callers: SmallVec<[Arc<Caller>; 1]>,
}

impl InRing {
    /// Wakes the worker if it sleeps; to be called without any lock. The worker may run in this thread's place at once,
    /// and the thread that receives the worker's first message would wait for each lock that this thread still holds.
    pub(super) fn wake(&self) {
        self.link.wake();
        self.callers.iter().for_each(|caller| caller.catch_up());
    }
}

/// Puts requests into a worker's ring, all of them or none; to be woken for once the lock is released. Without a turn
/// they are samples, which come before the worker is open to others.
pub(super) fn enter(
    state: &mut State,
    worker: &Arc<Worker>,
    turn: Option<usize>,
    group: u64,
    written: SmallVec<[Written; 1]>,
) -> Entered {
    let back = |written: SmallVec<[Written; 1]>| written.into_iter().map(|written| written.pending).collect();
    if state.held.bytes() > worker.limits.max_leased_bytes {
        let error = too_much_in_view(worker, state.held.bytes());
        return Entered::Refused(back(written), error);
    }
    let slots: SmallVec<[u32; 1]> = written.iter().map_while(|_| state.slots.acquire()).collect();
    let entries: SmallVec<[Entry; 1]> =
        written.iter().zip(&slots).map(|(written, &slot)| entry(written, slot, group)).collect();
    let fits = (state.open || turn.is_none()) && slots.len() == written.len();
    let link = state.link.as_mut().filter(|_| fits);
    let Some(link) = link.and_then(|link| link.publish(&entries).map(|()| link)) else {
        slots.into_iter().for_each(|slot| state.slots.release(slot));
        state.parked.extend(turn);
        return Entered::NotNow(back(written));
    };
    let handle = link.handle();
    let group_of_turn = turn.map(|turn| state.turns.begin(turn, slots.len() as u32));
    if !std::mem::replace(&mut state.watched, true) {
        worker.placed.notify_one();
    }
    let mut callers = SmallVec::new();
    for (Written { pending, placed, ticket, caller }, slot) in written.into_iter().zip(slots) {
        caller.placed(&handle, slot);
        callers.push(caller);
        state.slots.put(
            slot,
            InFlight {
                arrived: pending.arrived,
                rows: pending.checked.rows,
                chain: pending.chain.clone(),
                shares: pending.shares.clone(),
                trace: pending.trace.as_ref().map(Underway::record),
                is_filler: pending.is_filler(),
                pending: Some(pending),
                ticket,
                turn: group_of_turn,
                placed: Some(placed),
                executed: false,
                responded: false,
                failed: false,
                claimed: None,
            },
        );
    }
    Entered::Yes(InRing { link: handle, callers })
}

fn entry(written: &Written, slot: u32, group: u64) -> Entry {
    let Written { pending, placed, ticket, .. } = written;
    let checked = &pending.checked;
    let frame = (placed.offset, placed.len);
    Entry { slot, ticket: *ticket, rows: checked.rows, key: checked.key, group, frame }
}

/// Writes a request into the arena. The tensors' bytes are copied here, once, unless they were received there.
pub(super) fn write(model: &ModelVersion, worker: &Worker, pending: &Pending) -> Option<Placed> {
    let checked = &pending.checked;
    let mut outputs: SmallVec<[u16; 4]> = checked.outputs.iter().map(|&index| index as u16).collect();
    let further = model.sequences.as_ref().map(|sequences| {
        outputs.extend(sequences.states.list.iter().map(|state| state.output_index as u16));
        sequences.further_inputs(pending, &mut worker.state.lock().states)
    });
    let further = further.iter().flatten().map(|tensor| TensorRef {
        name: TensorName::Name(tensor.name),
        datatype: tensor.datatype,
        shape: &tensor.shape,
        data: &tensor.data,
    });
    let inputs: SmallVec<[TensorRef<'_>; 4]> = checked
        .inputs
        .iter()
        .map(|input| TensorRef {
            name: TensorName::Index(input.index as u16),
            // The body of a call stands behind the declared inputs.
            datatype: model.spec.inputs.get(input.index).map_or(Datatype::Bytes, |port| port.datatype),
            shape: &input.shape,
            data: &input.data,
        })
        .chain(further)
        .collect();
    let none = RequestContext::default();
    let context = checked.context.as_deref().unwrap_or(&none);
    let parameters = parameters_json(&context.parameters);
    let trace = pending.trace.as_ref().map(|trace| context::to_json(trace.context()));
    let head = RequestHead {
        id: &checked.terms.id,
        correlation_id: &context.sequence.correlation_id,
        flags: u32::from(context.sequence.start) | u32::from(context.sequence.end) << 1,
        timeout_us: checked.terms.timeout_us,
        priority: checked.terms.priority,
        parameters: &parameters,
        outputs: &outputs,
        trace: trace.as_deref(),
    };
    worker.arena.write_request(&head, &inputs)
}

/// A worker with nothing to do takes over what waits unclaimed with another one.
fn relieve(model: &Arc<ModelVersion>, workers: &Workers, turn: usize, turns: &mut Turns) {
    let set = workers.set();
    let idle = set.turn(turn);
    if idle.is_leaving() {
        return idle.leave_if_done();
    }
    if set.list.len() < 2 || workers.forms_batches || !idle.is_up() || !idle.state.lock().slots.is_empty() {
        return;
    }
    for worker in set.list.iter().filter(|worker| !Arc::ptr_eq(worker, idle)) {
        let Some((pending, freed)) = take_back(&mut worker.state.lock()) else { continue };
        follow(workers, model.with_queue(|queue, now| queue.put_back(now, &mut std::iter::once(pending))), turns);
        // Driven first: the idle worker's turn was pushed last. The relieved one's asks for more after it.
        turns.insert_many(0, freed);
        return;
    }
}

/// Gives what a worker has not claimed back to the queue, where another worker has nothing to do, and brings it nothing
/// more until it is opened again. False: nobody could take over.
pub(super) fn take_over(model: &Arc<ModelVersion>, silent: &Worker) -> bool {
    let driver: &dyn Any = &*model.driver;
    let Some(workers) = driver.downcast_ref::<Workers>().filter(|workers| !workers.forms_batches) else { return false };
    let set = workers.set();
    let others = set.list.iter().filter(|worker| worker.owner() != silent.owner());
    if !others.filter(|worker| worker.is_up()).any(|worker| is_idle(&worker.state.lock())) {
        return false;
    }
    let mut pending = Vec::new();
    {
        let mut guard = silent.state.lock();
        let state = &mut *guard;
        state.open = false;
        while let Some((request, turn)) = take_back(state) {
            pending.push(request);
            state.parked.extend(turn);
        }
    }
    let effect = model.with_queue(|queue, now| queue.put_back(now, &mut pending.into_iter()));
    model.carry_out(effect);
    silent.leave_if_done();
    true
}

/// Gives the oldest request that waits behind an execution to another worker, where one has nothing to do: it looked
/// for work before the request stood in the ring. Who executes may wait for the answer to that very request.
pub(super) fn pass_on(model: &Arc<ModelVersion>, busy: &Worker) {
    let driver: &dyn Any = &*model.driver;
    let Some(workers) = driver.downcast_ref::<Workers>().filter(|workers| !workers.forms_batches) else { return };
    let set = workers.set();
    let others = set.list.iter().filter(|worker| worker.owner() != busy.owner());
    if !others.filter(|worker| worker.is_up()).any(|worker| is_idle(&worker.state.lock())) {
        return;
    }
    let Some((pending, freed)) = take_back(&mut busy.state.lock()) else { return };
    let effect = model.with_queue(|queue, now| queue.put_back(now, &mut std::iter::once(pending)));
    model.carry_out(effect);
    // Last, so that the idle worker has been driven.
    if let Some(turn) = freed {
        model.driver.start(model, turn);
    }
}

fn is_idle(state: &State) -> bool {
    state.open && state.slots.is_empty()
}

/// Takes the oldest unclaimed request back from a worker; gives the turn that is free with it.
fn take_back(state: &mut State) -> Option<(Pending, Option<usize>)> {
    let link = state.link.as_ref()?;
    let (slot, ticket) = state.slots.oldest().find(|&(slot, ticket)| link.revoke(slot, ticket))?;
    let request = state.slots.take(slot, ticket)?;
    let turn = state.end_turn(&request);
    Some((request.pending?, turn))
}

fn withdraw_if_cancelled(model: &ModelVersion, pending: Pending) -> Option<Pending> {
    // In a sequence what comes next would be wrong without it; the queue looks before each batch.
    if model.sequences.is_some() || !pending.responder.is_cancelled() {
        return Some(pending);
    }
    model.statistics.failed(FailureReason::Canceled, alipes_clock::elapsed(pending.arrived));
    None
}

fn refuse(model: &ModelVersion, outgoing: &mut AnswerBatch, pending: Pending, error: InferError) {
    model.statistics.failed_unanswered(FailureReason::Rejected, alipes_clock::elapsed(pending.arrived));
    if let Some(trace) = &pending.trace {
        trace.note_response(clock::now_ns());
    }
    outgoing.add(pending.responder, Err(error.at(Origin::Request)));
}

pub(super) fn arena_is_full(worker: &Worker) -> InferError {
    let used = worker.arena.used_bytes();
    let text = format!("the requests of model '{}' hold {used} bytes of shared memory already", worker.source.model);
    InferError::new(Code::Unavailable, text)
}

fn too_much_in_view(worker: &Worker, bytes: usize) -> InferError {
    let text = format!(
        "model instance '{}' still looks at {bytes} bytes of the inputs of earlier requests, more than the {} that are \
         allowed; a model that keeps inputs should copy them",
        worker.source.instance, worker.limits.max_leased_bytes
    );
    InferError::new(Code::Unavailable, text)
}
