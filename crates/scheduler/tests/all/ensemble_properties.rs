//! Random graphs, answers, orders and hesitations against a slow model that follows one scope after the other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use alipes_scheduler::ensemble::{Action, EnsembleRun, Graph, StepShape};
use proptest::collection::vec;
use proptest::prelude::*;

/// A tensor's value says where it comes from, so that equal values mean equal ways.
type Value = String;

/// A step of a graph that is being drawn: choices that are brought into range by the tensors there are.
#[derive(Debug, Clone)]
struct Draft {
    inputs: Vec<usize>,
    outputs: usize,
    decoupled: bool,
}

fn draft() -> impl Strategy<Value = Draft> {
    (vec(any::<usize>(), 1..4), 1usize..3, prop::bool::weighted(0.25)).prop_map(|(inputs, outputs, decoupled)| Draft {
        inputs,
        outputs,
        decoupled,
    })
}

/// A graph and what the slow model has to know of it.
#[derive(Debug)]
struct Drawn {
    graph: Arc<Graph>,
    steps: Vec<StepShape>,
    scope: Vec<usize>,
    inputs: usize,
    outputs: Vec<usize>,
}

/// Steps that take what earlier ones of one scope have made; the outputs are some tensors of one scope.
fn draw(inputs: usize, drafts: &[Draft], outputs: &[usize]) -> Drawn {
    let mut scope = vec![0; inputs];
    let mut scopes = 1;
    let mut steps = Vec::new();
    for draft in drafts {
        let first = draft.inputs[0] % scope.len();
        let together: Vec<usize> = (0..scope.len()).filter(|&tensor| scope[tensor] == scope[first]).collect();
        let inputs = draft.inputs.iter().map(|choice| together[choice % together.len()]).collect();
        let made: Vec<usize> = (scope.len()..scope.len() + draft.outputs).collect();
        let inside = if draft.decoupled { scopes } else { scope[first] };
        scopes += usize::from(draft.decoupled);
        scope.extend(made.iter().map(|_| inside));
        steps.push(StepShape { inputs, outputs: made, decoupled: draft.decoupled });
    }
    let first = outputs[0] % scope.len();
    let together: Vec<usize> = (0..scope.len()).filter(|&tensor| scope[tensor] == scope[first]).collect();
    let mut chosen: Vec<usize> = outputs.iter().map(|choice| together[choice % together.len()]).collect();
    chosen.sort_unstable();
    chosen.dedup();
    let graph = Graph::new(scope.len(), (0..inputs).collect(), chosen.clone(), steps.clone());
    Drawn { graph: Arc::new(graph.expect("it was drawn to fit")), steps, scope, inputs, outputs: chosen }
}

/// What a step gives for its inputs: each response with its outputs. Depends on nothing else.
fn answers(drawn: &Drawn, step: usize, inputs: &[Option<Value>], seed: u64) -> Vec<Vec<Option<Value>>> {
    let text = format!("{step}({inputs:?})");
    let mixed = text.bytes().fold(seed, |mixed, byte| (mixed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let count = if drawn.steps[step].decoupled { (mixed >> 7) % 4 } else { 1 };
    let digest = mixed % 1_000_000_007;
    let output = |response: u64, output: usize| {
        let left_out = (mixed >> 11).wrapping_add(response + output as u64).is_multiple_of(7);
        (!left_out).then(|| format!("{step}.{output}#{response}:{digest}"))
    };
    (0..count).map(|n| (0..drawn.steps[step].outputs.len()).map(|place| output(n, place)).collect()).collect()
}

/// The steps that the wanted outputs need.
fn needed(drawn: &Drawn, wanted: &[usize]) -> Vec<usize> {
    let mut tensors = wanted.to_vec();
    let mut steps = Vec::new();
    for step in (0..drawn.steps.len()).rev() {
        if drawn.steps[step].outputs.iter().any(|output| tensors.contains(output)) {
            tensors.extend(&drawn.steps[step].inputs);
            steps.insert(0, step);
        }
    }
    steps
}

/// What is expected of a run: calls by step and inputs, and responses by the decoupled call that they come of.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    calls: BTreeMap<(usize, Vec<Option<Value>>), usize>,
    responses: Vec<Vec<Vec<Option<Value>>>>,
}

/// Plays one scope to its end, and then each scope that it opens.
fn follow(
    drawn: &Drawn,
    wanted: &[usize],
    seed: u64,
    mut values: HashMap<usize, Option<Value>>,
    expected: &mut Expected,
) {
    let mut opened = Vec::new();
    for step in needed(drawn, wanted) {
        let StepShape { inputs, outputs, decoupled } = &drawn.steps[step];
        let Some(inputs) = inputs.iter().map(|input| values.get(input).cloned()).collect::<Option<Vec<_>>>() else {
            continue;
        };
        if outputs.iter().any(|output| values.contains_key(output)) {
            continue;
        }
        *expected.calls.entry((step, inputs.clone())).or_default() += 1;
        let answers = answers(drawn, step, &inputs, seed);
        if *decoupled {
            opened.push((outputs, answers));
        } else {
            values.extend(outputs.iter().copied().zip(answers[0].iter().cloned()));
        }
    }
    for (outputs, answers) in opened {
        let gives = outputs.iter().any(|&output| drawn.scope[output] == drawn.scope[wanted[0]]);
        if gives {
            expected.responses.push(Vec::new());
        }
        for answer in answers {
            let inner: HashMap<_, _> = outputs.iter().copied().zip(answer).collect();
            follow(drawn, wanted, seed, inner, expected);
        }
    }
    if let Some(outputs) = wanted.iter().map(|output| values.get(output).cloned()).collect::<Option<Vec<_>>>() {
        if expected.responses.is_empty() {
            expected.responses.push(Vec::new());
        }
        expected.responses.last_mut().expect("one was pushed").push(outputs);
    }
}

/// A call that the test answers when it is drawn.
struct Open {
    number: usize,
    answers: Vec<Vec<Option<Value>>>,
    sent: usize,
}

/// What a run did.
#[derive(Default)]
struct Seen {
    calls: BTreeMap<(usize, Vec<Option<Value>>), usize>,
    responses: Vec<Vec<Option<Value>>>,
    ends: usize,
    deadlocks: usize,
    released: usize,
    untaken: Vec<usize>,
    open: Vec<Open>,
}

impl Seen {
    fn record(&mut self, drawn: &Drawn, seed: u64, actions: &mut Vec<Action<Value>>) {
        for action in actions.drain(..) {
            assert!(self.ends == 0, "nothing follows the end");
            match action {
                Action::Call { call, step, inputs } => {
                    let answers = answers(drawn, step, &inputs, seed);
                    assert!(self.open.iter().all(|open| open.number != call), "the number is taken");
                    *self.calls.entry((step, inputs)).or_default() += 1;
                    self.open.push(Open { number: call, answers, sent: 0 });
                }
                Action::Respond { response, outputs, last } => {
                    assert!(!self.untaken.contains(&response), "the number is taken");
                    self.untaken.push(response);
                    self.responses.push(outputs);
                    self.ends += usize::from(last);
                }
                Action::Release { weight, .. } => self.released += usize::try_from(weight).unwrap_or(0),
                Action::End => self.ends += 1,
                Action::Deadlock => self.deadlocks += 1,
            }
        }
    }
}

/// Plays a run: whose turn it is, is drawn. Gives up after `rounds` turns.
fn play(drawn: &Drawn, wanted: &[usize], seed: u64, turns: &[usize], rounds: usize) -> (EnsembleRun<Value>, Seen) {
    let positions: Vec<usize> =
        wanted.iter().filter_map(|output| drawn.outputs.iter().position(|other| other == output)).collect();
    let (mut seen, mut actions) = (Seen::default(), Vec::new());
    let inputs = (0..drawn.inputs).map(|input| (input != 1).then(|| format!("in{input}")));
    let mut run = EnsembleRun::start(&drawn.graph, &positions, inputs, &mut actions);
    seen.record(drawn, seed, &mut actions);
    let mut choices = turns.iter().copied().cycle();
    for _ in 0..rounds {
        let choice = choices.next().unwrap_or(0);
        if choice.is_multiple_of(5) && !seen.untaken.is_empty() && !run.is_over() {
            let response = seen.untaken.remove(choice % seen.untaken.len());
            run.consumed(response, &mut actions);
        } else if seen.open.is_empty() {
            break;
        } else {
            let place = choice % seen.open.len();
            let open = &mut seen.open[place];
            if let Some(answer) = open.answers.get(open.sent) {
                open.sent += 1;
                run.respond(open.number, answer.iter().cloned(), 1, &mut actions);
            } else {
                let ended = seen.open.remove(place);
                run.end(ended.number, &mut actions);
            }
        }
        seen.record(drawn, seed, &mut actions);
    }
    (run, seen)
}

/// Whether each of the sequences is a part of the whole, in its order, and all of them together are the whole.
fn is_mixture(whole: &[Vec<Option<Value>>], parts: &[Vec<Vec<Option<Value>>>]) -> bool {
    let mut all: Vec<_> = parts.iter().flatten().collect();
    let mut joined: Vec<_> = whole.iter().collect();
    all.sort();
    joined.sort();
    let in_order = |part: &Vec<Vec<Option<Value>>>| {
        let mut rest = whole.iter();
        part.iter().all(|response| rest.any(|other| other == response))
    };
    all == joined && parts.iter().all(in_order)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn needed_steps_are_called_once_and_all_responses_arrive(
        inputs in 1usize..4, drafts in vec(draft(), 1..7), outputs in vec(any::<usize>(), 1..4),
        wanted in any::<usize>(), seed in any::<u64>(), turns in vec(any::<usize>(), 1..200),
    ) {
        let drawn = draw(inputs, &drafts, &outputs);
        let some: Vec<usize> = drawn.outputs.iter().copied().enumerate()
            .filter(|(position, _)| drawn.outputs.len() == 1 || wanted >> position & 1 == 1)
            .map(|(_, output)| output).collect();
        let wanted = if some.is_empty() { drawn.outputs.clone() } else { some };
        let mut expected = Expected::default();
        let values = (0..inputs).map(|input| (input, (input != 1).then(|| format!("in{input}")))).collect();
        follow(&drawn, &wanted, seed, values, &mut expected);
        let (run, seen) = play(&drawn, &wanted, seed, &turns, 200_000);
        prop_assert_eq!(&seen.calls, &expected.calls);
        prop_assert!(is_mixture(&seen.responses, &expected.responses), "{:?} of {:?}", seen.responses, expected);
        prop_assert!(run.is_over());
        prop_assert_eq!((seen.ends, seen.deadlocks), (1, 0));
    }

    #[test]
    fn a_run_that_is_stopped_does_nothing_any_more(
        inputs in 1usize..4, drafts in vec(draft(), 1..7), outputs in vec(any::<usize>(), 1..4),
        seed in any::<u64>(), turns in vec(any::<usize>(), 1..50), rounds in 0usize..30,
    ) {
        let drawn = draw(inputs, &drafts, &outputs);
        let (mut run, seen) = play(&drawn, &drawn.outputs, seed, &turns, rounds);
        run.stop();
        let mut actions = Vec::new();
        for open in seen.open {
            open.answers.into_iter().skip(open.sent).for_each(|answer| run.respond(open.number, answer, 1, &mut actions));
            run.end(open.number, &mut actions);
        }
        seen.untaken.into_iter().for_each(|response| run.consumed(response, &mut actions));
        prop_assert!(actions.is_empty() && run.is_over());
    }
}
