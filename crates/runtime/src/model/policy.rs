//! What a specification says of batches and waiting, in the scheduler's terms.

use std::time::Duration;

use alipes_scheduler::{DynamicPolicy, Priorities, QueuePolicy, Scheduler, TimeoutAction};
use alipes_spec::{DynamicSpec, ModelSpec, QueuePolicySpec, Scheduling};

use super::Pending;

/// The scheduler that a specification asks for.
pub fn scheduler(spec: &ModelSpec) -> Scheduler<Pending> {
    match &spec.scheduling {
        // Sequences have a queue of their own.
        Scheduling::Direct {} | Scheduling::Sequence(_) => Scheduler::direct(),
        Scheduling::Dynamic(dynamic) => Scheduler::dynamic(of(dynamic, spec.max_batch_size)),
    }
}

/// How batches of at most so many rows are formed.
pub fn of(spec: &DynamicSpec, max_batch_size: u32) -> DynamicPolicy {
    let own = spec.priority_queue_policies.iter();
    DynamicPolicy {
        max_batch_size: max_batch_size.max(1),
        preferred_batch_sizes: spec.preferred_batch_sizes.clone(),
        max_queue_delay: Duration::from_micros(spec.max_queue_delay_us),
        priorities: Priorities {
            levels: spec.priority_levels,
            default_level: spec.default_priority_level,
            default_policy: queue_policy(&spec.default_queue_policy),
            policies: own.map(|own| (own.level, queue_policy(&own.policy))).collect(),
        },
        held_until: spec.held_until,
    }
}

/// Whether answers leave in the order in which requests came.
pub fn keeps_order(scheduling: &Scheduling) -> bool {
    matches!(scheduling, Scheduling::Dynamic(dynamic) if dynamic.preserve_ordering)
}

/// Whether a request may wait elsewhere than in the queue: nothing counts how many wait or for how long, and no answer
/// waits for those before it.
pub fn waits_freely(scheduling: &Scheduling) -> bool {
    match scheduling {
        Scheduling::Direct {} => true,
        Scheduling::Dynamic(dynamic) => is_plain(dynamic) && !dynamic.preserve_ordering,
        Scheduling::Sequence(_) => false,
    }
}

/// Whether requests wait in the order of arrival, for as long as it takes.
pub fn is_plain(spec: &DynamicSpec) -> bool {
    spec.held_until == 0 && of(spec, 1).priorities.are_plain()
}

fn queue_policy(spec: &QueuePolicySpec) -> QueuePolicy {
    QueuePolicy {
        timeout_action: if spec.delay { TimeoutAction::Delay } else { TimeoutAction::Reject },
        default_timeout: Duration::from_micros(spec.default_timeout_us),
        allow_timeout_override: spec.allow_timeout_override,
        max_queue_size: spec.max_queue_size,
    }
}
