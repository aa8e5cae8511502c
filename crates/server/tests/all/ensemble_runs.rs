//! Random ensembles, requests, answers, failures and farewells: every request ends once, with what belongs to it, and
//! nothing of it is left.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use crate::common::{Puppet, reply, service, tensor};
use alipes_protocol::{InferError, InferRequest};
use alipes_request::mailbox::{Caller, Mailbox, Reader, Response};
use alipes_request::responder::{AnswerBatch, Responder};
use alipes_runtime::build::build;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::Pending;
use alipes_service::Service;
use parking_lot::Mutex;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

/// Responses of a decoupled call differ by so many elements, so that their order and their request can be told.
const APART: usize = 16;

/// What happens next; numbers are brought into range by what there is.
#[derive(Debug, Clone)]
enum Event {
    Submit,
    Answer { step: usize, call: usize },
    Fail { step: usize, call: usize },
    Leave { request: usize },
}

fn event() -> impl Strategy<Value = Event> {
    let two = || (any::<usize>(), any::<usize>());
    prop_oneof![
        4 => Just(Event::Submit),
        12 => two().prop_map(|(step, call)| Event::Answer { step, call }),
        1 => two().prop_map(|(step, call)| Event::Fail { step, call }),
        1 => any::<usize>().prop_map(|request| Event::Leave { request }),
    ]
}

/// An ensemble, of whose steps each has a model of its own.
struct Stage {
    ensemble: Arc<ModelVersion>,
    puppets: Vec<Puppet>,
    service: Arc<Service>,
    decoupled: bool,
    most: usize,
    /// By step: the calls that its model has taken, with the responses that they have given.
    calls: Vec<Vec<(Pending, usize)>>,
    requests: Vec<Request>,
}

struct Request {
    caller: Option<Caller>,
    heard: Arc<Heard>,
}

/// What a caller was told: the elements of each response or an error, and how often that it was the last.
#[derive(Default)]
struct Heard(Mutex<(Vec<Result<usize, InferError>>, usize)>);

impl Reader for Heard {
    fn take(&self, response: Response) {
        let mut heard = self.0.lock();
        let elements = |answer: Result<alipes_request::responder::Reply, _>| {
            answer.map(|reply| reply.outputs[0].shape[0] as usize)
        };
        heard.0.extend(response.answer.map(elements));
        heard.1 += usize::from(response.last);
    }
}

/// Where a step takes its tensor from: the ensemble's input, or a step before it.
fn source(step: usize, choice: usize) -> String {
    match choice % (step + 1) {
        0 => "X".to_owned(),
        maker => format!("t{}", maker - 1),
    }
}

impl Stage {
    /// Steps that take what earlier ones make; the last one gives the output. Where the first is decoupled, the others
    /// come one after the other behind it, since tensors from before it may not be joined to those behind it.
    fn new(choices: &[usize], decoupled: bool, most: usize) -> Stage {
        let name = |step: usize| if step + 1 == choices.len() { "R".to_owned() } else { format!("t{step}") };
        let steps: Vec<_> = choices
            .iter()
            .enumerate()
            .map(|(step, &choice)| {
                let from = if decoupled && step > 0 { format!("t{}", step - 1) } else { source(step, choice) };
                json!({"model": format!("m{step}"), "version": -1, "inputs": {"X": from},
                    "outputs": {"Y": name(step)}, "decoupled": decoupled && step == 0})
            })
            .collect();
        let puppets: Vec<_> =
            (0..choices.len()).map(|step| Puppet::new(&format!("m{step}"), decoupled && step == 0)).collect();
        let service = Arc::new(service(puppets.iter().map(|puppet| Arc::clone(&puppet.model))));
        let port = |name: &str| json!([{"name": name, "datatype": "FP32", "dims": [-1]}]);
        let spec = json!({
            "schema": 1, "name": "drawn", "version": 1, "platform": "ensemble", "max_batch_size": 0,
            "inputs": port("X"), "outputs": port("R"), "scheduling": {"kind": "direct"}, "instances": [],
            "decoupled": decoupled, "engine": {"kind": "ensemble", "steps": steps, "max_inflight_requests": most},
            "config_json": "{}", "config_proto": "", "metric_tags": {},
        });
        let ensemble =
            build(&service.context, serde_json::from_value(spec).unwrap(), &Cancellation::default()).unwrap();
        service.registry.publish("drawn", "", vec![Arc::clone(&ensemble)]);
        let calls = puppets.iter().map(|_| Vec::new()).collect();
        Stage { ensemble, puppets, service, decoupled, most, calls, requests: Vec::new() }
    }

    fn play(&mut self, event: &Event) {
        match *event {
            Event::Submit => self.submit(),
            Event::Answer { step, call } => self.answer(step, call),
            Event::Fail { step, call } => {
                let step = step % self.calls.len();
                if !self.calls[step].is_empty() {
                    let call = call % self.calls[step].len();
                    let (pending, _) = self.calls[step].remove(call);
                    send(|outgoing| outgoing.add(pending.responder, Err(InferError::invalid("drawn"))));
                }
            }
            Event::Leave { request } if !self.requests.is_empty() => {
                let request = request % self.requests.len();
                self.requests[request].caller = None;
            }
            Event::Leave { .. } => {}
        }
        self.take_calls();
        self.assert_capacity_is_respected();
    }

    fn submit(&mut self) {
        if self.requests.len() == APART - 1 {
            return;
        }
        let heard: Arc<Heard> = Arc::default();
        let elements = self.requests.len() + 1;
        let request = InferRequest { inputs: vec![tensor(elements)], ..Default::default() };
        let mailbox = Mailbox::read_by(Arc::clone(&heard) as Arc<dyn Reader>);
        let caller = self.ensemble.submit(request, Instant::now(), || Responder::into_mailbox(&mailbox, 0)).unwrap();
        self.requests.push(Request { caller: Some(caller), heard });
    }

    /// A call gives what it was given. One of the decoupled step gives three responses, each with more, and ends then.
    fn answer(&mut self, step: usize, call: usize) {
        let step = step % self.calls.len();
        if self.calls[step].is_empty() {
            return;
        }
        let call = call % self.calls[step].len();
        let (pending, sent) = &mut self.calls[step][call];
        let elements = pending.checked.inputs[0].shape[0] as usize;
        if self.decoupled && step == 0 && *sent < 3 {
            let more = elements + *sent * APART;
            *sent += 1;
            return send(|outgoing| outgoing.respond(&mut pending.responder, Ok(reply(more))));
        }
        let (pending, _) = self.calls[step].remove(call);
        match self.decoupled && step == 0 {
            true => send(|outgoing| outgoing.finish(pending.responder)),
            false => send(|outgoing| outgoing.add(pending.responder, Ok(reply(elements)))),
        }
    }

    fn take_calls(&mut self) {
        for (puppet, calls) in self.puppets.iter().zip(&mut self.calls) {
            while puppet.model.waiting() > 0 {
                let call = puppet.take_waiting();
                assert!(!call.responder.is_cancelled(), "nobody leaves between a call and its model's turn");
                calls.push((call, 0));
            }
        }
    }

    fn assert_capacity_is_respected(&self) {
        for (puppet, calls) in self.puppets.iter().zip(&self.calls) {
            let mut live = calls.iter().filter(|(call, _)| !call.responder.is_cancelled()).count();
            puppet.model.queue().look(&mut |call| {
                live += usize::from(!call.responder.is_cancelled());
                ControlFlow::Continue(())
            });
            assert!(self.most == 0 || live <= self.most, "{live} calls are under way, {} may be", self.most);
        }
    }

    /// Answers all that is still asked.
    fn run_out(&mut self) {
        while let Some(step) = self.calls.iter().position(|calls| !calls.is_empty()) {
            self.play(&Event::Answer { step, call: 0 });
        }
    }

    fn assert_each_has_ended_once(&self) {
        for (number, request) in self.requests.iter().enumerate() {
            let (answers, ends) = &*request.heard.0.lock();
            if request.caller.is_some() {
                assert_eq!(*ends, 1, "request {number} was told {answers:?}");
            }
            let failed = answers.iter().any(Result::is_err);
            assert!(!failed || answers.last().is_some_and(Result::is_err), "nothing follows an error: {answers:?}");
            let elements: Vec<usize> = answers.iter().flatten().copied().collect();
            let responses = if self.decoupled { 3 } else { 1 };
            let all: Vec<usize> = (0..responses).map(|response| number + 1 + response * APART).collect();
            assert!(all.starts_with(&elements), "request {number} got {elements:?} of {all:?}");
            assert!(failed || request.caller.is_none() || elements == all, "request {number} got only {elements:?}");
        }
        let statistics = self.ensemble.statistics.snapshot();
        let ended = statistics.success.count + statistics.failures.iter().sum::<u64>();
        assert_eq!(ended, self.requests.len() as u64);
    }

    /// No run is left, and there is room for another request at each step.
    fn assert_nothing_is_left(&mut self) {
        let explanation = serde_json::to_value(self.service.explain("drawn", "").unwrap()).unwrap();
        let left = &explanation["models"][0]["ensemble"];
        assert_eq!((&left["requests"], &left["held_back"]), (&json!(0), &json!(0)));
        self.requests.clear();
        self.play(&Event::Submit);
        self.run_out();
        assert_eq!(self.requests[0].heard.0.lock().1, 1);
    }
}

fn send(what: impl FnOnce(&mut AnswerBatch)) {
    let mut outgoing = AnswerBatch::default();
    what(&mut outgoing);
    outgoing.send();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_with_what_belongs_to_it(
        choices in vec(any::<usize>(), 1..5), decoupled in any::<bool>(), most in 0usize..4,
        events in vec(event(), 1..120),
    ) {
        let mut stage = Stage::new(&choices, decoupled, most);
        events.iter().for_each(|event| stage.play(event));
        stage.run_out();
        stage.assert_each_has_ended_once();
        stage.assert_nothing_is_left();
    }
}
