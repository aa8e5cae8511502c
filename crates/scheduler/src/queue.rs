//! The trait of queues: what a version of a model needs of the one in which its requests wait.

use std::ops::ControlFlow;
use std::time::Instant;

use crate::model_queue::{Aftermath, Effect};
use crate::policy::Batching;
use crate::scheduler::Next;
use crate::why::Explanation;
use crate::work::{Refused, SequenceId};

/// The requests that wait for one version of a model, and its instances, as one state machine.
///
/// The owner holds the queue under one short mutex. After each transition, which is every method that returns an
/// [`Effect`], it asks for the [`aftermath`](Queue::aftermath), and carries out both once the mutex is released. Every
/// request that was taken in comes out exactly once: in a batch, by [`cancel`](Queue::cancel) or [`lose`](Queue::lose),
/// or in the [`Aftermath`].
pub trait Queue<W> {
    /// Takes a request in.
    ///
    /// # Errors
    ///
    /// The request comes back if it is refused.
    fn submit(&mut self, now: Instant, work: W) -> Result<Effect, Refused<W>>;

    /// Work for `instance`, which the caller has claimed through [`Effect::Start`] and drives.
    ///
    /// On [`Next::Take`] the batch, which the caller has cleared, is filled. On [`Next::WaitUntil`] the instance stays
    /// claimed and asks again at that moment, or when it is woken. On [`Next::Idle`] it is given back and no longer the
    /// caller's. The effect is independent of the answer: requests left behind may need another instance.
    fn next(&mut self, now: Instant, instance: usize, batch: &mut Vec<W>) -> (Next, Effect);

    /// Claims an idle instance for requests that never stood here, for a caller that runs them at once and then calls
    /// [`finish`](Queue::finish). `None` where the instance belongs to requests that wait here, and once the queue was
    /// stopped.
    fn claim(&mut self) -> Option<usize> {
        None
    }

    /// Records what an instance runs that was [claimed](Queue::claim).
    fn note_fused(&mut self, _now: Instant, _instance: usize, _requests: usize, _rows: u64) {}

    /// Gives `instance` back without asking for more. If requests have come meanwhile, the effect starts an instance
    /// for them.
    fn finish(&mut self, now: Instant, instance: usize) -> Effect;

    /// Takes requests back that were taken but not executed, for instance because the process that was to execute them
    /// has ended. They are the next again, in their order.
    fn put_back(&mut self, now: Instant, works: &mut dyn DoubleEndedIterator<Item = W>) -> Effect;

    /// Moves the waiting requests that `pick` names into `removed`, and those that make no sense without them.
    fn cancel(&mut self, now: Instant, pick: &mut dyn FnMut(&W) -> bool, removed: &mut Vec<W>) -> Effect;

    /// What an instance knew of earlier requests is gone; what makes no sense without that is moved into `removed`.
    fn lose(&mut self, _now: Instant, _instance: usize, _removed: &mut Vec<W>) -> Effect {
        Effect::None
    }

    /// Whether a sequence is live; none ever is in a queue that knows no sequences.
    fn knows(&self, _id: &SequenceId) -> bool {
        false
    }

    /// Refuses what comes from now on; what waits is due at once.
    fn stop(&mut self, now: Instant) -> Effect;

    /// A caller has gone: its request is given back at once where few wait, else within a microsecond for each that
    /// waits, and before it could be executed.
    fn caller_left(&mut self, now: Instant) -> Effect;

    /// The alarm has gone off: what has waited too long is given back, or stands behind the others.
    fn expire(&mut self, now: Instant) -> Effect;

    /// What is left to be done after a transition, once the mutex is released; almost always nothing.
    fn aftermath(&mut self, now: Instant) -> Option<Aftermath<W>>;

    /// The queue as it is now: what goes next, what keeps it, and what was decided last.
    fn explain(&mut self, now: Instant) -> Explanation;

    /// Shows the requests that wait until `see` has seen enough.
    fn look(&self, see: &mut dyn FnMut(&W) -> ControlFlow<()>);

    /// Shows the first of each line in which requests wait. The one that has waited longest is among them, unless it
    /// was late and stands behind others.
    fn look_at_heads(&self, see: &mut dyn FnMut(&W));

    /// Puts these instances into service, in the order in which they are to be claimed, and no others. Numbers that are
    /// [free](Queue::is_free) stand for new instances.
    ///
    /// An instance that is left out is given no more work: an idle one is gone at once, any other when it asks next.
    /// What waits is left to those in service; without any it waits until some come.
    fn rearrange(&mut self, now: Instant, instances: &[usize]) -> Effect;

    /// Forms batches in another way from now on. Who waits keeps its place and its age; who runs is not touched. Where
    /// no batches are formed by such rules, nothing changes.
    fn set_batching(&mut self, _now: Instant, _batching: Batching) -> Effect {
        Effect::None
    }

    /// Whether a number can be given to a new instance: no instance has it, or the one that had it is gone.
    fn is_free(&self, instance: usize) -> bool;

    /// Requests that wait; those in a running batch are not counted.
    fn waiting(&self) -> usize;

    /// Whether nothing waits and every instance is idle: with [`stop`](Queue::stop) before it, the end of a drain.
    fn is_quiet(&self) -> bool;
}
