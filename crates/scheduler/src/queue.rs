//! The queue of a version of a model, whichever kind it is.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::model_queue::{Aftermath, Effect, ModelQueue};
use crate::scheduler::Next;
use crate::sequence::SequenceQueue;
use crate::why::Explanation;
use crate::work::{Refused, Work};

/// What waits for one version of a model and which instances come for it.
///
/// All methods are those of the queue in it; [`ModelQueue`] describes them.
#[derive(Debug)]
pub enum Queue<W> {
    /// Any instance may run any request.
    Shared(ModelQueue<W>),
    /// Requests come in sequences, each of which has its instance.
    Sequences(Box<SequenceQueue<W>>),
}

impl<W: Work> Queue<W> {
    /// Takes a request in.
    ///
    /// # Errors
    /// The request comes back if it is refused.
    pub fn submit(&mut self, now: Instant, work: W) -> Result<Effect, Refused<W>> {
        match self {
            Queue::Shared(queue) => queue.submit(now, work),
            Queue::Sequences(queue) => queue.submit(now, work),
        }
    }

    /// Work for an instance that the caller has claimed.
    pub fn next(&mut self, now: Instant, instance: usize, batch: &mut Vec<W>) -> (Next, Effect) {
        match self {
            Queue::Shared(queue) => queue.next(now, instance, batch),
            Queue::Sequences(queue) => queue.next(now, instance, batch),
        }
    }

    /// Claims an idle instance for requests that never stood here. Instances of sequences are never free for others.
    pub fn claim(&mut self) -> Option<usize> {
        match self {
            Queue::Shared(queue) => queue.claim(),
            Queue::Sequences(_) => None,
        }
    }

    /// Takes note of what an instance runs that was claimed for others.
    pub fn note_fused(&mut self, now: Instant, instance: usize, requests: usize, rows: u64) {
        if let Queue::Shared(queue) = self {
            queue.note_fused(now, instance, requests, rows);
        }
    }

    /// Gives an instance back without asking for more.
    pub fn finish(&mut self, now: Instant, instance: usize) -> Effect {
        match self {
            Queue::Shared(queue) => queue.finish(now, instance),
            Queue::Sequences(queue) => queue.finish(now, instance),
        }
    }

    /// Takes requests back that were taken but not executed.
    pub fn put_back(&mut self, now: Instant, works: impl DoubleEndedIterator<Item = W>) -> Effect {
        match self {
            Queue::Shared(queue) => queue.put_back(now, works),
            Queue::Sequences(queue) => queue.put_back(now, works),
        }
    }

    /// Takes out the waiting requests that `pick` names, and those that make no sense without them.
    pub fn cancel(&mut self, now: Instant, pick: impl FnMut(&W) -> bool, removed: &mut Vec<W>) -> Effect {
        match self {
            Queue::Shared(queue) => queue.cancel(now, pick, removed),
            Queue::Sequences(queue) => queue.cancel(now, pick, removed),
        }
    }

    /// What an instance knew of earlier requests is gone; what makes no sense without that is moved into `removed`.
    pub fn lose(&mut self, now: Instant, instance: usize, removed: &mut Vec<W>) -> Effect {
        match self {
            Queue::Shared(_) => Effect::None,
            Queue::Sequences(queue) => queue.lose(now, instance, removed),
        }
    }

    /// Refuses what comes from now on.
    pub fn stop(&mut self, now: Instant) -> Effect {
        match self {
            Queue::Shared(queue) => queue.stop(now),
            Queue::Sequences(queue) => queue.stop(now),
        }
    }

    /// A caller has gone.
    pub fn caller_left(&mut self, now: Instant) -> Effect {
        match self {
            Queue::Shared(queue) => queue.caller_left(now),
            Queue::Sequences(queue) => queue.caller_left(now),
        }
    }

    /// The alarm has gone off.
    pub fn expire(&mut self, now: Instant) -> Effect {
        match self {
            Queue::Shared(queue) => queue.expire(now),
            Queue::Sequences(queue) => queue.expire(now),
        }
    }

    /// What is left to be done after any of the transitions, once the mutex is released. To be asked after each of them.
    pub fn aftermath(&mut self, now: Instant) -> Option<Aftermath<W>> {
        match self {
            Queue::Shared(queue) => queue.aftermath(now),
            Queue::Sequences(queue) => queue.aftermath(now),
        }
    }

    /// The queue as it is now: what goes next, what keeps it, and what was decided last.
    pub fn explain(&mut self, now: Instant) -> Explanation {
        match self {
            Queue::Shared(queue) => queue.explain(now),
            Queue::Sequences(queue) => queue.explain(now),
        }
    }

    /// Shows the requests that wait until `see` has seen enough.
    pub fn look(&self, see: impl FnMut(&W) -> ControlFlow<()>) {
        match self {
            Queue::Shared(queue) => queue.look(see),
            Queue::Sequences(queue) => queue.look(see),
        }
    }

    /// Puts these instances into service, and no others.
    pub fn rearrange(&mut self, now: Instant, instances: &[usize]) -> Effect {
        match self {
            Queue::Shared(queue) => queue.rearrange(now, instances),
            Queue::Sequences(queue) => queue.rearrange(now, instances),
        }
    }

    /// Whether a number can be given to a new instance.
    pub fn is_free(&self, instance: usize) -> bool {
        match self {
            Queue::Shared(queue) => queue.is_free(instance),
            Queue::Sequences(queue) => queue.is_free(instance),
        }
    }

    /// Requests that wait; those in a running batch are not counted.
    pub fn waiting(&self) -> usize {
        match self {
            Queue::Shared(queue) => queue.waiting(),
            Queue::Sequences(queue) => queue.waiting(),
        }
    }

    /// Whether nothing waits and every instance is idle.
    pub fn is_quiet(&self) -> bool {
        match self {
            Queue::Shared(queue) => queue.is_quiet(),
            Queue::Sequences(queue) => queue.is_quiet(),
        }
    }
}
