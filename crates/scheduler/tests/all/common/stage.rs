//! A model queue with its instances on a stage: the test decides who moves when.

use std::time::{Duration, Instant};

use alipes_scheduler::{Batching, DynamicPolicy, Effect, ModelQueue, Next, Queue, Scheduler};

use super::model::{Answer, answer};
use super::{Request, ids, zero};

/// Where the thread of an instance is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Idle,
    /// Started, woken or done with a batch: it will ask.
    Coming,
    Sleeping(Instant),
    RunningUntil(Instant),
}

/// What an instance took, and when.
#[derive(Debug, PartialEq, Eq)]
pub struct ExecutedBatch {
    pub at: Duration,
    pub instance: usize,
    pub ids: Vec<usize>,
}

pub struct Stage {
    pub queue: ModelQueue<Request>,
    pub places: Vec<Place>,
    pub executed: Vec<ExecutedBatch>,
    pub now: Instant,
    start: Instant,
    compute: Duration,
    batch: Vec<Request>,
    policy: Option<DynamicPolicy>,
    largest: u32,
    shadow: Vec<(Instant, Request)>,
    stopping: bool,
    serving: Vec<usize>,
}

impl Stage {
    /// `policy` is `None` for the direct scheduler; `compute` is how long a batch runs, whatever its size.
    pub fn new(policy: Option<DynamicPolicy>, instances: usize, compute: Duration) -> Self {
        let scheduler = policy.clone().map_or_else(Scheduler::direct, Scheduler::dynamic);
        let (queue, start) = (ModelQueue::new(scheduler, instances), zero());
        let places = vec![Place::Idle; instances];
        let (executed, batch, shadow) = (Vec::new(), Vec::new(), Vec::new());
        let serving = (0..instances).collect();
        let largest = policy.as_ref().map_or(1, |policy| policy.max_batch_size);
        Stage {
            queue,
            places,
            executed,
            now: start,
            start,
            compute,
            batch,
            policy,
            largest,
            shadow,
            stopping: false,
            serving,
        }
    }

    pub fn submit(&mut self, request: Request) {
        self.shadow.push((self.now, request));
        let effect = self.queue.submit(self.now, request).expect("the queue was not stopped");
        carry_out(&mut self.places, effect);
    }

    pub fn cancel(&mut self, id: usize) -> Vec<Request> {
        let mut removed = Vec::new();
        let effect = self.queue.cancel(self.now, &mut |request| request.id == id, &mut removed);
        self.shadow.retain(|(_, request)| request.id != id);
        carry_out(&mut self.places, effect);
        removed
    }

    pub fn stop(&mut self) {
        self.stopping = true;
        let effect = self.queue.stop(self.now);
        carry_out(&mut self.places, effect);
    }

    /// Takes instances out of service but those that `keep` names, and puts `more` new ones in, at least one.
    pub fn rearrange(&mut self, keep: impl Fn(usize) -> bool, more: usize) {
        self.serving.retain(|&instance| keep(instance));
        let more = more.max(usize::from(self.serving.is_empty()));
        let free: Vec<usize> = (0..).filter(|&number| self.queue.is_free(number)).take(more).collect();
        self.serving.splice(0..0, free);
        let numbers = self.serving.iter().map(|number| number + 1).max().unwrap_or(0);
        self.places.resize(numbers.max(self.places.len()), Place::Idle);
        let effect = self.queue.rearrange(self.now, &self.serving);
        carry_out(&mut self.places, effect);
    }

    /// Forms batches in another way from now on.
    pub fn set_batching(&mut self, max_queue_delay: Duration, batch: u32) {
        let effect = self.queue.set_batching(self.now, Batching { max_queue_delay, batch });
        if let Some(policy) = &mut self.policy {
            policy.max_batch_size = batch.clamp(1, self.largest);
            policy.preferred_batch_sizes = vec![policy.max_batch_size];
            policy.max_queue_delay = max_queue_delay;
        }
        carry_out(&mut self.places, effect);
    }

    /// Lets `instance` make its next move, if it has one at this moment.
    pub fn step(&mut self, instance: usize) {
        match self.places[instance] {
            Place::Coming => self.ask(instance),
            Place::Sleeping(moment) | Place::RunningUntil(moment) if moment <= self.now => self.ask(instance),
            _ => {}
        }
    }

    /// Lets `instance` give itself back when it is done, without asking for more.
    pub fn finish(&mut self, instance: usize) {
        if matches!(self.places[instance], Place::RunningUntil(moment) if moment <= self.now) {
            self.places[instance] = Place::Idle;
            let effect = self.queue.finish(self.now, instance);
            carry_out(&mut self.places, effect);
        }
    }

    /// Claims an instance for requests that stand elsewhere, and which run as long as any: where nothing waits.
    pub fn claim(&mut self) {
        let serves = |instance: &usize| self.serving.contains(instance) && self.places[*instance] == Place::Idle;
        let is_free =
            self.shadow.is_empty() && !self.stopping && (0..self.places.len()).any(|instance| serves(&instance));
        let claimed = self.queue.claim();
        assert_eq!(claimed.is_some(), is_free, "an instance is claimed where nobody waits for it");
        if let Some(instance) = claimed {
            assert!(serves(&instance), "one that is busy or out of service was claimed");
            self.places[instance] = Place::RunningUntil(self.now + self.compute);
        }
    }

    /// Lets every instance move until none can at this moment.
    pub fn settle(&mut self) {
        while let Some(instance) = (0..self.places.len()).find(|&instance| self.can_move(instance)) {
            self.step(instance);
        }
    }

    /// The next moment at which an instance wakes or is done.
    pub fn next_moment(&self) -> Option<Instant> {
        let moment = |place: &Place| match place {
            Place::Sleeping(moment) | Place::RunningUntil(moment) => Some(*moment),
            Place::Coming => Some(self.now),
            Place::Idle => None,
        };
        self.places.iter().filter_map(moment).min()
    }

    /// Moves the clock to `offset` from the start, stopping at each moment in between at which something happens.
    pub fn run_until(&mut self, offset: Duration) {
        self.settle();
        while let Some(moment) = self.next_moment().filter(|&moment| moment <= self.start + offset) {
            self.now = moment;
            self.settle();
        }
        self.now = self.start + offset;
    }

    /// Runs what is left and tells when the last batch was done.
    pub fn run_out(&mut self) -> Duration {
        self.settle();
        while let Some(moment) = self.next_moment() {
            self.now = moment;
            self.settle();
        }
        self.now - self.start
    }

    /// No lost wake-up: where an idle instance could serve what waits, one is coming, or one sleeps no longer than the
    /// slow model says.
    pub fn assert_someone_comes(&self) {
        let (Some(due), false) = (self.due(), self.places.contains(&Place::Coming)) else { return };
        if self.serving.iter().all(|&instance| matches!(self.places[instance], Place::RunningUntil(_))) {
            return;
        }
        let in_time = |place: &Place| matches!(place, Place::Sleeping(until) if *until <= due.max(self.now));
        assert!(self.places.iter().any(in_time), "due {due:?}, now {:?}: nobody of {:?} comes", self.now, self.places);
    }

    fn due(&self) -> Option<Instant> {
        match self.expected() {
            Answer::Take(_) => Some(self.now),
            Answer::WaitUntil(until) => Some(until),
            Answer::Nothing => None,
        }
    }

    fn expected(&self) -> Answer {
        match &self.policy {
            Some(policy) => answer(&self.shadow, policy, self.stopping, self.now),
            None if self.shadow.is_empty() => Answer::Nothing,
            None => Answer::Take(1),
        }
    }

    fn can_move(&self, instance: usize) -> bool {
        match self.places[instance] {
            Place::Idle => false,
            Place::Coming => true,
            Place::Sleeping(moment) | Place::RunningUntil(moment) => moment <= self.now,
        }
    }

    fn ask(&mut self, instance: usize) {
        let expected = self.expected();
        self.batch.clear();
        let (next, effect) = self.queue.next(self.now, instance, &mut self.batch);
        self.places[instance] = match next {
            Next::Take => self.take(instance, expected),
            Next::WaitUntil(until) => {
                assert_eq!(expected, Answer::WaitUntil(until));
                Place::Sleeping(until)
            }
            Next::Idle => {
                let serves = self.serving.contains(&instance);
                assert!(!serves || !matches!(expected, Answer::Take(_)), "an instance went idle beside {expected:?}");
                Place::Idle
            }
        };
        carry_out(&mut self.places, effect);
    }

    fn take(&mut self, instance: usize, expected: Answer) -> Place {
        assert!(self.serving.contains(&instance), "one that is out of service got work");
        let count = self.batch.len();
        assert_eq!(expected, Answer::Take(count));
        let head: Vec<Request> = self.shadow.drain(..count).map(|(_, request)| request).collect();
        assert_eq!(self.batch, head, "a batch is the head of the queue, in order");
        self.executed.push(ExecutedBatch { at: self.now - self.start, instance, ids: ids(&self.batch) });
        Place::RunningUntil(self.now + self.compute)
    }
}

/// What a queue asks of its instances happens to their places.
pub fn carry_out(places: &mut [Place], effect: Effect) {
    match effect {
        Effect::None => {}
        Effect::Start(instance) => {
            assert_eq!(places[instance], Place::Idle, "only an idle instance is started");
            places[instance] = Place::Coming;
        }
        Effect::Wake(instance) => {
            assert!(matches!(places[instance], Place::Sleeping(_)), "only the waiter is woken");
            places[instance] = Place::Coming;
        }
    }
}
