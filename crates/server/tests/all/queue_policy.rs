//! Limits on waiting, as callers see them: answered in time although the only instance is busy, and counted.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use alipes_driver_native::slots::Slots;
use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_protocol::{Code, Datatype, InferError, InferRequest, Origin, Tensor};
use alipes_request::responder::{Answer, Responder};
use alipes_runtime::model::ModelVersion;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::common::service;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Executes one request each time the test lets it, and gives its input back.
struct Gate {
    entered: mpsc::Sender<u8>,
    leave: mpsc::Receiver<()>,
}

impl Engine for Gate {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let input = &inputs[0];
        self.entered.send(input.data[0]).map_err(|_| EngineError::internal("the test is over"))?;
        self.leave.recv().map_err(|_| EngineError::internal("the test is over"))?;
        outputs.extend(wanted.iter().map(|&index| OutputTensor {
            index,
            datatype: input.datatype,
            shape: input.shape.into(),
            data: Bytes::copy_from_slice(input.data),
        }));
        Ok(())
    }
}

/// A model with one instance, and the test's hold on it.
struct Gated {
    model: Arc<ModelVersion>,
    entered: mpsc::Receiver<u8>,
    leave: mpsc::Sender<()>,
}

fn request(value: u8) -> InferRequest {
    let shape = [1, 1].into_iter().collect();
    let tensor = Tensor { name: "X".into(), datatype: Datatype::Uint8, shape, data: Bytes::from(vec![value]) };
    InferRequest { id: "r".into(), inputs: vec![tensor], ..Default::default() }
}

impl Gated {
    fn new(scheduling: Value) -> Gated {
        let spec = json!({
            "schema": 1, "name": "gated", "version": 1, "platform": "p", "max_batch_size": 1,
            "inputs": [{"name": "X", "datatype": "UINT8", "dims": [1]}],
            "outputs": [{"name": "Y", "datatype": "UINT8", "dims": [1]}],
            "scheduling": scheduling, "instances": ["i"],
            "engine": {"kind": "onnxruntime", "library": "", "model_path": "", "intra_op_threads": 1,
                "inter_op_threads": 1, "execution_mode": "sequential", "graph_optimization": "all",
                "session_config": {}, "memory_arena": true},
            "config_json": "", "config_proto": "", "metric_tags": {},
        });
        let ((entered, receiver), (leave, let_go)) = (mpsc::channel(), mpsc::channel());
        let slots = Arc::new(Slots::new(vec![Box::new(Gate { entered, leave: let_go })]));
        let model = Arc::new(ModelVersion::new(serde_json::from_value(spec).unwrap(), slots).unwrap());
        Gated { model, entered: receiver, leave }
    }

    /// One whose instance is busy with request 0.
    fn busy(scheduling: Value) -> (Gated, oneshot::Receiver<Answer>) {
        let gated = Gated::new(scheduling);
        let first = gated.submit(0, 0, 0).unwrap();
        assert_eq!(gated.next(), 0);
        (gated, first)
    }

    fn submit(&self, value: u8, priority: u64, timeout_us: u64) -> Result<oneshot::Receiver<Answer>, InferError> {
        let request = InferRequest { priority, timeout_us, ..request(value) };
        self.model.submit(request, Instant::now(), Responder::unary)
    }

    /// What is executed next.
    fn next(&self) -> u8 {
        self.entered.recv_timeout(TEST_TIMEOUT).expect("something is executed")
    }

    fn let_go(&self) {
        self.leave.send(()).expect("something is executed");
    }

    fn failures(&self) -> [u64; 4] {
        self.model.statistics.snapshot().failures
    }
}

fn dynamic(more: Value) -> Value {
    let mut scheduling = json!({"kind": "dynamic", "preferred_batch_sizes": [1], "max_queue_delay_us": 0});
    scheduling.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    scheduling
}

fn limits(default_timeout_us: u64, max_queue_size: usize) -> Value {
    json!({"delay": false, "default_timeout_us": default_timeout_us, "allow_timeout_override": true,
        "max_queue_size": max_queue_size})
}

fn refusal(answer: oneshot::Receiver<Answer>) -> InferError {
    answer.blocking_recv().expect("every request is answered").expect_err("it was not executed")
}

#[test]
fn a_request_expires_while_the_only_instance_is_busy() {
    // What keeps the instance busy may itself wait for as long as it takes until a thread executes it.
    let scheduling = dynamic(json!({
        "priority_levels": 2, "default_priority_level": 1, "default_queue_policy": limits(20_000, 0),
        "priority_queue_policies": [{"level": 1, "policy": limits(0, 0)}],
    }));
    let (gated, first) = Gated::busy(scheduling);
    let began = Instant::now();
    let error = refusal(gated.submit(1, 2, 0).unwrap());
    assert!(began.elapsed() >= Duration::from_millis(20));
    let seen = (error.code, error.origin, error.message.as_str());
    assert_eq!(seen, (Code::Unavailable, Origin::Model, "Request timeout expired"));
    assert_eq!((gated.failures(), gated.model.waiting()), ([1, 0, 0, 0], 0));
    gated.let_go();
    assert!(first.blocking_recv().unwrap().is_ok(), "what is executed has no limit");
}

#[test]
fn a_request_may_bring_a_shorter_limit() {
    let (gated, _first) = Gated::busy(dynamic(json!({"default_queue_policy": limits(3_600_000_000, 0)})));
    let patient = gated.submit(1, 0, 0).unwrap();
    let impatient = gated.submit(2, 0, 5_000).unwrap();
    assert_eq!(refusal(impatient).message, "Request timeout expired");
    gated.let_go();
    assert_eq!(gated.next(), 1);
    gated.let_go();
    assert!(patient.blocking_recv().unwrap().is_ok());
}

#[test]
fn one_more_than_may_wait_is_refused_at_once_and_counted_nowhere() {
    let (gated, _first) = Gated::busy(dynamic(json!({"default_queue_policy": limits(0, 1)})));
    let _waiting = gated.submit(1, 0, 0).unwrap();
    let error = gated.submit(2, 0, 0).unwrap_err();
    let seen = (error.code, error.origin, error.message.as_str());
    assert_eq!(seen, (Code::Unavailable, Origin::Request, "[request id: r] Exceeds maximum queue size"));
    assert_eq!(gated.failures(), [0; 4]);
}

#[test]
fn a_higher_priority_waits_for_the_batch_that_runs_and_no_other() {
    let (gated, _first) = Gated::busy(dynamic(json!({"priority_levels": 2, "default_priority_level": 2})));
    let _flood: Vec<_> = (1..100).map(|value| gated.submit(value, 2, 0).unwrap()).collect();
    let _urgent = gated.submit(200, 1, 0).unwrap();
    gated.let_go();
    assert_eq!(gated.next(), 200);
}

#[test]
fn whose_caller_has_gone_is_counted_and_makes_room() {
    let (gated, _first) = Gated::busy(dynamic(json!({"default_queue_policy": limits(0, 1)})));
    drop(gated.submit(1, 0, 0).unwrap());
    gated.model.caller_left();
    assert_eq!((gated.failures(), gated.model.waiting()), ([0, 1, 0, 0], 0));
    assert!(gated.submit(2, 0, 0).is_ok());
}

#[tokio::test]
async fn a_generation_that_is_dropped_leaves_the_queue_at_once() {
    let (gated, _first) = Gated::busy(dynamic(json!({})));
    let service = service([Arc::clone(&gated.model)]);
    let generation = service.generate(&gated.model, request(1)).await.unwrap();
    assert_eq!(gated.model.waiting(), 1);
    drop(generation);
    assert_eq!((gated.failures(), gated.model.waiting()), ([0, 1, 0, 0], 0));
}

#[test]
fn a_version_that_is_gone_leaves_no_alarm_that_keeps_it() {
    let (gated, first) = Gated::busy(dynamic(json!({"default_queue_policy": limits(3_600_000_000, 0)})));
    let waiting = gated.submit(1, 0, 0).unwrap();
    gated.let_go();
    assert_eq!(gated.next(), 1);
    gated.let_go();
    assert!(first.blocking_recv().unwrap().is_ok() && waiting.blocking_recv().unwrap().is_ok());
    let departure = gated.model.departure();
    drop(gated);
    assert!(departure.wait_until(Instant::now() + TEST_TIMEOUT));
}
