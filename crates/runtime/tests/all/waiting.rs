//! Calls that wait for each other: what the graph refuses is what a play of all that can still happen never answers.

use std::collections::VecDeque;
use std::sync::Arc;

use alipes_request::chain::{Holder, WaitId};
use alipes_runtime::model::waiting::{Callee, Servers, WaitGraph};
use proptest::prelude::*;

const fn holder(version: usize, instance: usize) -> Holder {
    Holder { instance: (version * 100 + instance) as u64, request: 0 }
}

struct Fixed(Servers);

impl Callee for Fixed {
    fn servers(&self) -> Servers {
        self.0.clone()
    }

    fn name(&self) -> &str {
        "fixed"
    }
}

fn instances(version: usize, count: usize) -> Arc<Fixed> {
    Arc::new(Fixed(Servers::Any((0..count).map(|instance| holder(version, instance)).collect())))
}

fn fixed(servers: Servers) -> Arc<Fixed> {
    Arc::new(Fixed(servers))
}

/// A request: none is waited for by nobody but a client.
type Request = Option<WaitId>;

/// An instance with its batch and the calls that it waits for.
#[derive(Clone, Default)]
struct Instance {
    batch: Vec<Request>,
    waits: Vec<WaitId>,
}

#[derive(Clone, Default)]
struct Version {
    queue: VecDeque<Request>,
    instances: Vec<Instance>,
    batch_size: usize,
}

/// Versions with their queues, each served first come, first served.
#[derive(Clone)]
struct World(Vec<Version>);

impl World {
    fn take(&mut self) {
        for Version { queue, instances, batch_size } in &mut self.0 {
            for instance in instances.iter_mut().filter(|instance| instance.batch.is_empty()) {
                let count = queue.len().min(*batch_size);
                instance.batch = queue.drain(..count).collect();
            }
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Instance> {
        self.0.iter_mut().flat_map(|version| &mut version.instances)
    }

    /// An execution ends: gives the calls that it has answered.
    fn finish(&mut self, version: usize, instance: usize) -> Vec<WaitId> {
        let batch = std::mem::take(&mut self.0[version].instances[instance].batch);
        let answered: Vec<WaitId> = batch.into_iter().flatten().collect();
        self.all().for_each(|instance| instance.waits.retain(|wait| !answered.contains(wait)));
        self.take();
        answered
    }

    /// Who executes and waits for nothing.
    fn free(&self) -> Vec<(usize, usize)> {
        let all = self.0.iter().enumerate().flat_map(|(version, it)| {
            it.instances.iter().enumerate().map(move |(instance, it)| (version, instance, it))
        });
        all.filter(|(_, _, it)| !it.batch.is_empty() && it.waits.is_empty()).map(|(v, i, _)| (v, i)).collect()
    }

    /// The world once nobody can do anything more, where no further call is made.
    fn played_to_the_end(mut self) -> World {
        while let Some(&(version, instance)) = self.free().first() {
            self.finish(version, instance);
        }
        self
    }

    fn waits_for(&mut self, wait: WaitId) -> bool {
        self.all().any(|instance| instance.waits.contains(&wait))
    }
}

#[derive(Clone, Debug)]
enum Step {
    Arrive(usize),
    Call { who: usize, callee: usize },
    Finish(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..8usize).prop_map(Step::Arrive),
        4 => (any::<usize>(), 0..8usize).prop_map(|(who, callee)| Step::Call { who, callee }),
        1 => any::<usize>().prop_map(Step::Finish),
    ];
    prop::collection::vec(step, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn a_call_is_refused_exactly_when_nobody_could_ever_answer_it(
        counts in prop::collection::vec((1..4usize, 1..3usize), 1..4),
        steps in steps(),
    ) {
        let version = |&(count, batch_size): &(usize, usize)| {
            Version { instances: vec![Instance::default(); count], batch_size, ..Version::default() }
        };
        let mut world = World(counts.iter().map(version).collect());
        let mut graph = WaitGraph::default();
        for step in steps {
            match step {
                Step::Arrive(version) => {
                    let version = version % counts.len();
                    world.0[version].queue.push_back(None);
                    world.take();
                }
                Step::Call { who, callee } => {
                    // Who waits already may have another thread that calls.
                    let executing: Vec<(usize, usize)> = (0..counts.len())
                        .flat_map(|version| (0..counts[version].0).map(move |instance| (version, instance)))
                        .filter(|&(version, instance)| !world.0[version].instances[instance].batch.is_empty())
                        .collect();
                    let Some(&(version, instance)) = executing.get(who % executing.len().max(1)) else { continue };
                    let callee = callee % counts.len();
                    let executes: Vec<WaitId> =
                        world.0[version].instances[instance].batch.iter().copied().flatten().collect();
                    let begun = graph.begin(holder(version, instance), &executes, instances(callee, counts[callee].0));
                    let wait = begun.as_ref().map_or(WaitId(u64::MAX), |wait| *wait);
                    let mut called = world.clone();
                    called.0[version].instances[instance].waits.push(wait);
                    called.0[callee].queue.push_back(Some(wait));
                    called.take();
                    let is_answered = !called.clone().played_to_the_end().waits_for(wait);
                    prop_assert_eq!(begun.is_ok(), is_answered);
                    if is_answered {
                        world = called;
                    }
                }
                Step::Finish(who) => {
                    let free = world.free();
                    if let Some(&(version, instance)) = free.get(who % free.len().max(1)) {
                        for wait in world.finish(version, instance) {
                            prop_assert!(graph.end(wait).is_some());
                        }
                    }
                }
            }
        }
        let mut end = world.played_to_the_end();
        prop_assert!(end.all().all(|instance| instance.batch.is_empty()), "somebody waits for ever");
    }
}

#[test]
fn a_model_calls_itself_while_an_instance_is_free() {
    let mut graph = WaitGraph::default();
    let mut executes = Vec::new();
    for instance in 0..3 {
        let wait = graph.begin(holder(0, instance), &executes, instances(0, 4)).ok();
        executes = wait.into_iter().collect();
        assert_eq!(executes.len(), 1, "instance {instance} may call");
    }
    assert!(graph.begin(holder(0, 3), &executes, instances(0, 4)).is_err());
    let last = executes[0];
    assert!(graph.end(last).is_some());
    assert!(graph.begin(holder(0, 2), &[], instances(0, 4)).is_ok(), "what was refused waits no more");
}

#[test]
fn another_free_instance_does_not_help_who_waits_for_a_busy_one() {
    let mut graph = WaitGraph::default();
    let first = graph.begin(holder(0, 0), &[], instances(1, 2)).ok();
    let executes: Vec<WaitId> = first.into_iter().collect();
    assert!(graph.begin(holder(1, 0), &executes, instances(0, 1)).is_err());
}

#[test]
fn requests_that_call_each_other_crosswise_are_not_all_served() {
    let mut graph = WaitGraph::default();
    assert!(graph.begin(holder(0, 0), &[], instances(1, 1)).is_ok());
    assert!(graph.begin(holder(1, 0), &[], instances(0, 1)).is_err());
}

#[test]
fn who_waits_for_a_certain_instance_needs_all_of_them() {
    let mut graph = WaitGraph::default();
    let both = || vec![holder(0, 0), holder(0, 1)];
    assert!(graph.begin(holder(0, 0), &[], fixed(Servers::Each(both()))).is_err());
    assert!(graph.begin(holder(0, 0), &[], fixed(Servers::Any(both()))).is_ok());
    assert!(graph.begin(holder(1, 0), &[], fixed(Servers::Each(both()))).is_ok());
}

#[test]
fn a_model_none_of_whose_instances_is_up_will_be_started_again() {
    let mut graph = WaitGraph::default();
    assert!(graph.begin(holder(0, 0), &[], fixed(Servers::Any(Vec::new()))).is_ok());
}

#[test]
fn who_goes_on_behind_an_execution_is_waited_for_like_one_that_executes() {
    let later = |instance: u64| Holder { instance, request: 7 };
    let mut graph = WaitGraph::default();
    // A decoupled model has ended its execution, and calls back from a thread of its own for the same request.
    let first = graph.begin(holder(0, 0), &[], fixed(Servers::Each(vec![holder(1, 0)]))).ok();
    let executes: Vec<WaitId> = first.into_iter().collect();
    assert!(graph.begin(later(holder(1, 0).instance), &executes, instances(0, 1)).is_err());
}

#[test]
fn what_has_ended_is_not_waited_for() {
    let mut graph = WaitGraph::default();
    let wait = graph.begin(holder(0, 0), &[], instances(1, 1)).ok().expect("somebody is free");
    assert!(graph.begin(holder(1, 0), &[], instances(0, 1)).is_err());
    graph.end(wait);
    assert!(graph.begin(holder(1, 0), &[], instances(0, 1)).is_ok());
}
