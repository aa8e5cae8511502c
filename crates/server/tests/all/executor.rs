//! Requests through the queue, the drivers and an engine of our own: nothing lost, nothing answered twice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use alipes_driver_native::slots::{Loaded, Slots};
use alipes_engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
use alipes_protocol::{Code, Datatype, InferRequest, Origin, Tensor};
use alipes_request::responder::{Answer, Responder};
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::executor::park::Parker;
use alipes_runtime::executor::run_queue::RunQueue;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::Driver;
use alipes_runtime::model::sizes::Sizes;
use alipes_spec::ModelSpec;
use bytes::Bytes;
use tokio::sync::oneshot;

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Gives its input back. A first value of 13 makes it fail, of 66 makes it panic; rows of 99 it cannot compute.
#[derive(Clone, Default)]
struct Echo {
    batches: Arc<Mutex<Vec<i64>>>,
    threads: Arc<Mutex<Vec<ThreadId>>>,
    pause: Duration,
    refused: Vec<RefusedRow>,
    unpredictable: bool,
}

impl Engine for Echo {
    fn sizes_tell(&self, _bytes: usize) -> bool {
        !self.unpredictable
    }

    fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.refused)
    }

    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let input = &inputs[0];
        self.batches.lock().unwrap().push(input.shape[0]);
        self.threads.lock().unwrap().push(thread::current().id());
        thread::sleep(self.pause);
        let refused = input.data.iter().enumerate().filter(|&(_, &value)| value == 99);
        let refuse = |(row, _)| RefusedRow { row, error: EngineError::invalid("ninety-nine") };
        self.refused = refused.map(refuse).collect();
        match input.data[0] {
            13 => Err(EngineError::internal("thirteen")),
            66 => panic!("sixty-six"),
            _ => {
                let data = Bytes::copy_from_slice(input.data);
                let shape = input.shape.iter().copied().collect();
                outputs.extend(wanted.iter().map(|&index| OutputTensor {
                    index,
                    datatype: input.datatype,
                    shape: Clone::clone(&shape),
                    data: data.clone(),
                }));
                Ok(())
            }
        }
    }
}

fn spec(max_batch_size: u32, scheduling: &str, instances: usize) -> ModelSpec {
    let names = vec!["i"; instances];
    let document = format!(
        r#"{{"schema":1,"name":"echo","version":1,"platform":"p","max_batch_size":{max_batch_size},
        "inputs":[{{"name":"X","datatype":"UINT8","dims":[1]}}],"outputs":[{{"name":"Y","datatype":"UINT8","dims":[1]}}],
        "scheduling":{scheduling},"instances":{names:?},
        "engine":{{"kind":"onnxruntime","library":"","model_path":"","intra_op_threads":1,"inter_op_threads":1,
        "execution_mode":"sequential","graph_optimization":"all","session_config":{{}},"memory_arena":true}},
        "config_json":"","config_proto":"","metric_tags":{{}}}}"#
    );
    serde_json::from_str(&document).unwrap()
}

const DYNAMIC: &str = r#"{"kind":"dynamic","preferred_batch_sizes":[],"max_queue_delay_us":0}"#;
const DELAYED: &str = r#"{"kind":"dynamic","preferred_batch_sizes":[8],"max_queue_delay_us":2000}"#;
/// A batch waits for its eight rows, however slow the machine is.
const EIGHT: &str = r#"{"kind":"dynamic","preferred_batch_sizes":[8],"max_queue_delay_us":60000000}"#;
const DIRECT: &str = r#"{"kind":"direct"}"#;

fn model(engine: &Echo, scheduling: &str, instances: usize) -> Arc<ModelVersion> {
    model_and_slots(engine, scheduling, instances).0
}

fn model_and_slots(engine: &Echo, scheduling: &str, instances: usize) -> (Arc<ModelVersion>, Arc<Slots>) {
    let slots = Arc::new(Slots::new(engines(engine, instances)));
    let model = ModelVersion::new(spec(8, scheduling, instances), Arc::clone(&slots) as Arc<dyn Driver>);
    (Arc::new(model.unwrap()), slots)
}

fn submit(model: &Arc<ModelVersion>, value: u8) -> oneshot::Receiver<Answer> {
    submit_row(model, vec![value])
}

fn submit_rows(model: &Arc<ModelVersion>, values: Vec<u8>) -> oneshot::Receiver<Answer> {
    let shape = [values.len() as i64, 1].into_iter().collect();
    let tensor = Tensor { name: "X".into(), datatype: Datatype::Uint8, shape, data: values.into() };
    let request = InferRequest { inputs: vec![tensor], ..InferRequest::default() };
    model.submit(request, Instant::now(), Responder::unary).unwrap()
}

fn submit_row(model: &Arc<ModelVersion>, row: Vec<u8>) -> oneshot::Receiver<Answer> {
    let shape = [1, row.len() as i64].into_iter().collect();
    let tensor = Tensor { name: "X".into(), datatype: Datatype::Uint8, shape, data: row.into() };
    let request = InferRequest { inputs: vec![tensor], ..InferRequest::default() };
    model.submit(request, Instant::now(), Responder::unary).unwrap()
}

fn wait(answer: oneshot::Receiver<Answer>) -> Answer {
    answer.blocking_recv().expect("every request is answered")
}

/// Ends once nothing is executed any more, so that the statistics are complete.
fn settle(model: &ModelVersion) {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while !model.queue().is_quiet() {
        assert!(Instant::now() < deadline, "the instances never came to rest");
        thread::yield_now();
    }
}

#[test]
fn every_request_gets_its_own_answer() {
    for (scheduling, instances) in [(DIRECT, 1), (DIRECT, 3), (DYNAMIC, 1), (DYNAMIC, 3)] {
        let engine = Echo::default();
        let model = model(&engine, scheduling, instances);
        let answered = AtomicUsize::new(0);
        thread::scope(|scope| {
            for caller in 0..4_u8 {
                let (model, answered) = (&model, &answered);
                scope.spawn(move || {
                    for round in 0..250_u8 {
                        // 13 and 66 have a meaning of their own.
                        let value = 100 + (round.wrapping_mul(4).wrapping_add(caller)) % 100;
                        let reply = wait(submit(model, value)).unwrap();
                        assert_eq!(reply.outputs[0].data[..], [value]);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        settle(&model);
        let statistics = model.statistics.snapshot();
        assert_eq!((answered.into_inner(), statistics.success.count, statistics.inference_count), (1000, 1000, 1000));
        assert_eq!(statistics.execution_count, engine.batches.lock().unwrap().len() as u64);
        assert_eq!(statistics.fail.count, 0);
    }
}

#[test]
fn a_failing_model_fails_its_batch_and_nothing_else() {
    let model = model(&Echo::default(), DIRECT, 1);
    let error = wait(submit(&model, 13)).unwrap_err();
    assert_eq!((error.code, error.origin, error.message.as_str()), (Code::Internal, Origin::Model, "thirteen"));
    assert!(wait(submit(&model, 1)).is_ok());
    settle(&model);
    let statistics = model.statistics.snapshot();
    assert_eq!((statistics.fail.count, statistics.success.count, statistics.failures), (1, 1, [0, 0, 1, 0]));
}

#[test]
fn a_panicking_engine_answers_with_an_error_and_serves_on() {
    let model = model(&Echo::default(), DIRECT, 1);
    assert!(wait(submit(&model, 66)).unwrap_err().message.contains("panicked"));
    assert_eq!(wait(submit(&model, 5)).unwrap().outputs[0].data[..], [5]);
}

#[test]
fn a_request_withdrawn_while_it_waits_never_reaches_the_model() {
    let engine = Echo::default();
    let model = model(&engine, DIRECT, 1);
    // Nothing is executed while the test holds the list of batches.
    let held = engine.batches.lock().unwrap();
    let first = submit(&model, 1);
    drop(submit(&model, 2));
    let last = submit(&model, 3);
    drop(held);
    assert!(wait(first).is_ok());
    assert!(wait(last).is_ok());
    settle(&model);
    assert_eq!(engine.batches.lock().unwrap().len(), 2);
    assert_eq!(model.statistics.snapshot().failures, [0, 1, 0, 0]);
}

#[test]
fn requests_of_one_turn_of_a_network_thread_form_one_batch() {
    let engine = Echo::default();
    let model = model(&engine, DYNAMIC, 1);
    // Only a model whose executions are known to be short runs on a network thread; one that is held up changes
    // nothing.
    model.pace.note(Duration::from_micros(1));
    wait(submit(&model, 1)).unwrap();
    settle(&model);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(RunQueue::open().serve());
        let answers: Vec<_> = (0..8).map(|value| submit(&model, value)).collect();
        for (value, answer) in (0..8).zip(answers) {
            assert_eq!(answer.await.unwrap().unwrap().outputs[0].data[..], [value]);
        }
        RunQueue::close();
    });
    assert_eq!(engine.batches.lock().unwrap()[..], [1, 8]);
}

/// Executes rows of these lengths one after the other, sent from a network thread to a model that is quick whatever
/// they take; gives for each whether the thread itself executed it.
fn executed_here(lengths: &[usize], unpredictable: bool) -> Vec<bool> {
    let engine = Echo { unpredictable, ..Echo::default() };
    let mut spec = spec(8, DYNAMIC, 1);
    (spec.inputs[0].dims, spec.outputs[0].dims) = (vec![-1], vec![-1]);
    let slots = Arc::new(Slots::new(engines(&engine, 1)));
    let model = Arc::new(ModelVersion::new(spec, slots as Arc<dyn Driver>).unwrap());
    model.pace.note(Duration::from_micros(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(RunQueue::open().serve());
        for &length in lengths {
            let reply = submit_row(&model, vec![5; length]).await.unwrap().unwrap();
            assert_eq!(reply.outputs[0].data.len(), length);
            // Else the thread that executed the last one would find the next.
            while !model.queue().is_quiet() {
                tokio::task::yield_now().await;
            }
            // The machine may have held that execution up, which this test is not about.
            (0..1000).for_each(|_| model.pace.note(Duration::from_micros(1)));
            let shape = [1, length as i64];
            let view = InputView { index: 0, datatype: Datatype::Uint8, shape: &shape, data: &vec![5; length] };
            let sizes = Sizes::of_views(true, 1, &[view], &[0]);
            model.pace.note_batch(Duration::from_micros(1), (!unpredictable).then_some(sizes));
        }
        // One that waits behind a large one is executed as well, with nobody to ask for it again.
        let answers = [1 << 20, 1, 1].map(|length| submit_row(&model, vec![5; length]));
        for answer in answers {
            assert!(answer.await.unwrap().is_ok());
        }
        RunQueue::close();
    });
    let here = thread::current().id();
    let threads = engine.threads.lock().unwrap();
    threads[..lengths.len()].iter().map(|thread| *thread == here).collect()
}

#[test]
fn a_network_thread_executes_only_what_is_no_larger_than_what_was_quick() {
    let lengths = [1, 1, 2, 2, 1, 50_000, 2, 50_000, 49_999, 50_001];
    let expected = [false, true, false, true, true, false, true, true, true, false];
    assert_eq!(executed_here(&lengths, false), expected);
}

#[test]
fn a_network_thread_executes_nothing_whose_sizes_do_not_tell_how_long_it_takes() {
    assert_eq!(executed_here(&[1, 1, 1, 1], true), [false; 4]);
}

#[test]
fn a_version_is_gone_when_its_last_holder_lets_go() {
    let model = model(&Echo::default(), DIRECT, 1);
    let departure = model.departure();
    wait(submit(&model, 1)).unwrap();
    settle(&model);
    assert!(!departure.wait_until(Instant::now()));
    drop(model);
    assert!(departure.wait_until(Instant::now() + TEST_TIMEOUT));
}

/// So many further copies.
fn engines(engine: &Echo, count: usize) -> Vec<Box<dyn Engine>> {
    (0..count).map(|_| Box::new(engine.clone()) as Box<dyn Engine>).collect()
}

#[test]
fn instances_come_and_go_under_load_and_every_request_is_answered_once() {
    for scheduling in [DIRECT, DYNAMIC, DELAYED] {
        let engine = Echo::default();
        let (model, slots) = model_and_slots(&engine, scheduling, 1);
        let (over, submitted) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        submitted.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(wait(submit(&model, 7)).unwrap().outputs[0].data[..], [7]);
                    }
                });
            }
            for count in [3, 1, 4, 2, 5, 1].into_iter().cycle().take(120) {
                let change = slots.change_to(&vec![None; count]);
                let copies = engines(&engine, change.missing.len()).into_iter();
                let copies: Vec<_> = copies.map(|engine| Loaded { engine, gpu: None }).collect();
                let names = vec!["i"; copies.len()];
                match copies.is_empty() {
                    false => slots.grow(&model, copies, &names, &Cancellation::default()).unwrap(),
                    true => slots.shrink(&model, &change.leaving),
                }
                assert_eq!(slots.count(), count);
                thread::sleep(Duration::from_millis(1));
            }
            over.store(true, Ordering::Relaxed);
        });
        settle(&model);
        let statistics = model.statistics.snapshot();
        assert_eq!((statistics.success.count, statistics.fail.count), (submitted.into_inner() as u64, 0));
    }
}

#[test]
fn an_instance_that_goes_finishes_what_it_executes_and_is_freed() {
    let engine = Echo { pause: Duration::from_millis(50), ..Echo::default() };
    let (model, slots) = model_and_slots(&engine, DIRECT, 2);
    // One handle is the test's, one each instance's.
    assert_eq!(Arc::strong_count(&engine.batches), 3);
    let answers = [submit(&model, 1), submit(&model, 2), submit(&model, 3)];
    slots.shrink(&model, &[1]);
    for (value, answer) in (1..).zip(answers) {
        assert_eq!(wait(answer).unwrap().outputs[0].data[..], [value]);
    }
    settle(&model);
    let deadline = Instant::now() + TEST_TIMEOUT;
    while Arc::strong_count(&engine.batches) > 2 {
        assert!(Instant::now() < deadline, "its engine is kept");
        thread::yield_now();
    }
}

#[test]
fn a_wake_up_before_the_sleep_sticks_once() {
    let parker = Parker::default();
    parker.unpark();
    parker.park_until(Instant::now() + Duration::from_secs(3600));
    let short = Instant::now() + Duration::from_millis(1);
    parker.park_until(short);
    assert!(Instant::now() >= short);
}

#[test]
fn rows_that_cannot_be_computed_fail_their_requests_alone() {
    let engine = Echo::default();
    let model = model(&engine, EIGHT, 1);
    let rows = [vec![1], vec![99], vec![2, 3], vec![4, 99, 99], vec![5]];
    let answers: Vec<_> = rows.iter().map(|row| submit_rows(&model, row.clone())).collect();
    let answers: Vec<Answer> = answers.into_iter().map(wait).collect();
    settle(&model);
    assert_eq!(*engine.batches.lock().unwrap(), [8]);
    for (row, answer) in rows.iter().zip(&answers) {
        match answer {
            Ok(reply) => assert_eq!(reply.outputs[0].data, row[..]),
            Err(error) => assert_eq!((error.code, error.origin), (Code::InvalidArgument, Origin::Model)),
        }
    }
    let texts: Vec<&str> = answers.iter().filter_map(|answer| Some(answer.as_ref().err()?.message.as_str())).collect();
    assert_eq!(texts, ["ninety-nine", "row 1 of 3: ninety-nine"]);
    let seen = model.statistics.snapshot();
    assert_eq!((seen.success.count, seen.inference_count, seen.execution_count), (3, 4, 1));
}

#[test]
fn a_batch_without_a_row_that_can_be_computed_is_no_execution() {
    let engine = Echo::default();
    let model = model(&engine, DIRECT, 1);
    assert_eq!(wait(submit(&model, 99)).unwrap_err().message, "ninety-nine");
    settle(&model);
    assert_eq!(model.statistics.snapshot().execution_count, 0);
    assert!(wait(submit(&model, 1)).is_ok());
}
