//! One request's way through an ensemble.

use std::collections::VecDeque;
use std::sync::Arc;

use slab::Slab;

use super::graph::Graph;
use super::plan::Plan;

/// What the owner of a run does next, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an action that is dropped is a step that nobody calls, or a caller who is told nothing"]
pub enum Action<V> {
    /// Call a step; report its responses to [`EnsembleRun::respond`] and its end to [`EnsembleRun::end`].
    Call {
        /// By this number.
        call: usize,
        /// Which step.
        step: usize,
        /// The values of its inputs, in its order; none for what was left out.
        inputs: Vec<Option<V>>,
    },
    /// Give the caller a response; call [`EnsembleRun::consumed`] when the caller has consumed it.
    Respond {
        /// By this number.
        response: usize,
        /// The values of the wanted outputs, in the caller's order; none for what a step left out.
        outputs: Vec<Option<V>>,
        /// There is no other after it: the run is over.
        last: bool,
    },
    /// Nothing is left of one of a decoupled call's responses: the step may give more.
    Release {
        /// The call.
        call: usize,
        /// The value that [`EnsembleRun::respond`] received with the response.
        weight: u64,
    },
    /// Tell the caller that there is no further response: the run is over.
    End,
    /// Tell the caller that a step has ended without a response, so that there is none: the run is over.
    Deadlock,
}

/// A request on its way through an ensemble.
///
/// Every step that the wanted outputs need is called once for each set of inputs that belong together. Responses that
/// come of the same call of a decoupled step leave in the order in which that call has given them, however long the
/// steps behind it take.
#[derive(Debug)]
pub struct EnsembleRun<V> {
    graph: Arc<Graph>,
    plan: Arc<Plan>,
    frames: Slab<Frame<V>>,
    calls: Slab<Call>,
    /// Calls that have not ended.
    running: usize,
    responded: bool,
    over: bool,
}

/// The values of one scope that belong together: those of the request, or of one response of a decoupled call.
#[derive(Debug)]
struct Frame<V> {
    /// The decoupled call that gave the response.
    parent: Option<usize>,
    weight: u64,
    /// By the tensor's place in the scope.
    values: Vec<TensorSlot<V>>,
    /// By the step's place in the scope: inputs that are not there yet.
    missing: Vec<usize>,
    /// Wanted outputs that are not there yet.
    missing_outputs: usize,
    /// What keeps it: itself while it is filled, its calls, and a response that the caller has not taken.
    open: usize,
}

#[derive(Debug)]
struct TensorSlot<V> {
    value: Option<V>,
    uses: usize,
}

impl<V: Clone> TensorSlot<V> {
    /// The value; its last taker gets the thing itself.
    fn take(&mut self) -> Option<V> {
        self.uses -= 1;
        if self.uses == 0 { self.value.take() } else { self.value.clone() }
    }
}

/// A step that was called.
#[derive(Debug)]
struct Call {
    step: usize,
    frame: usize,
    responded: bool,
    ended: bool,
    /// The frames of its responses that are still there; the call's number stays taken as long.
    frames: usize,
    /// Of those, the ones whose response the caller waits for, in their order, and whether it is ready.
    line: VecDeque<(usize, bool)>,
}

impl<V: Clone> EnsembleRun<V> {
    /// Begins.
    ///
    /// # Arguments
    ///
    /// * `wanted` - positions of the outputs that the caller wants; none for all of them.
    /// * `inputs` - a value for each input of the graph, in its order; none for what the caller left out.
    /// * `actions` - takes what is to be done, here and in all other calls.
    pub fn start(
        graph: &Arc<Graph>,
        wanted: &[usize],
        inputs: impl IntoIterator<Item = Option<V>>,
        actions: &mut Vec<Action<V>>,
    ) -> EnsembleRun<V> {
        let mut run = EnsembleRun {
            graph: Arc::clone(graph),
            plan: graph.plan(wanted),
            frames: Slab::new(),
            calls: Slab::new(),
            running: 0,
            responded: false,
            over: false,
        };
        let frame = run.open_frame(0, None, 0);
        for (position, value) in inputs.into_iter().enumerate() {
            run.fill(frame, run.graph.inputs[position], value, actions);
        }
        run.let_go(frame, actions);
        run.settle(actions);
        run
    }

    /// A call has responded. Of a step that is not decoupled only the first response counts.
    ///
    /// # Arguments
    ///
    /// * `outputs` - a value for each output of the step, in its order; none for what it left out.
    /// * `weight` - comes back with [`Action::Release`].
    pub fn respond(
        &mut self,
        call: usize,
        outputs: impl IntoIterator<Item = Option<V>>,
        weight: u64,
        actions: &mut Vec<Action<V>>,
    ) {
        let Some(open) = self.calls.get_mut(call).filter(|call| !call.ended) else { return };
        let (step, frame, again) = (open.step, open.frame, std::mem::replace(&mut open.responded, true));
        let opens = self.graph.steps[step].opens;
        if again && opens.is_none() {
            return;
        }
        let opened = opens.map(|scope| self.open_frame(scope, Some(call), weight));
        let frame = opened.unwrap_or(frame);
        for (position, value) in outputs.into_iter().enumerate() {
            self.fill(frame, self.graph.steps[step].outputs[position], value, actions);
        }
        if opened.is_some() {
            self.let_go(frame, actions);
        }
    }

    /// A call has ended: it gives no more responses.
    pub fn end(&mut self, call: usize, actions: &mut Vec<Action<V>>) {
        let Some(ending) = self.calls.get_mut(call).filter(|call| !call.ended) else { return };
        ending.ended = true;
        self.running -= 1;
        self.close_call(call, actions);
        self.settle(actions);
    }

    /// The caller has consumed a response.
    pub fn consumed(&mut self, response: usize, actions: &mut Vec<Action<V>>) {
        if self.frames.contains(response) {
            self.let_go(response, actions);
        }
    }

    /// Ends the run: a step has failed, or the caller has gone. There are no actions after it.
    pub fn stop(&mut self) {
        self.over = true;
        self.frames.clear();
        self.calls.clear();
        self.running = 0;
    }

    /// Whether there is nothing more to be done for the caller.
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn open_frame(&mut self, number: usize, parent: Option<usize>, weight: u64) -> usize {
        let scope = &self.graph.scopes[number];
        let gives = number == self.graph.output_scope;
        let frame = Frame {
            parent,
            weight,
            values: (0..scope.tensors).map(|_| TensorSlot { value: None, uses: 0 }).collect(),
            missing: scope.steps.iter().map(|&step| self.graph.steps[step].inputs.len()).collect(),
            missing_outputs: self.plan.outputs.len(),
            open: 1 + usize::from(gives),
        };
        let key = self.frames.insert(frame);
        if let Some(call) = parent.map(|call| &mut self.calls[call]) {
            call.frames += 1;
            if gives {
                call.line.push_back((key, false));
            }
        }
        key
    }

    /// Puts a value in its place and calls the steps that waited for nothing else.
    fn fill(&mut self, key: usize, tensor: usize, value: Option<V>, actions: &mut Vec<Action<V>>) {
        let uses = self.plan.uses[tensor];
        if uses == 0 {
            return;
        }
        let EnsembleRun { graph, plan, frames, calls, running, .. } = self;
        let node = &graph.tensors[tensor];
        let frame = &mut frames[key];
        frame.values[node.place] = TensorSlot { value, uses };
        for &number in node.takers.iter().filter(|&&step| plan.called[step]) {
            let step = &graph.steps[number];
            frame.missing[step.place] -= 1;
            if frame.missing[step.place] > 0 {
                continue;
            }
            let inputs = step.inputs.iter().map(|&input| frame.values[graph.tensors[input].place].take()).collect();
            frame.open += 1;
            *running += 1;
            let call =
                Call { step: number, frame: key, responded: false, ended: false, frames: 0, line: VecDeque::new() };
            actions.push(Action::Call { call: calls.insert(call), step: number, inputs });
        }
        if plan.wanted[tensor] {
            frame.missing_outputs -= 1;
            if frame.missing_outputs == 0 {
                self.ready(key, actions);
            }
        }
    }

    /// All outputs of a frame are there: they leave when those before them have.
    fn ready(&mut self, key: usize, actions: &mut Vec<Action<V>>) {
        let Some(parent) = self.frames[key].parent else {
            return self.give(key, actions);
        };
        if let Some(place) = self.calls[parent].line.iter_mut().find(|(frame, _)| *frame == key) {
            place.1 = true;
        }
        while let Some(&(frame, true)) = self.calls[parent].line.front() {
            self.calls[parent].line.pop_front();
            self.give(frame, actions);
        }
    }

    fn give(&mut self, key: usize, actions: &mut Vec<Action<V>>) {
        let EnsembleRun { graph, plan, frames, .. } = self;
        let values = &mut frames[key].values;
        let outputs = plan.outputs.iter().map(|&output| values[graph.tensors[output].place].take()).collect();
        self.responded = true;
        actions.push(Action::Respond { response: key, outputs, last: false });
    }

    /// One thing less keeps a frame.
    fn let_go(&mut self, key: usize, actions: &mut Vec<Action<V>>) {
        let frame = &mut self.frames[key];
        frame.open -= 1;
        if frame.open > 0 {
            return;
        }
        let Frame { parent, weight, .. } = self.frames.remove(key);
        let Some(number) = parent else { return };
        let call = &mut self.calls[number];
        call.frames -= 1;
        if call.ended {
            self.close_call(number, actions);
        } else {
            actions.push(Action::Release { call: number, weight });
        }
    }

    fn close_call(&mut self, number: usize, actions: &mut Vec<Action<V>>) {
        if self.calls[number].frames == 0 {
            let Call { frame, .. } = self.calls.remove(number);
            self.let_go(frame, actions);
        }
    }

    /// Ends the run where nothing runs any more, with the last response where that has not left yet.
    fn settle(&mut self, actions: &mut Vec<Action<V>>) {
        if self.running > 0 || self.over {
            return;
        }
        self.over = true;
        let unsent = actions.iter_mut().rev().find_map(|action| match action {
            Action::Respond { last, .. } => Some(last),
            _ => None,
        });
        match unsent {
            Some(last) => *last = true,
            None if self.responded || self.graph.is_decoupled() => actions.push(Action::End),
            None => actions.push(Action::Deadlock),
        }
    }
}
