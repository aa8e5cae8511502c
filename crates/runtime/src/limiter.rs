//! The rate limiter: admits executions that take counted resources one by one, over all models of the server.
//!
//! [`alipes_scheduler::Arbiter`] decides which instance is next; this module remembers waiting instances and resumes
//! them. A claimed instance asks before it takes a batch, so that batches grow while it waits, and releases its
//! resources after each execution. It stays claimed meanwhile: for the queue it is one that is on its way.

use std::mem;
use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_scheduler::{Arbiter, Demand, Impossible};
use alipes_spec::{LimitSpec, ResourceSpec};
use parking_lot::{Mutex, MutexGuard};

use crate::executor::{self, Run};
use crate::model::ModelVersion;

/// The limiter of a server.
pub struct Limiter(Mutex<LimiterState>);

struct LimiterState {
    arbiter: Arbiter,
    /// By the numbers that the arbiter assigned.
    members: Vec<Member>,
}

#[derive(Default)]
struct Member {
    /// The run to resume, while it waits. It keeps its version alive, as every run does.
    run: Option<Run>,
    /// What was granted is being used.
    used: bool,
    /// It was admitted after a wait, and is about to run.
    ready: bool,
}

impl Limiter {
    /// A limiter with these limits; of what is not listed there is as much as one instance takes at most.
    pub fn new(limits: &[ResourceSpec]) -> Limiter {
        let limits = limits.iter().map(|limit| (limit.name.clone(), limit.count));
        Limiter(Mutex::new(LimiterState { arbiter: Arbiter::new(limits), members: Vec::new() }))
    }
}

impl LimiterState {
    /// Admits all instances that can be admitted.
    fn let_in(&mut self) -> Vec<usize> {
        std::iter::from_fn(|| self.arbiter.let_in()).collect()
    }

    fn wait(&mut self, member: usize, model: &Arc<ModelVersion>, instance: usize) {
        self.members[member].run = Some(Run { model: Arc::clone(model), instance });
        self.arbiter.ask(member);
    }

    /// The run of an admitted member, to be resumed.
    fn run(&mut self, member: usize) -> Option<Run> {
        let entry = &mut self.members[member];
        entry.ready = true;
        entry.run.take()
    }
}

/// Has those driven on who were let in, once the lock is released.
fn start(mut state: MutexGuard<'_, LimiterState>, granted: &[usize]) {
    let runs: Vec<Run> = granted.iter().filter_map(|&member| state.run(member)).collect();
    drop(state);
    runs.into_iter().for_each(executor::start);
}

/// The instances of one version that take resources.
pub struct Limited {
    limiter: Arc<Limiter>,
    /// By instance; none for one that takes nothing.
    members: Vec<Option<usize>>,
}

impl Limited {
    /// Takes the instances of a version in; none where it has none that take resources.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where they take what can never be granted.
    pub fn new(limiter: &Arc<Limiter>, limits: &[LimitSpec]) -> Result<Option<Limited>, InferError> {
        if limits.iter().all(|limit| limit.resources.is_empty()) {
            return Ok(None);
        }
        let mut limited = Limited { limiter: Arc::clone(limiter), members: Vec::new() };
        for limit in limits {
            limited.members.push(limiter.admit(limit)?);
        }
        Ok(Some(limited))
    }

    /// Whether a claimed instance may execute now. If not, it is driven again when it may. What it was granted before
    /// and has used is given back.
    pub fn ask(&self, model: &Arc<ModelVersion>, instance: usize) -> bool {
        let Some(member) = self.member(instance) else { return true };
        let mut state = self.limiter.0.lock();
        if mem::take(&mut state.members[member].ready) {
            return true;
        }
        if mem::take(&mut state.members[member].used) {
            state.arbiter.release(member, true);
        }
        state.wait(member, model, instance);
        let mut granted = state.let_in();
        let at = granted.iter().position(|&other| other == member);
        if let Some(at) = at {
            granted.swap_remove(at);
            // Not the last that keeps the version, so that nothing ends here.
            state.members[member].run = None;
        }
        start(state, &granted);
        at.is_some()
    }

    /// What a claimed instance was granted is being used: when it asks next, it has executed.
    pub fn note_use(&self, instance: usize) {
        if let Some(member) = self.member(instance) {
            self.limiter.0.lock().members[member].used = true;
        }
    }

    /// A claimed instance gives back what it was granted, used or not.
    pub fn end_use(&self, instance: usize, executed: bool) {
        let Some(member) = self.member(instance) else { return };
        let mut state = self.limiter.0.lock();
        (state.members[member].used, state.members[member].ready) = (false, false);
        state.arbiter.release(member, executed);
        let granted = state.let_in();
        start(state, &granted);
    }

    /// What was granted was not needed. The instance may have been claimed anew meanwhile, and ask for itself.
    pub fn give_back(&self, instance: usize) {
        let Some(member) = self.member(instance) else { return };
        let mut state = self.limiter.0.lock();
        state.arbiter.release(member, false);
        let granted = state.let_in();
        start(state, &granted);
    }

    /// A claimed instance has executed and would do so again: it is driven on when it may.
    pub fn take_turns(&self, model: &Arc<ModelVersion>, instance: usize) {
        let Some(member) = self.member(instance) else {
            return executor::start(Run { model: Arc::clone(model), instance });
        };
        let mut state = self.limiter.0.lock();
        state.arbiter.release(member, true);
        state.wait(member, model, instance);
        let granted = state.let_in();
        start(state, &granted);
    }

    fn member(&self, instance: usize) -> Option<usize> {
        self.members.get(instance).copied().flatten()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let mut state = self.limiter.0.lock();
        for &member in self.members.iter().flatten() {
            // An instance that held resources is gone with the version.
            state.arbiter.dismiss(member);
            while state.arbiter.release(member, false) {}
        }
        let granted = state.let_in();
        start(state, &granted);
    }
}

impl Limiter {
    fn admit(&self, limit: &LimitSpec) -> Result<Option<usize>, InferError> {
        if limit.resources.is_empty() {
            return Ok(None);
        }
        let demand = |resource: &ResourceSpec| Demand {
            name: resource.name.clone(),
            global: resource.global,
            count: resource.count,
        };
        let demands: Vec<Demand> = limit.resources.iter().map(demand).collect();
        let mut state = self.0.lock();
        let member =
            state.arbiter.admit(&demands, limit.priority).map_err(|error| InferError::invalid(text(&error)))?;
        if state.members.len() <= member {
            state.members.resize_with(member + 1, Member::default);
        }
        state.members[member] = Member::default();
        Ok(Some(member))
    }
}

/// Source: Triton's texts.
fn text(error: &Impossible) -> String {
    match error {
        Impossible::Limited { name, limit, needed } => format!(
            "Resource count for \"{name}\" is limited to {limit} which will prevent scheduling of one or more model \
             instances, the minimum required count is {needed}"
        ),
        Impossible::Mixed { name } => format!(
            "Resource \"{name}\" is present as both global and device-specific resource in the model configuration."
        ),
    }
}
