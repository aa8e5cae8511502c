//! Batches that go through all steps of an ensemble at once: answers and statistics equal those of single steps.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{TEST_TIMEOUT, service};
use alipes_driver_native::slots::Slots;
use alipes_engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
use alipes_protocol::{Datatype, InferError, InferRequest, RequestedOutput, Tensor};
use alipes_request::responder::{Answer, Reply, Responder};
use alipes_runtime::build::build;
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::executor::run_queue::RunQueue;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::pace::Pace;
use alipes_runtime::model::sizes::Sizes;
use alipes_scheduler::{Decision, Why};
use alipes_service::Service;
use alipes_spec::ExecutionThreads;
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Values in a row.
const WIDTH: usize = 2;

/// What a model makes of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Makes {
    /// Adds so much to the sum of its inputs.
    Sum(u8),
    /// The sum of its inputs, in rows that are one value longer.
    Longer,
    /// One row too few.
    Fewer,
    Failure,
    Panic,
    /// Rows of as many values more as the first one has hundreds, up to two; a row that begins with 300 is refused.
    Ragged,
}

/// An engine that adds up what it is given. Its bytes begin at an odd address, as nothing keeps engines from doing.
struct Adds(Makes, Vec<RefusedRow>);

impl Engine for Adds {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let mut shape: Vec<i64> = inputs[0].shape.to_vec();
        let mut values = floats(inputs[0].data);
        for input in &inputs[1..] {
            assert!(input.is_aligned(), "engines read numbers where they are");
            values.iter_mut().zip(floats(input.data)).for_each(|(value, more)| *value += more);
        }
        let plus = match self.0 {
            Makes::Sum(plus) => f32::from(plus),
            Makes::Longer => {
                values = values.chunks(WIDTH).flat_map(|row| row.iter().copied().chain([0.0])).collect();
                shape[1] += 1;
                0.0
            }
            Makes::Fewer => {
                shape[0] -= 1;
                values.truncate(values.len() - WIDTH);
                0.0
            }
            Makes::Ragged => {
                let width = inputs[0].shape[1] as usize;
                let more = (values[0] / 100.0) as usize % 3;
                let refused = |(row, _)| RefusedRow { row, error: EngineError::invalid("it begins with 300") };
                self.1 = values.chunks(width).enumerate().filter(|(_, row)| row[0] == 300.0).map(refused).collect();
                values = values.chunks(width).flat_map(|row| row.iter().copied().chain(vec![0.5; more])).collect();
                shape[1] += more as i64;
                0.0
            }
            Makes::Failure => return Err(EngineError::internal("it failed")),
            Makes::Panic => panic!("as the test says"),
        };
        values.iter_mut().for_each(|value| *value += plus);
        let bytes = [0].into_iter().chain(values.iter().flat_map(|value| value.to_le_bytes())).collect::<Bytes>();
        outputs.extend(wanted.iter().map(|&index| OutputTensor {
            index,
            datatype: Datatype::Fp32,
            shape: shape.iter().copied().collect(),
            data: bytes.slice(1..),
        }));
        Ok(())
    }

    fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.1)
    }
}

fn floats(data: &[u8]) -> Vec<f32> {
    data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn port(name: &str, open: bool) -> Value {
    json!({"name": name, "datatype": "FP32", "dims": [if open { -1 } else { WIDTH as i64 }]})
}

fn batches(most: u32) -> Value {
    if most > 0 {
        json!({"kind": "dynamic", "preferred_batch_sizes": [], "max_queue_delay_us": 0})
    } else {
        json!({"kind": "direct"})
    }
}

/// The part of the specification that all models share.
fn common_spec(name: &str, most: u32) -> Value {
    json!({
        "schema": 1, "name": name, "version": 1, "platform": "test", "max_batch_size": most, "decoupled": false,
        "scheduling": batches(most), "config_json": "{}", "config_proto": "", "metric_tags": {},
    })
}

fn with(mut spec: Value, more: Value) -> Value {
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// A model with these inputs and the outputs `Y` and `Z`, which looks quick.
fn adder(name: &str, inputs: &[&str], makes: Makes, most: u32, instances: usize) -> Arc<ModelVersion> {
    let open = makes == Makes::Ragged;
    model_of(
        makes,
        instances,
        with(
            common_spec(name, most),
            json!({
                "inputs": inputs.iter().map(|name| port(name, open)).collect::<Vec<_>>(),
            }),
        ),
    )
}

/// A model, which looks quick, of a specification that lacks only what all models have alike.
fn model_of(makes: Makes, instances: usize, spec: Value) -> Arc<ModelVersion> {
    let spec = with(
        spec,
        json!({
            "outputs": [port("Z", true), port("Y", true)], "instances": vec!["i"; instances],
            "engine": {"kind": "onnxruntime", "library": "", "model_path": "", "intra_op_threads": 1,
                "inter_op_threads": 1, "execution_mode": "sequential", "graph_optimization": "all",
                "session_config": {}, "memory_arena": true},
        }),
    );
    let engines = (0..instances).map(|_| Box::new(Adds(makes, Vec::new())) as Box<dyn Engine>).collect();
    let model = ModelVersion::new(serde_json::from_value(spec).unwrap(), Arc::new(Slots::new(engines))).unwrap();
    model.pace.note(Duration::from_micros(1));
    Arc::new(model)
}

/// Models that take the ensemble's input, or what a model before them makes, and each other's; the last gives the
/// output. The second has two inputs.
struct Stage {
    service: Arc<Service>,
    models: Vec<Arc<ModelVersion>>,
    /// Through all steps at once, where nothing speaks against it.
    fused: Arc<ModelVersion>,
    /// The same ensemble, which goes step by step, since it says how many calls a step may have.
    apart: Arc<ModelVersion>,
}

impl Stage {
    fn new(makes: &[Makes], most: u32, instances: usize) -> Stage {
        let mut models = Vec::new();
        let mut steps = Vec::new();
        for (number, &makes) in makes.iter().enumerate() {
            let (name, from) =
                (format!("m{number}"), if number == 0 { "X".into() } else { format!("t{}", number - 1) });
            let inputs: &[&str] = if number == 1 { &["B", "A"] } else { &["A"] };
            let mut wiring = json!({"A": from});
            if number == 1 {
                wiring["B"] = json!("X");
            }
            models.push(adder(&name, inputs, makes, most, instances));
            steps.push(json!({"model": name, "version": -1, "inputs": wiring, "decoupled": false,
                "outputs": {"Y": format!("t{number}"), "Z": format!("z{number}")}}));
        }
        let service = Arc::new(service(models.iter().map(Arc::clone)));
        let last = makes.len() - 1;
        let ensemble = |name: &str, most_calls: u32| {
            let spec = with(
                common_spec(name, most),
                json!({
                    "inputs": [port("X", true)], "outputs": [port(&format!("t{last}"), true), port("z0", true)],
                    "scheduling": {"kind": "direct"}, "instances": [],
                    "engine": {"kind": "ensemble", "steps": steps, "max_inflight_requests": most_calls},
                }),
            );
            let built =
                build(&service.context, serde_json::from_value(spec).unwrap(), &Cancellation::default()).unwrap();
            service.registry.publish(name, "", vec![Arc::clone(&built)]);
            built
        };
        let (fused, apart) = (ensemble("fused", 0), ensemble("apart", 1000));
        let stage = Stage { service, models, fused, apart };
        // The models are looked at when the first request comes.
        let _ = wait(stage.fused.submit(request(0, 1, most), Instant::now(), Responder::unary));
        stage.assert_at_rest();
        stage
    }

    /// Batches that an instance ran for an ensemble, as far as its model remembers.
    fn fused_batches(&self, model: usize) -> Vec<(usize, u64)> {
        fused_batches(&self.models[model])
    }

    fn assert_at_rest(&self) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        for model in self.models.iter().chain([&self.fused, &self.apart]) {
            while !model.queue().is_quiet() {
                assert!(Instant::now() < deadline, "{} has not come to rest", model.name);
                thread::yield_now();
            }
        }
    }
}

fn request(number: usize, rows: usize, most: u32) -> InferRequest {
    wide_request(number, rows, most, WIDTH)
}

fn wide_request(number: usize, rows: usize, most: u32, width: usize) -> InferRequest {
    let rows = if most > 0 { rows } else { 1 };
    let values = (0..rows * width).map(|at| (number * 100 + at) as f32);
    let shape = (most > 0).then_some(rows).into_iter().chain([width]).map(|size| size as i64).collect();
    let data = values.flat_map(f32::to_le_bytes).collect::<Bytes>();
    let tensor = Tensor { name: "X".into(), datatype: Datatype::Fp32, shape, data };
    InferRequest { id: format!("r{number}").as_str().into(), inputs: vec![tensor], ..Default::default() }
}

fn wait(sent: Result<oneshot::Receiver<Answer>, InferError>) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answer = async { tokio::time::timeout(TEST_TIMEOUT, sent?).await.expect("in time").expect("it is answered") };
    runtime.block_on(answer)
}

/// What ensembles of different names say alike.
fn leveled(answer: Answer) -> Answer {
    answer.map_err(|error| InferError { message: error.message.replace("apart'", "fused'"), ..error })
}

/// Success, failures, rows and how many spans of waiting and computing are counted.
fn counters(model: &ModelVersion) -> [u64; 9] {
    let statistics = model.statistics.snapshot();
    let [rejected, canceled, backend, other] = statistics.failures;
    let computed = statistics.compute.compute_infer.count;
    [
        statistics.success.count,
        statistics.fail.count,
        rejected,
        canceled,
        backend,
        other,
        statistics.inference_count,
        statistics.queue.count,
        computed,
    ]
}

fn difference(after: [u64; 9], before: [u64; 9]) -> [u64; 9] {
    std::array::from_fn(|at| after[at] - before[at])
}

fn any_makes() -> impl Strategy<Value = Makes> {
    prop_oneof![
        12 => (0u8..9).prop_map(Makes::Sum),
        1 => Just(Makes::Longer),
        1 => Just(Makes::Fewer),
        1 => Just(Makes::Failure),
        1 => Just(Makes::Panic),
    ]
}

/// Batches that a model ran for ensembles that went through all steps at once, as far as it remembers.
fn fused_batches(model: &ModelVersion) -> Vec<(usize, u64)> {
    let decisions = model.queue().explain(Instant::now()).decisions;
    let fused = decisions.into_iter().filter_map(|(_, decision)| match decision {
        Decision::Took { requests, rows, why: Why::Fused, .. } => Some((requests, rows)),
        _ => None,
    });
    fused.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fused_and_stepwise_runs_have_equal_answers_and_statistics(
        makes in vec(any_makes(), 1..5), batches: bool, rows in 1usize..4, width in prop_oneof![9 => Just(WIDTH), 1 => Just(3)],
    ) {
        let most = if batches { 8 } else { 0 };
        // What has no rows cannot have one too few.
        prop_assume!(batches || !makes.iter().any(|makes| matches!(makes, Makes::Fewer | Makes::Longer)));
        let stage = Stage::new(&makes, most, 1);
        let count = |model: &Arc<ModelVersion>| {
            let before: Vec<_> = stage.models.iter().chain([model]).map(|model| counters(model)).collect();
            let answer = wait(model.submit(wide_request(1, rows, most, width), Instant::now(), Responder::unary));
            stage.assert_at_rest();
            let after = stage.models.iter().chain([model]).map(|model| counters(model));
            (leveled(answer), after.zip(before).map(|(after, before)| difference(after, before)).collect::<Vec<_>>())
        };
        let fused_before = stage.fused_batches(0).len();
        let (apart, fused) = (count(&stage.apart), count(&stage.fused));
        prop_assert_eq!(&apart, &fused);
        prop_assert_eq!(stage.fused_batches(0).len() - fused_before, 1);
    }

    #[test]
    fn concurrent_requests_fused_or_step_by_step_get_their_own_answers(
        makes in vec((0u8..9).prop_map(Makes::Sum), 1..4), batches: bool, instances in 1usize..3,
        sizes in vec(1usize..4, 1..12),
    ) {
        let most = if batches { 8 } else { 0 };
        let stage = Stage::new(&makes, most, instances);
        let expected = |number, rows| leveled(wait(stage.apart.submit(request(number, rows, most), Instant::now(), Responder::unary)));
        let expected: Vec<_> = sizes.iter().enumerate().map(|(number, &rows)| expected(number, rows)).collect();
        thread::scope(|scope| {
            for part in 0..3 {
                let (stage, sizes, expected) = (&stage, &sizes, &expected);
                scope.spawn(move || {
                    let model = if part == 0 { &stage.apart } else { &stage.fused };
                    let sent: Vec<_> = sizes
                        .iter()
                        .enumerate()
                        .map(|(number, &rows)| model.submit(request(number, rows, most), Instant::now(), Responder::unary))
                        .collect();
                    for (sent, expected) in sent.into_iter().zip(expected) {
                        assert_eq!(&leveled(wait(sent)), expected);
                    }
                });
            }
        });
        stage.assert_at_rest();
        prop_assert_eq!(stage.fused.statistics.snapshot().fail.count, 0);
    }
}

#[test]
fn requests_that_came_together_are_one_batch_of_each_model() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2), Makes::Sum(3)], 8, 1);
    let requests = |runtime: &tokio::runtime::Runtime, queue: &Arc<RunQueue>| {
        let sent: Vec<_> = (0..3)
            .map(|number| stage.fused.submit(request(number, 2, 8), Instant::now(), Responder::unary).unwrap())
            .collect();
        assert_eq!(stage.fused.waiting(), 3);
        drop(tokio::task::LocalSet::new());
        runtime.block_on(async {
            let serving = tokio::spawn(Arc::clone(queue).serve());
            for (number, sent) in sent.into_iter().enumerate() {
                let Reply { outputs, .. } = tokio::time::timeout(TEST_TIMEOUT, sent).await.unwrap().unwrap().unwrap();
                let first = (number * 100) as f32;
                // Both inputs of the second model are what the first was given, or made.
                assert_eq!(floats(&outputs[0].data)[0], (first + 1.0) + first + 2.0 + 3.0);
                assert_eq!(floats(&outputs[1].data)[0], first + 1.0);
            }
            serving.abort();
        });
    };
    on_a_network_thread(requests);
    for model in 0..3 {
        assert_eq!(stage.fused_batches(model).last(), Some(&(3, 6)));
    }
    let statistics = stage.fused.statistics.snapshot();
    // An ensemble counts each request as an execution, however they went through its steps.
    assert_eq!((statistics.execution_count, statistics.inference_count), (4, 7));
}

/// Runs a test on a thread with a run-to-completion queue, as network threads have.
fn on_a_network_thread(test: impl FnOnce(&tokio::runtime::Runtime, &Arc<RunQueue>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let queue = RunQueue::open();
    test(&runtime, &queue);
    RunQueue::close();
}

#[test]
fn requests_run_step_by_step_where_an_instance_stays_busy() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2)], 8, 1);
    let before = stage.fused_batches(0).len();
    let instance = stage.models[1].queue().claim().unwrap();
    on_a_network_thread(|runtime, queue| {
        let sent = stage.fused.submit(request(1, 1, 8), Instant::now(), Responder::unary).unwrap();
        runtime.block_on(async {
            let serving = tokio::spawn(Arc::clone(queue).serve());
            let deadline = Instant::now() + TEST_TIMEOUT;
            while stage.models[1].waiting() == 0 {
                assert!(Instant::now() < deadline, "the request has not come to the second step");
                tokio::task::yield_now().await;
            }
            let effect = stage.models[1].with_queue(|queue, now| queue.finish(now, instance));
            stage.models[1].carry_out(effect);
            assert!(tokio::time::timeout(TEST_TIMEOUT, sent).await.unwrap().unwrap().is_ok());
            serving.abort();
        });
    });
    assert_eq!(stage.fused_batches(0).len(), before);
}

/// An ensemble whose first steps are an ensemble themselves, and the same where both go step by step.
struct Nested {
    service: Arc<Service>,
    models: Vec<Arc<ModelVersion>>,
    /// The inner and the outer one.
    fused: [Arc<ModelVersion>; 2],
    apart: [Arc<ModelVersion>; 2],
}

impl Nested {
    /// So many of the models are steps of the inner ensemble; the first takes each request by itself if it is wanted.
    fn new(makes: &[Makes], within: usize, alone: bool, most: u32) -> Nested {
        let model = |number: usize| {
            let name = format!("m{number}");
            let scheduling = if alone && number == 0 { json!({"kind": "direct"}) } else { batches(most) };
            let ports = json!({"inputs": [port("A", true)], "scheduling": scheduling});
            let mut model = model_of(makes[number], 1, with(common_spec(&name, most), ports));
            // Quick, however long the test's own requests have taken.
            Arc::get_mut(&mut model).unwrap().pace = Pace::of(ExecutionThreads::Network);
            model
        };
        let models: Vec<_> = (0..makes.len()).map(model).collect();
        let service = Arc::new(service(models.iter().map(Arc::clone)));
        let step = |number: usize| {
            let from = if number == 0 { "X".into() } else { format!("t{}", number - 1) };
            json!({"model": format!("m{number}"), "version": -1, "inputs": {"A": from}, "decoupled": false,
                "outputs": {"Y": format!("t{number}"), "Z": format!("z{number}")}})
        };
        let pair = |kind: &str, most_calls: u32| {
            let between = format!("t{}", within - 1);
            let last = format!("t{}", makes.len() - 1);
            let (inner, outer) = (format!("inner_{kind}"), format!("outer_{kind}"));
            let within_steps: Vec<Value> = (0..within).map(step).collect();
            let mut steps = vec![json!({"model": &inner, "version": -1, "inputs": {"X": "X"}, "decoupled": false,
                "outputs": {&between: &between}})];
            steps.extend((within..makes.len()).map(step));
            let built = |name: &str, steps: Vec<Value>, output: &str| {
                let spec = with(
                    common_spec(name, most),
                    json!({
                        "inputs": [port("X", true)], "outputs": [port(output, true)],
                        "scheduling": {"kind": "direct"}, "instances": [],
                        "engine": {"kind": "ensemble", "steps": steps, "max_inflight_requests": most_calls},
                    }),
                );
                let spec = serde_json::from_value(spec).unwrap();
                let built = build(&service.context, spec, &Cancellation::default()).unwrap();
                service.registry.publish(name, "", vec![Arc::clone(&built)]);
                built
            };
            let inner = built(&inner, within_steps, &between);
            [inner, built(&outer, steps, &last)]
        };
        let (fused, apart) = (pair("fused", 0), pair("apart", 1000));
        let nested = Nested { service, models, fused, apart };
        let _ = wait(nested.fused[1].submit(request(0, 1, most), Instant::now(), Responder::unary));
        nested.assert_at_rest();
        nested
    }

    fn all(&self) -> impl Iterator<Item = &Arc<ModelVersion>> {
        self.models.iter().chain(&self.fused).chain(&self.apart)
    }

    fn assert_at_rest(&self) {
        let deadline = Instant::now() + TEST_TIMEOUT;
        for model in self.all() {
            while !model.queue().is_quiet() {
                assert!(Instant::now() < deadline, "{} has not come to rest", model.name);
                thread::yield_now();
            }
        }
    }

    /// Batches that a model ran for an ensemble that went through all steps at once.
    fn fused_batches(&self, model: usize) -> Vec<(usize, u64)> {
        fused_batches(&self.models[model])
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ensembles_as_steps_have_equal_answers_and_statistics(
        makes in vec(any_makes(), 1..5), within in 1usize..5, alone: bool, number in 0usize..4, rows in 1usize..4,
    ) {
        let nested = Nested::new(&makes, within.min(makes.len()), alone, 8);
        let count = |pair: &[Arc<ModelVersion>; 2]| {
            let before: Vec<_> = nested.models.iter().chain(pair).map(|model| counters(model)).collect();
            let answer = wait(pair[1].submit(request(number, rows, 8), Instant::now(), Responder::unary));
            nested.assert_at_rest();
            let after = nested.models.iter().chain(pair).map(|model| counters(model));
            (leveled(answer), after.zip(before).map(|(after, before)| difference(after, before)).collect::<Vec<_>>())
        };
        let fused_before = nested.fused_batches(0).len();
        let (apart, fused) = (count(&nested.apart), count(&nested.fused));
        prop_assert_eq!(&apart, &fused);
        // A single step that takes each request by itself is no batch.
        prop_assert_eq!(nested.fused_batches(0).len() - fused_before, usize::from(!alone || makes.len() > 1));
        drop(nested.service);
    }
}

#[test]
fn requests_whose_rows_differ_after_a_step_of_their_own_are_batches_of_their_kind() {
    let nested = Nested::new(&[Makes::Ragged, Makes::Sum(1), Makes::Sum(2)], 2, true, 8);
    let numbers = [0, 1, 3, 6, 4, 1];
    let expected: Vec<Answer> = numbers
        .iter()
        .map(|&number| wait(nested.apart[1].submit(request(number, 2, 8), Instant::now(), Responder::unary)))
        .map(leveled)
        .collect();
    let refused = expected[2].clone().unwrap_err().message;
    assert_eq!(refused, "in ensemble 'outer_fused', in ensemble 'inner_fused', row 0 of 2: it begins with 300");
    nested.assert_at_rest();
    let before = counters(&nested.fused[0]);
    on_a_network_thread(|runtime, queue| {
        let sent: Vec<_> = numbers
            .iter()
            .map(|&number| nested.fused[1].submit(request(number, 2, 8), Instant::now(), Responder::unary).unwrap())
            .collect();
        drop(tokio::task::LocalSet::new());
        runtime.block_on(async {
            let serving = tokio::spawn(Arc::clone(queue).serve());
            for (sent, expected) in sent.into_iter().zip(&expected) {
                let found = tokio::time::timeout(TEST_TIMEOUT, sent).await.unwrap().unwrap();
                assert_eq!(&leveled(found), expected);
            }
            serving.abort();
        });
    });
    // Batches of up to eight rows, so of four requests; one of the first has wider rows, and one fails.
    assert_eq!(nested.fused_batches(0), vec![(1, 2); 6]);
    let mut together = nested.fused_batches(1);
    together.sort_unstable();
    assert_eq!(together, [(1, 2), (2, 4), (2, 4)]);
    let [success, fail, .., rows, _, _] = difference(counters(&nested.fused[0]), before);
    assert_eq!((success, fail, rows), (5, 1, 10));
}

#[test]
fn where_one_model_takes_its_time_all_steps_are_run_beside_the_network() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2)], 8, 1);
    (0..200).for_each(|_| stage.models[1].pace.note(Duration::from_millis(50)));
    let ask = |number| wait(stage.fused.submit(request(number, 1, 8), Instant::now(), Responder::unary)).unwrap();
    // The first one still waits in the ensemble's queue, and finds out there.
    ask(1);
    let before = stage.fused_batches(0).len();
    on_a_network_thread(|runtime, _| {
        // Nobody serves the queue of this thread, so another must have run the steps.
        let sent: Vec<_> = (0..3)
            .map(|number| stage.fused.submit(request(number, 1, 8), Instant::now(), Responder::unary).unwrap())
            .collect();
        stage.assert_at_rest();
        drop((runtime, sent));
    });
    assert!(stage.fused_batches(0).len() > before);
    stage.assert_at_rest();
}

#[test]
fn requests_left_to_another_thread_count_once_for_each_step() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2)], 8, 1);
    // Three rows were seen to be quick for the first step alone: a network thread runs it, and no further.
    let (shape, data) = ([3, WIDTH as i64], [0; 4 * 3 * WIDTH]);
    let view = InputView { index: 0, datatype: Datatype::Fp32, shape: &shape, data: &data };
    stage.models[0].pace.note_batch(Duration::from_micros(1), Some(Sizes::of_views(true, 3, &[view], &[0, 1])));
    let all: Vec<_> = stage.models.iter().chain([&stage.fused]).collect();
    let before: Vec<_> = all.iter().map(|model| counters(model)).collect();
    let batches = stage.fused_batches(0).len();
    on_a_network_thread(|runtime, queue| {
        let sent = stage.fused.submit(request(1, 3, 8), Instant::now(), Responder::unary).unwrap();
        runtime.block_on(async {
            let serving = tokio::spawn(Arc::clone(queue).serve());
            assert!(tokio::time::timeout(TEST_TIMEOUT, sent).await.unwrap().unwrap().is_ok());
            serving.abort();
        });
    });
    stage.assert_at_rest();
    assert_eq!(stage.fused_batches(0)[batches..], [(1, 3), (1, 3)], "the first step ran on both threads");
    for (model, before) in all.iter().zip(before) {
        assert_eq!(difference(counters(model), before), [1, 0, 0, 0, 0, 0, 3, 1, 1], "{}", model.name);
    }
}

#[test]
fn partial_requests_and_slow_models_go_step_by_step() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2)], 8, 1);
    let before = stage.fused_batches(0).len();
    let ask = |request| assert!(wait(stage.fused.submit(request, Instant::now(), Responder::unary)).is_ok());
    let outputs = vec![RequestedOutput { name: "z0".into(), ..Default::default() }];
    ask(InferRequest { outputs, ..request(1, 1, 8) });
    assert_eq!(stage.fused_batches(0).len(), before);
    // The first one still waits in the ensemble's queue, and finds out there.
    for model in &stage.models {
        (0..200).for_each(|_| model.pace.note(Duration::from_millis(50)));
    }
    (0..2).for_each(|number| ask(request(number, 1, 8)));
    assert_eq!(stage.fused_batches(0).len(), before);
}

#[test]
fn a_new_version_of_a_step_is_called_at_once() {
    let stage = Stage::new(&[Makes::Sum(1), Makes::Sum(2)], 8, 1);
    let other = adder("m0", &["A"], Makes::Sum(40), 8, 1);
    stage.service.registry.publish("m0", "", vec![Arc::clone(&other)]);
    for _ in 0..3 {
        let reply = wait(stage.fused.submit(request(0, 1, 8), Instant::now(), Responder::unary)).unwrap();
        assert_eq!(floats(&reply.outputs[1].data)[0], 40.0);
    }
    assert_eq!(stage.models[0].statistics.snapshot().success.count, 1);
    assert_eq!(other.queue().explain(Instant::now()).decisions.len(), 3);
    stage.service.registry.publish("m0", "", Vec::new());
    let error = wait(stage.fused.submit(request(0, 1, 8), Instant::now(), Responder::unary)).unwrap_err();
    let text = "in ensemble 'fused', Request for unknown model: 'm0' has no available versions";
    assert_eq!(error.message, text);
}

#[test]
fn callers_who_leave_cost_no_execution() {
    let stage = Stage::new(&[Makes::Sum(1)], 8, 1);
    let before = stage.models[0].statistics.snapshot().execution_count;
    on_a_network_thread(|runtime, queue| {
        let sent: Vec<_> =
            (0..3).map(|number| stage.fused.submit(request(number, 1, 8), Instant::now(), Responder::unary)).collect();
        drop(sent);
        runtime.block_on(async {
            let serving = tokio::spawn(Arc::clone(queue).serve());
            let deadline = Instant::now() + TEST_TIMEOUT;
            while !stage.fused.queue().is_quiet() {
                assert!(Instant::now() < deadline, "the requests are still there");
                tokio::task::yield_now().await;
            }
            serving.abort();
        });
    });
    assert_eq!(stage.models[0].statistics.snapshot().execution_count, before);
    assert_eq!(stage.fused.statistics.snapshot().failures, [0, 3, 0, 0]);
}
