//! Why a model's requests wait, explained while it runs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use alipes_graph::Graph;
use alipes_protocol::InferError;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::{Introspection, SequenceStates, WorkerStatus};
use alipes_scheduler::{Decision, Explanation};
use alipes_spec::{DynamicSpec, QueuePolicySpec, Scheduling, StrategySpec};
use serde::Serialize;

use super::Service;
use super::explain_tuning::TuningExplained;
use super::span::micros;

/// Waiting requests that are shown one by one. The queue is locked for as long as they are looked at.
const SHOWN: usize = 20;

/// The explanation of a model, and of the models that it is composed of.
#[derive(Debug, Serialize)]
pub struct Explained {
    /// The requested model, then its members, theirs, and so on, each once.
    models: Vec<ModelExplained>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ModelExplained {
    name: String,
    version: String,
    ready: bool,
    scheduling: SchedulingExplained,
    /// None of an ensemble or a graph: what waits there is in none of its models' way.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<QueueExplained>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workers: Vec<WorkerExplained>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ensemble: Option<EnsembleExplained>,
    #[serde(skip_serializing_if = "Option::is_none")]
    streaming: Option<StreamingExplained>,
    /// None of a model that does not tune itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<TuningExplained>,
}

#[derive(Debug, Serialize)]
struct SchedulingExplained {
    kind: &'static str,
    max_batch_size: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    preferred_batch_sizes: Vec<u32>,
    max_queue_delay_us: u64,
    /// None where the configuration has neither priority levels nor queue limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<LimitsExplained>,
}

/// The priority levels of a model, and the queue limits of levels without limits of their own.
#[derive(Debug, PartialEq, Serialize)]
struct LimitsExplained {
    priority_levels: u64,
    /// 0 for any time.
    timeout_us: u64,
    /// What has waited too long waits on behind the others.
    delayed: bool,
    /// 0 for any number.
    max_queue_size: usize,
}

#[derive(Debug, Serialize)]
struct QueueExplained {
    waiting: usize,
    instances: usize,
    busy_instances: usize,
    /// None before the first execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_us: Option<u64>,
    hold: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<NextExplained>,
    oldest: Vec<WaitingExplained>,
    decisions: Vec<DecisionExplained>,
}

#[derive(Debug, Serialize)]
struct NextExplained {
    requests: usize,
    due_in_us: u64,
    why: &'static str,
}

#[derive(Debug, Serialize)]
struct WaitingExplained {
    rows: u32,
    waited_us: u64,
    priority: u64,
    cancelled: bool,
}

#[derive(Debug, Serialize)]
struct DecisionExplained {
    ago_us: u64,
    #[serde(flatten)]
    what: What,
}

#[derive(Debug, Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
enum What {
    Took { instance: usize, requests: usize, rows: u64, left: usize, why: &'static str },
    Waits { instance: usize, at_most_us: u64 },
    Withdrew { requests: usize },
    Expired { requests: usize },
    PutBack { requests: usize },
    Refused { requests: usize },
    Stopped,
    Rearranged { instances: usize },
}

#[derive(Debug, Serialize)]
struct WorkerExplained {
    instance: String,
    up: bool,
    requests: usize,
}

#[derive(Debug, Serialize)]
struct StreamingExplained {
    /// Sequences that are live.
    sequences: usize,
    max_sequences: usize,
    /// Requests that wait for another of their sequence.
    waiting: usize,
}

#[derive(Debug, Serialize)]
struct EnsembleExplained {
    /// Requests that are under way in its steps.
    requests: usize,
    /// Calls that wait for room at their step, where the configuration bounds it.
    held_back: usize,
    /// Its models, each `name:version`.
    members: Vec<String>,
}

impl ModelExplained {
    /// A graph with so many requests under way, whose steps call these models.
    pub(super) fn of_graph(
        graph: &Graph,
        version: i64,
        ready: bool,
        requests: usize,
        models: &[Arc<ModelVersion>],
    ) -> ModelExplained {
        let members = models.iter().map(member_name).collect();
        ModelExplained {
            name: graph.name.clone(),
            version: version.to_string(),
            ready,
            scheduling: plain("graph", 0),
            queue: None,
            workers: Vec::new(),
            ensemble: Some(EnsembleExplained { requests, held_back: 0, members }),
            streaming: None,
            tuning: None,
        }
    }
}

impl Service {
    /// What waits for a model, what keeps the next batch, and what was decided last; of a graph also for its models.
    ///
    /// # Errors
    ///
    /// As for `lookup`.
    pub fn explain(&self, name: &str, version: &str) -> Result<Explained, InferError> {
        let graph = self.graph(name, version)?;
        let mut found = match graph {
            Some(graph) => self.models_of(graph),
            None => vec![self.lookup(name, version)?],
        };
        let steps = graph.map(|graph| self.explain_graph(graph, &found));
        let mut next = 0;
        while let Some(model) = found.get(next) {
            next += 1;
            let is_new = |member: &Arc<ModelVersion>| found.iter().all(|known| !Arc::ptr_eq(known, member));
            let more: Vec<_> = model.driver.members().into_iter().filter(is_new).collect();
            found.extend(more);
        }
        Ok(Explained { models: steps.into_iter().chain(found.iter().map(explain)).collect() })
    }
}

fn explain(model: &Arc<ModelVersion>) -> ModelExplained {
    let introspection = model.driver.introspect();
    let scheduling = scheduling(model, &introspection);
    let (queue, workers, ensemble) = match introspection {
        Introspection::Queue => (Some(queue(model)), Vec::new(), None),
        Introspection::Workers(workers) => {
            (Some(queue(model)), workers.into_iter().map(WorkerExplained::from).collect(), None)
        }
        Introspection::Ensemble { runs, held_back } => {
            (None, Vec::new(), Some(explain_ensemble(model, runs, held_back)))
        }
        Introspection::Streaming => (None, Vec::new(), None),
    };
    let streaming = |states: &dyn SequenceStates| StreamingExplained {
        sequences: states.live(),
        max_sequences: states.limit(),
        waiting: model.waiting(),
    };
    ModelExplained {
        name: model.spec.name.clone(),
        version: model.spec.version.to_string(),
        ready: model.is_ready(),
        scheduling,
        queue,
        workers,
        ensemble,
        streaming: model.driver.sequence_states().map(streaming),
        tuning: model.tuning.as_ref().map(|tuning| TuningExplained::of(&tuning.show(), alipes_clock::now())),
    }
}

fn scheduling(model: &ModelVersion, introspection: &Introspection) -> SchedulingExplained {
    let plain = |kind| plain(kind, model.spec.max_batch_size);
    match introspection {
        Introspection::Ensemble { .. } => return plain("ensemble"),
        Introspection::Streaming => return plain("streaming"),
        Introspection::Queue | Introspection::Workers(_) => {}
    }
    match &model.spec.scheduling {
        Scheduling::Direct {} => plain("direct"),
        Scheduling::Dynamic(dynamic) => SchedulingExplained {
            limits: limits(dynamic),
            ..match model.tuning.as_ref().map(|tuning| tuning.show().setting) {
                None => SchedulingExplained {
                    preferred_batch_sizes: dynamic.preferred_batch_sizes.clone(),
                    max_queue_delay_us: dynamic.max_queue_delay_us,
                    ..plain("dynamic")
                },
                Some(setting) => SchedulingExplained {
                    preferred_batch_sizes: vec![setting.batch],
                    max_queue_delay_us: micros(setting.queue_delay),
                    ..plain("dynamic")
                },
            }
        },
        Scheduling::Sequence(sequences) => match &sequences.strategy {
            StrategySpec::Direct { max_queue_delay_us, .. } => {
                SchedulingExplained { max_queue_delay_us: *max_queue_delay_us, ..plain("sequence_direct") }
            }
            StrategySpec::Oldest { preferred_batch_sizes, max_queue_delay_us, .. } => SchedulingExplained {
                preferred_batch_sizes: preferred_batch_sizes.clone(),
                max_queue_delay_us: *max_queue_delay_us,
                ..plain("sequence_oldest")
            },
        },
    }
}

fn plain(kind: &'static str, max_batch_size: u32) -> SchedulingExplained {
    SchedulingExplained { kind, max_batch_size, preferred_batch_sizes: Vec::new(), max_queue_delay_us: 0, limits: None }
}

fn limits(dynamic: &DynamicSpec) -> Option<LimitsExplained> {
    let policy = &dynamic.default_queue_policy;
    let says_something = dynamic.priority_levels > 0 || *policy != QueuePolicySpec::default();
    says_something.then_some(LimitsExplained {
        priority_levels: dynamic.priority_levels,
        timeout_us: policy.default_timeout_us,
        delayed: policy.delay,
        max_queue_size: policy.max_queue_size,
    })
}

fn queue(model: &Arc<ModelVersion>) -> QueueExplained {
    let mut oldest = Vec::with_capacity(SHOWN);
    let (now, explanation) = model.with_queue(|queue, now| {
        queue.look(&mut |pending| {
            oldest.push(WaitingExplained {
                rows: pending.checked.rows,
                waited_us: micros(now.saturating_duration_since(pending.arrived)),
                priority: pending.checked.terms.priority,
                cancelled: pending.responder.is_cancelled(),
            });
            if oldest.len() < SHOWN { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (now, queue.explain(now))
    });
    let Explanation { waiting, instances, busy, outlook, hold, decisions } = explanation;
    let next = outlook.map(|outlook| NextExplained {
        requests: outlook.requests,
        due_in_us: micros(outlook.due.saturating_duration_since(now)),
        why: outlook.why.word(),
    });
    QueueExplained {
        waiting,
        instances,
        busy_instances: busy,
        execution_us: model.pace.estimate().map(micros),
        hold: hold.word(),
        next,
        oldest,
        decisions: decisions.into_iter().rev().map(|(at, what)| decision(now, at, what)).collect(),
    }
}

fn decision(now: Instant, at: Instant, decision: Decision) -> DecisionExplained {
    let what = match decision {
        Decision::Took { instance, requests, rows, left, why } => {
            What::Took { instance, requests, rows, left, why: why.word() }
        }
        Decision::Waits { instance, until } => {
            What::Waits { instance, at_most_us: micros(until.saturating_duration_since(at)) }
        }
        Decision::Withdrew { requests } => What::Withdrew { requests },
        Decision::Expired { requests } => What::Expired { requests },
        Decision::PutBack { requests } => What::PutBack { requests },
        Decision::Refused { requests } => What::Refused { requests },
        Decision::Stopped => What::Stopped,
        Decision::Rearranged { instances } => What::Rearranged { instances },
    };
    DecisionExplained { ago_us: micros(now.saturating_duration_since(at)), what }
}

impl From<WorkerStatus> for WorkerExplained {
    fn from(WorkerStatus { instance, up, requests, .. }: WorkerStatus) -> Self {
        WorkerExplained { instance, up, requests }
    }
}

fn explain_ensemble(model: &ModelVersion, runs: usize, held_back: usize) -> EnsembleExplained {
    let members = model.driver.members().iter().map(member_name).collect();
    EnsembleExplained { requests: runs + model.waiting(), held_back, members }
}

fn member_name(member: &Arc<ModelVersion>) -> String {
    format!("{}:{}", member.spec.name, member.spec.version)
}
