//! One request's way through small ensembles, told step by step.

use std::rc::Rc;
use std::sync::Arc;

use alipes_scheduler::ensemble::{Action, EnsembleRun, Graph, StepShape};

type Run = EnsembleRun<Rc<str>>;
type Actions = Vec<Action<Rc<str>>>;

fn step(inputs: &[usize], outputs: &[usize]) -> StepShape {
    StepShape { inputs: inputs.to_vec(), outputs: outputs.to_vec(), decoupled: false }
}

fn decoupled(inputs: &[usize], outputs: &[usize]) -> StepShape {
    StepShape { decoupled: true, ..step(inputs, outputs) }
}

fn graph(tensors: usize, inputs: &[usize], outputs: &[usize], steps: Vec<StepShape>) -> Arc<Graph> {
    Arc::new(Graph::new(tensors, inputs.to_vec(), outputs.to_vec(), steps).expect("it fits together"))
}

fn value(text: &str) -> Option<Rc<str>> {
    Some(text.into())
}

fn call(call: usize, step: usize, inputs: &[&str]) -> Action<Rc<str>> {
    Action::Call { call, step, inputs: inputs.iter().map(|text| value(text)).collect() }
}

fn response(response: usize, outputs: &[&str], last: bool) -> Action<Rc<str>> {
    Action::Respond { response, outputs: outputs.iter().map(|text| value(text)).collect(), last }
}

fn start(graph: &Arc<Graph>, wanted: &[usize], inputs: &[Option<&str>]) -> (Run, Actions) {
    let mut actions = Vec::new();
    let inputs = inputs.iter().map(|input| input.and_then(value));
    let run = EnsembleRun::start(graph, wanted, inputs, &mut actions);
    (run, actions)
}

/// The actions that follow a response, be it the last of its call.
fn respond(run: &mut Run, call: usize, outputs: &[&str], ends: bool) -> Actions {
    let mut actions = Vec::new();
    run.respond(call, outputs.iter().map(|text| value(text)), 7, &mut actions);
    if ends {
        run.end(call, &mut actions);
    }
    actions
}

fn end(run: &mut Run, call: usize) -> Actions {
    let mut actions = Vec::new();
    run.end(call, &mut actions);
    actions
}

fn consume(run: &mut Run, response: usize) -> Actions {
    let mut actions = Vec::new();
    run.consumed(response, &mut actions);
    actions
}

fn diamond() -> Arc<Graph> {
    graph(5, &[0], &[3, 4], vec![step(&[0], &[1]), step(&[0], &[2]), step(&[1, 2], &[3, 4])])
}

#[test]
fn a_step_is_called_once_all_it_takes_is_there() {
    let (mut run, first) = start(&diamond(), &[], &[Some("a")]);
    assert_eq!(first, [call(0, 0, &["a"]), call(1, 1, &["a"])]);
    assert_eq!(respond(&mut run, 1, &["r"], true), []);
    let both = respond(&mut run, 0, &["l"], true);
    assert!(matches!(&both[..], [Action::Call { step: 2, inputs, .. }] if *inputs == [value("l"), value("r")]));
    let Action::Call { call, .. } = both[0] else { unreachable!() };
    assert_eq!(respond(&mut run, call, &["s", "d"], true), [response(0, &["s", "d"], true)]);
    assert!(run.is_over());
}

#[test]
fn a_step_that_feeds_nothing_wanted_is_not_called() {
    let aside = graph(3, &[0], &[1, 2], vec![step(&[0], &[1]), step(&[1], &[2])]);
    let (mut run, first) = start(&aside, &[0], &[Some("a")]);
    assert_eq!(first, [call(0, 0, &["a"])]);
    assert_eq!(respond(&mut run, 0, &["b"], true), [response(0, &["b"], true)]);
}

#[test]
fn outputs_come_in_the_order_in_which_they_are_wanted() {
    let both = graph(3, &[0], &[1, 2], vec![step(&[0], &[1, 2])]);
    let (mut run, _) = start(&both, &[1, 0], &[Some("a")]);
    assert_eq!(respond(&mut run, 0, &["x", "y"], true), [response(0, &["y", "x"], true)]);
}

#[test]
fn what_was_left_out_is_passed_on_as_left_out() {
    let (mut run, first) = start(&graph(3, &[0, 1], &[2], vec![step(&[0, 1], &[2])]), &[], &[Some("a"), None]);
    assert_eq!(first, [Action::Call { call: 0, step: 0, inputs: vec![value("a"), None] }]);
    let mut actions = Vec::new();
    run.respond(0, [None], 0, &mut actions);
    run.end(0, &mut actions);
    assert_eq!(actions, [Action::Respond { response: 0, outputs: vec![None], last: true }]);
}

#[test]
fn each_response_of_a_decoupled_step_goes_its_own_way() {
    let words = graph(3, &[0], &[2], vec![decoupled(&[0], &[1]), step(&[1], &[2])]);
    let (mut run, _) = start(&words, &[], &[Some("a")]);
    let (one, two) = (respond(&mut run, 0, &["b"], false), respond(&mut run, 0, &["c"], false));
    assert_eq!((one, two), (vec![call(1, 1, &["b"])], vec![call(2, 1, &["c"])]));
    assert_eq!(respond(&mut run, 1, &["B"], true), [response(1, &["B"], false)]);
    assert_eq!(end(&mut run, 0), []);
    assert_eq!(respond(&mut run, 2, &["C"], true), [response(2, &["C"], true)]);
}

#[test]
fn responses_leave_in_the_order_of_the_call_that_they_come_of() {
    let words = graph(3, &[0], &[2], vec![decoupled(&[0], &[1]), step(&[1], &[2])]);
    let (mut run, _) = start(&words, &[], &[Some("a")]);
    ["b", "c", "d"].iter().for_each(|word| drop(respond(&mut run, 0, &[word], false)));
    assert_eq!(respond(&mut run, 2, &["C"], true), []);
    assert_eq!(respond(&mut run, 1, &["B"], true), [response(1, &["B"], false), response(2, &["C"], false)]);
    assert_eq!(respond(&mut run, 3, &["D"], true), [response(3, &["D"], false)]);
    assert_eq!(end(&mut run, 0), [Action::End]);
}

#[test]
fn a_decoupled_step_may_give_nothing() {
    let words = graph(3, &[0], &[2], vec![decoupled(&[0], &[1]), step(&[1], &[2])]);
    let (mut run, _) = start(&words, &[], &[Some("a")]);
    assert_eq!(end(&mut run, 0), [Action::End]);
    assert!(run.is_over());
}

#[test]
fn an_ordinary_step_that_gives_nothing_leaves_a_deadlock() {
    let (mut run, _) = start(&diamond(), &[], &[Some("a")]);
    assert_eq!(respond(&mut run, 0, &["l"], true), []);
    assert_eq!(end(&mut run, 1), [Action::Deadlock]);
}

#[test]
fn only_the_first_response_of_an_ordinary_step_counts() {
    let (mut run, _) = start(&graph(2, &[0], &[1], vec![step(&[0], &[1])]), &[], &[Some("a")]);
    assert_eq!(respond(&mut run, 0, &["b"], false), [response(0, &["b"], false)]);
    assert_eq!(respond(&mut run, 0, &["c"], false), []);
    assert_eq!(end(&mut run, 0), [Action::End]);
}

#[test]
fn a_decoupled_step_regains_credit_when_the_client_consumes() {
    let words = graph(3, &[0], &[2], vec![decoupled(&[0], &[1]), step(&[1], &[2])]);
    let (mut run, _) = start(&words, &[], &[Some("a")]);
    respond(&mut run, 0, &["b"], false);
    respond(&mut run, 1, &["B"], true);
    assert_eq!(consume(&mut run, 1), [Action::Release { call: 0, weight: 7 }]);
}

#[test]
fn nothing_is_done_after_a_stop() {
    let (mut run, _) = start(&diamond(), &[], &[Some("a")]);
    run.stop();
    assert_eq!(respond(&mut run, 0, &["l"], true), []);
    assert_eq!((end(&mut run, 1), consume(&mut run, 0)), (vec![], vec![]));
    assert!(run.is_over());
}

#[test]
fn a_value_is_let_go_with_its_last_taker() {
    let text: Rc<str> = "a".into();
    let mut actions = Vec::new();
    let run = EnsembleRun::start(&diamond(), &[], [Some(Rc::clone(&text))], &mut actions);
    assert_eq!(Rc::strong_count(&text), 1 + 2, "one for each step that takes it");
    drop(actions);
    assert_eq!(Rc::strong_count(&text), 1);
    drop(run);
}

#[test]
fn an_input_may_be_an_output() {
    let (run, actions) = start(&graph(2, &[0], &[0, 1], vec![step(&[0], &[1])]), &[0], &[Some("a")]);
    assert_eq!(actions, [response(0, &["a"], true)]);
    assert!(run.is_over());
}
