//! The shape of an ensemble: which step makes which tensors of which.
//!
//! A decoupled step gives any number of responses, and what follows it runs once for each. The tensors that exist
//! equally often form a *scope*: the request's inputs and all that is made of them without such a step are the first
//! scope, and each decoupled step opens one for its outputs and all that is made of them. A step takes its inputs from
//! one scope, since nothing says which of three tensors belongs to which of five; so do the ensemble's outputs.

use std::sync::Arc;

use super::plan::Plan;

/// A step as its owner describes it. Tensors are numbered by the owner, from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepShape {
    /// The tensors that the step takes, in an order of its own; one may stand there several times.
    pub inputs: Vec<usize>,
    /// The tensors that it makes.
    pub outputs: Vec<usize>,
    /// It may respond any number of times.
    pub decoupled: bool,
}

/// Why steps do not make an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphError {
    /// There is no tensor of this number.
    UnknownTensor(usize),
    /// Two steps make this tensor, or one makes it that is given.
    MadeTwice(usize),
    /// The step takes nothing, so nothing would call it.
    NoInput(usize),
    /// The step takes something that is never made, for example because it waits for itself.
    NeverCalled(usize),
    /// Nothing makes this output.
    NeverMade(usize),
    /// The step takes tensors of which there may be different numbers.
    MixedScopes(usize),
    /// So do the ensemble's outputs.
    MixedOutputs,
}

/// An ensemble that can run.
#[derive(Debug)]
pub struct Graph {
    pub(super) steps: Vec<Step>,
    pub(super) tensors: Vec<Tensor>,
    pub(super) scopes: Vec<Scope>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    pub(super) output_scope: usize,
    whole: Arc<Plan>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// Its number among the steps of the scope that it runs in.
    pub(super) place: usize,
    /// The scope of its outputs, where it is decoupled.
    pub(super) opens: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Tensor {
    /// The step that makes it; none where the request brings it.
    pub(super) maker: Option<usize>,
    /// The steps that take it, each as often as it does.
    pub(super) takers: Vec<usize>,
    /// Its number among the tensors of its scope.
    pub(super) place: usize,
    /// None until it is known whether it is ever made.
    scope: Option<usize>,
}

/// How much a scope holds.
#[derive(Debug, Default)]
pub(super) struct Scope {
    pub(super) tensors: usize,
    /// Its steps, by their places.
    pub(super) steps: Vec<usize>,
}

impl Graph {
    /// Joins steps by their tensors.
    ///
    /// # Errors
    ///
    /// They do not fit together; nothing is said of steps whose tensors nobody takes.
    pub fn new(
        tensors: usize,
        inputs: Vec<usize>,
        outputs: Vec<usize>,
        steps: Vec<StepShape>,
    ) -> Result<Graph, GraphError> {
        let mut joined = join(tensors, &inputs, &outputs, &steps)?;
        let (steps, scopes) = settle(&mut joined, &inputs, steps)?;
        let scope_of = |output: &usize| joined[*output].scope.ok_or(GraphError::NeverMade(*output));
        let output_scopes = outputs.iter().map(scope_of).collect::<Result<Vec<_>, _>>()?;
        let output_scope = output_scopes.first().copied().unwrap_or(0);
        if output_scopes.iter().any(|&scope| scope != output_scope) {
            return Err(GraphError::MixedOutputs);
        }
        let whole = Arc::new(Plan::new(&steps, &joined, outputs.clone()));
        Ok(Graph { steps, tensors: joined, scopes, inputs, outputs, output_scope, whole })
    }

    /// Whether a request may have any number of responses.
    pub fn is_decoupled(&self) -> bool {
        self.scopes.len() > 1
    }

    /// Whether a step takes anything that another one makes.
    pub fn follows(&self, step: usize) -> bool {
        self.steps[step].inputs.iter().any(|&input| self.tensors[input].maker.is_some())
    }

    /// The tensors that a request brings, and those that it is answered with.
    pub fn ends(&self) -> (&[usize], &[usize]) {
        (&self.inputs, &self.outputs)
    }

    /// How many tensors there are.
    pub fn tensors(&self) -> usize {
        self.tensors.len()
    }

    /// The tensors that a step takes, and those that it makes.
    pub fn ports(&self, step: usize) -> (&[usize], &[usize]) {
        let Step { inputs, outputs, .. } = &self.steps[step];
        (inputs, outputs)
    }

    /// The steps that a request for all outputs needs, each behind those whose tensors it takes. Only of a graph that
    /// is not [decoupled](Self::is_decoupled), whose steps may be called any number of times.
    pub fn order(&self) -> impl Iterator<Item = usize> + '_ {
        self.scopes[0].steps.iter().copied().filter(|&step| self.whole.called[step])
    }

    /// What has to run for some of the outputs, by their positions, or for all of them where none is named.
    pub(super) fn plan(&self, wanted: &[usize]) -> Arc<Plan> {
        if wanted.is_empty() || (0..self.outputs.len()).eq(wanted.iter().copied()) {
            return Arc::clone(&self.whole);
        }
        let outputs = wanted.iter().map(|&position| self.outputs[position]).collect();
        Arc::new(Plan::new(&self.steps, &self.tensors, outputs))
    }
}

/// Every tensor with those who make and take it.
fn join(count: usize, inputs: &[usize], outputs: &[usize], steps: &[StepShape]) -> Result<Vec<Tensor>, GraphError> {
    let named = steps.iter().flat_map(|step| step.inputs.iter().chain(&step.outputs)).chain(inputs).chain(outputs);
    if let Some(&tensor) = named.into_iter().find(|&&tensor| tensor >= count) {
        return Err(GraphError::UnknownTensor(tensor));
    }
    let mut tensors: Vec<Tensor> = (0..count).map(|_| Tensor::default()).collect();
    let mut made = vec![false; count];
    for (maker, tensor) in inputs.iter().map(|&input| (None, input)).chain(makers(steps)) {
        if std::mem::replace(&mut made[tensor], true) {
            return Err(GraphError::MadeTwice(tensor));
        }
        tensors[tensor].maker = maker;
    }
    for (number, step) in steps.iter().enumerate() {
        if step.inputs.is_empty() {
            return Err(GraphError::NoInput(number));
        }
        step.inputs.iter().for_each(|&input| tensors[input].takers.push(number));
    }
    Ok(tensors)
}

fn makers(steps: &[StepShape]) -> impl Iterator<Item = (Option<usize>, usize)> + '_ {
    steps.iter().enumerate().flat_map(|(number, step)| step.outputs.iter().map(move |&tensor| (Some(number), tensor)))
}

/// Finds the scope of each tensor and step, in an order in which steps can be called.
fn settle(
    tensors: &mut [Tensor],
    inputs: &[usize],
    shapes: Vec<StepShape>,
) -> Result<(Vec<Step>, Vec<Scope>), GraphError> {
    let mut scopes = vec![Scope::default()];
    let mut missing: Vec<usize> = shapes.iter().map(|shape| shape.inputs.len()).collect();
    let mut found: Vec<Option<(usize, Option<usize>)>> = vec![None; shapes.len()];
    let mut fresh: Vec<(usize, usize)> = inputs.iter().map(|&input| (input, 0)).collect();
    while let Some((tensor, scope)) = fresh.pop() {
        tensors[tensor].scope = Some(scope);
        tensors[tensor].place = scopes[scope].tensors;
        scopes[scope].tensors += 1;
        for number in tensors[tensor].takers.clone() {
            missing[number] -= 1;
            if missing[number] > 0 {
                continue;
            }
            let shape = &shapes[number];
            if shape.inputs.iter().any(|&input| tensors[input].scope != Some(scope)) {
                return Err(GraphError::MixedScopes(number));
            }
            let opens = shape.decoupled.then(|| {
                scopes.push(Scope::default());
                scopes.len() - 1
            });
            found[number] = Some((scopes[scope].steps.len(), opens));
            scopes[scope].steps.push(number);
            fresh.extend(shape.outputs.iter().map(|&output| (output, opens.unwrap_or(scope))));
        }
    }
    let steps = shapes.into_iter().zip(found).enumerate().map(|(number, (shape, found))| {
        let (place, opens) = found.ok_or(GraphError::NeverCalled(number))?;
        Ok(Step { inputs: shape.inputs, outputs: shape.outputs, place, opens })
    });
    Ok((steps.collect::<Result<_, _>>()?, scopes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(inputs: &[usize], outputs: &[usize]) -> StepShape {
        StepShape { inputs: inputs.to_vec(), outputs: outputs.to_vec(), decoupled: false }
    }

    fn decoupled(inputs: &[usize], outputs: &[usize]) -> StepShape {
        StepShape { decoupled: true, ..step(inputs, outputs) }
    }

    fn error(tensors: usize, outputs: &[usize], steps: Vec<StepShape>) -> GraphError {
        Graph::new(tensors, vec![0], outputs.to_vec(), steps).expect_err("they do not fit")
    }

    #[test]
    fn each_mistake_has_its_own_error() {
        assert_eq!(error(2, &[7], vec![step(&[0], &[1])]), GraphError::UnknownTensor(7));
        assert_eq!(error(2, &[1], vec![step(&[0], &[1]), step(&[0], &[1])]), GraphError::MadeTwice(1));
        assert_eq!(error(1, &[0], vec![step(&[0], &[0])]), GraphError::MadeTwice(0));
        assert_eq!(error(2, &[1], vec![step(&[], &[1])]), GraphError::NoInput(0));
        assert_eq!(error(3, &[2], vec![step(&[0], &[1])]), GraphError::NeverMade(2));
        let circle = vec![step(&[0, 2], &[1]), step(&[1], &[2])];
        assert_eq!(error(3, &[1], circle), GraphError::NeverCalled(0));
    }

    #[test]
    fn tensors_of_different_decoupled_steps_do_not_meet() {
        let apart = vec![decoupled(&[0], &[1]), decoupled(&[0], &[2]), step(&[1, 2], &[3])];
        assert_eq!(error(4, &[3], apart), GraphError::MixedScopes(2));
        let before_and_after = vec![decoupled(&[0], &[1]), step(&[0, 1], &[2])];
        assert_eq!(error(3, &[2], before_and_after), GraphError::MixedScopes(1));
        assert_eq!(error(3, &[1, 2], vec![decoupled(&[0], &[1]), step(&[0], &[2])]), GraphError::MixedOutputs);
    }

    #[test]
    fn an_ensemble_is_decoupled_if_a_step_is() {
        let ordinary = Graph::new(2, vec![0], vec![1], vec![step(&[0], &[1])]).unwrap();
        assert!(!ordinary.is_decoupled());
        assert!(Graph::new(2, vec![0], vec![1], vec![decoupled(&[0], &[1])]).unwrap().is_decoupled());
    }
}
