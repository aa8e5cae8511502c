//! Executions that take counted resources, over several models on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Echo, tensor};
use alipes_driver_native::slots::Slots;
use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_protocol::InferRequest;
use alipes_request::responder::Responder;
use alipes_runtime::limiter::{Limited, Limiter};
use alipes_runtime::model::ModelVersion;
use alipes_spec::{LimitSpec, ResourceSpec};
use parking_lot::Mutex;

/// Who has executed, in this order, and how many at a time at most.
#[derive(Default)]
struct Log {
    running: AtomicUsize,
    most: AtomicUsize,
    order: Mutex<Vec<usize>>,
}

/// Answers its input, and says when it executes.
struct Logged {
    name: usize,
    log: Arc<Log>,
}

impl Engine for Logged {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let running = self.log.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.log.most.fetch_max(running, Ordering::SeqCst);
        self.log.order.lock().push(self.name);
        thread::sleep(Duration::from_micros(300));
        self.log.running.fetch_sub(1, Ordering::SeqCst);
        Echo.run(inputs, wanted, outputs)
    }
}

fn resource(count: u32) -> ResourceSpec {
    ResourceSpec { name: "R".to_owned(), global: false, count }
}

/// A model with so many instances, each of which takes one of R.
fn model(limiter: &Arc<Limiter>, log: &Arc<Log>, name: usize, instances: usize, priority: u32) -> Arc<ModelVersion> {
    let engine = || Box::new(Logged { name, log: Arc::clone(log) }) as Box<dyn Engine>;
    let spec = crate::common::model("template", false, Echo).spec.clone();
    let engines = (0..instances).map(|_| engine()).collect();
    let mut model = ModelVersion::new(spec, Arc::new(Slots::new(engines))).unwrap();
    let limits = vec![LimitSpec { resources: vec![resource(1)], priority }; instances];
    model.limited = Limited::new(limiter, &limits).unwrap();
    Arc::new(model)
}

fn ask(model: &Arc<ModelVersion>) -> tokio::sync::oneshot::Receiver<alipes_request::responder::Answer> {
    let request = InferRequest { inputs: vec![tensor(1)], ..Default::default() };
    model.submit(request, Instant::now(), Responder::unary).unwrap()
}

#[test]
fn no_more_than_there_is_executes_at_a_time_and_everybody_is_answered() {
    let (limiter, log) = (Arc::new(Limiter::new(&[resource(2)])), Arc::new(Log::default()));
    let models: Vec<_> = (0..3).map(|name| model(&limiter, &log, name, 2, 1)).collect();
    thread::scope(|scope| {
        for model in models.iter().cycle().take(9) {
            scope.spawn(|| (0..40).for_each(|_| drop(ask(model).blocking_recv().unwrap().unwrap())));
        }
    });
    assert_eq!(log.order.lock().len(), 9 * 40);
    assert_eq!(log.most.load(Ordering::SeqCst), 2);
}

#[test]
fn a_model_of_priority_two_executes_half_as_often_as_one_of_priority_one() {
    let (limiter, log) = (Arc::new(Limiter::new(&[resource(1)])), Arc::new(Log::default()));
    // Of several instances some always wait for their turns; one alone is passed over where it asks a moment late.
    let models: Vec<_> = [1, 2].map(|priority| model(&limiter, &log, priority as usize, 4, priority)).into();
    // Nothing is executed while the test holds the list, so that both always have requests.
    let held = log.order.lock();
    let answers: Vec<_> = (0..150).flat_map(|_| models.iter().map(ask)).collect();
    drop(held);
    answers.into_iter().for_each(|answer| drop(answer.blocking_recv().unwrap().unwrap()));
    let first = log.order.lock().iter().skip(10).take(150).filter(|&&name| name == 1).count();
    assert!((98..=102).contains(&first), "{first} of 150 turns, where 100 are due");
}

#[test]
fn an_unloaded_version_releases_its_resources() {
    let (limiter, log) = (Arc::new(Limiter::new(&[resource(1)])), Arc::new(Log::default()));
    for name in 0..20 {
        let model = model(&limiter, &log, name, 3, 1);
        let answers: Vec<_> = (0..5).map(|_| ask(&model)).collect();
        drop(model);
        answers.into_iter().for_each(|answer| drop(answer.blocking_recv().unwrap().unwrap()));
    }
    assert_eq!(log.order.lock().len(), 100);
}

#[test]
fn what_can_never_be_granted_is_refused_when_the_model_is_loaded() {
    let limiter = Arc::new(Limiter::new(&[resource(1)]));
    let refused = |resources: Vec<ResourceSpec>| {
        Limited::new(&limiter, &[LimitSpec { resources, priority: 0 }]).err().expect("it is refused").message
    };
    assert_eq!(
        refused(vec![resource(2)]),
        "Resource count for \"R\" is limited to 1 which will prevent scheduling of one or more model instances, the \
         minimum required count is 2"
    );
    let _other = Limited::new(&limiter, &[LimitSpec { resources: vec![resource(1)], priority: 0 }]).unwrap();
    let mixed = "Resource \"R\" is present as both global and device-specific resource in the model configuration.";
    assert_eq!(refused(vec![ResourceSpec { global: true, ..resource(1) }]), mixed);
}
