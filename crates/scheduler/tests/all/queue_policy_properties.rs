//! Random arrivals, priorities, limits, callers who leave and passing time against a slow model of who waits.

use std::time::{Duration, Instant};

use crate::common::caller::{Request, request};
use crate::common::{ms, policy, zero};
use alipes_scheduler::{DynamicPolicy, Next, Priorities, QueuePolicy, Reason, Scheduler, TimeoutAction};
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    Submit { rows: u32, key: u64, priority: u64, timeout: u64 },
    Pass(u64),
    Take,
    Expire,
    Leave { back: usize },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (1u32..4, prop_oneof![6 => Just(0u64), 1 => Just(1)], 0u64..5, prop_oneof![Just(0u64), 1u64..20])
            .prop_map(|(rows, key, priority, timeout)| Event::Submit { rows, key, priority, timeout }),
        4 => (0u64..8).prop_map(Event::Pass),
        4 => Just(Event::Take),
        1 => Just(Event::Expire),
        2 => (0usize..30).prop_map(|back| Event::Leave { back }),
    ]
}

fn queue_policy() -> impl Strategy<Value = QueuePolicy> {
    let timeout = prop_oneof![Just(0u64), 1u64..20];
    (any::<bool>(), timeout, any::<bool>(), prop_oneof![2 => Just(0usize), 1 => 1usize..6]).prop_map(
        |(delay, timeout, allow_timeout_override, max_queue_size)| QueuePolicy {
            timeout_action: if delay { TimeoutAction::Delay } else { TimeoutAction::Reject },
            default_timeout: ms(timeout),
            allow_timeout_override,
            max_queue_size,
        },
    )
}

fn some_policy() -> impl Strategy<Value = DynamicPolicy> {
    let priorities = (0u64..4, queue_policy(), vec((1u64..4, queue_policy()), 0..2)).prop_map(
        |(levels, default_policy, policies)| Priorities {
            levels,
            default_level: levels.min(2),
            default_policy,
            policies,
        },
    );
    (1u32..8, 0u64..12, priorities).prop_flat_map(|(max, delay, priorities)| {
        vec(1..=max, 1..3).prop_map(move |preferred| DynamicPolicy {
            priorities: priorities.clone(),
            ..policy(max, &preferred, ms(delay))
        })
    })
}

/// A request that waits, as the slow model sees it.
#[derive(Clone)]
struct Waits {
    level: u64,
    /// Zero, or how many were late when it became so.
    late: usize,
    entered: Instant,
    deadline: Option<Instant>,
    request: Request,
}

/// The rules in words, from scratch for each question. Who has gone is not there.
#[derive(Clone)]
struct Slow {
    policy: DynamicPolicy,
    waiting: Vec<Waits>,
    lates: usize,
    expired: Vec<usize>,
}

impl Slow {
    fn level(&self, priority: u64) -> u64 {
        let Priorities { levels, default_level, .. } = self.policy.priorities;
        if levels == 0 {
            0
        } else if (1..=levels).contains(&priority) {
            priority
        } else {
            default_level
        }
    }

    fn limits(&self, level: u64) -> QueuePolicy {
        let own = self.policy.priorities.policies.iter().find(|(owner, _)| *owner == level);
        own.map_or(self.policy.priorities.default_policy, |(_, policy)| *policy)
    }

    /// Whether it may wait.
    fn submit(&mut self, now: Instant, request: Request) -> bool {
        let level = self.level(request.priority);
        let limits = self.limits(level);
        let full = |slow: &Slow| {
            let there = slow.waiting.iter().filter(|waits| waits.level == level).count();
            limits.max_queue_size > 0 && there >= limits.max_queue_size
        };
        if full(self) {
            self.expire(now);
        }
        if full(self) {
            return false;
        }
        let own = if limits.allow_timeout_override { request.timeout } else { Duration::ZERO };
        let timeout = if own.is_zero() { limits.default_timeout } else { own.min(limits.default_timeout) };
        let deadline = (!timeout.is_zero()).then(|| now + timeout);
        self.waiting.push(Waits { level, late: 0, entered: now, deadline, request });
        true
    }

    fn expire(&mut self, now: Instant) {
        let due = |waits: &Waits| waits.late == 0 && waits.deadline.is_some_and(|deadline| deadline <= now);
        let mut order: Vec<usize> = (0..self.waiting.len()).filter(|&at| due(&self.waiting[at])).collect();
        order.sort_by_key(|&at| (self.waiting[at].deadline, self.waiting[at].request.id));
        let mut rejected = Vec::new();
        for at in order {
            if self.limits(self.waiting[at].level).timeout_action == TimeoutAction::Reject {
                rejected.push(self.waiting[at].request.id);
            } else {
                self.lates += 1;
                self.waiting[at].late = self.lates;
            }
        }
        self.waiting.retain(|waits| !rejected.contains(&waits.request.id));
        self.expired.extend(rejected);
    }

    /// How many wait at the level that goes first, and how many below.
    fn above_and_below(&self) -> (usize, usize) {
        let Some(first) = self.waiting.iter().map(|waits| waits.level).min() else { return (0, 0) };
        let above = self.waiting.iter().filter(|waits| waits.level == first).count();
        (above, self.waiting.len() - above)
    }

    /// What an instance that asks is told, where so many more wait below the first level as their callers have gone but
    /// have not been looked for.
    fn next(&mut self, now: Instant, stopping: bool, ghosts: usize) -> (Next, Vec<usize>) {
        self.expire(now);
        self.waiting.sort_by_key(|waits| (waits.level, waits.late, waits.request.id));
        let Some(first) = self.waiting.first() else { return (Next::Idle, Vec::new()) };
        let (above, below) = self.above_and_below();
        let flooded = below + ghosts >= self.policy.max_batch_size as usize;
        let reach = if flooded { above } else { self.waiting.len() };
        let rows = |count: usize| self.waiting[..count].iter().map(|waits| waits.request.rows).sum::<u32>();
        let key = first.request.key;
        let together =
            |&count: &usize| rows(count) <= self.policy.max_batch_size && self.waiting[count - 1].request.key == key;
        let fits = 1 + (2..=reach).take_while(together).count();
        let sizes = &self.policy.preferred_batch_sizes;
        let preferred = (1..=fits).rev().find(|&count| sizes.contains(&rows(count)));
        let largest = *sizes.iter().max().expect("the test gives preferred sizes");
        let overshot = (1..=fits).find(|&count| count < reach && rows(count + 1) > largest);
        let oldest = self.waiting[..fits].iter().map(|waits| waits.entered).min().expect("somebody waits");
        let until = oldest + self.policy.max_queue_delay;
        let count = match preferred.or(overshot) {
            Some(count) if self.policy.max_queue_delay.is_zero() || (now < until && !stopping) => count,
            _ if now >= until || stopping || fits < self.waiting.len() || rows(fits) >= largest => fits,
            _ => return (Next::WaitUntil(until), Vec::new()),
        };
        (Next::Take, self.waiting.drain(..count).map(|waits| waits.request.id).collect())
    }
}

/// Both queues side by side, and what became of each request.
struct Race {
    scheduler: Scheduler<Request>,
    slow: Slow,
    now: Instant,
    stopping: bool,
    submitted: Vec<Request>,
    /// By id: executed, given back or not taken in.
    ends: Vec<usize>,
    gone: Vec<usize>,
    expired: Vec<usize>,
}

impl Race {
    fn new(policy: DynamicPolicy) -> Race {
        let slow = Slow { policy: policy.clone(), waiting: Vec::new(), lates: 0, expired: Vec::new() };
        let (submitted, ends, gone, expired) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let scheduler = Scheduler::dynamic(policy);
        Race { scheduler, slow, now: zero(), stopping: false, submitted, ends, gone, expired }
    }

    fn play(&mut self, event: &Event) {
        match *event {
            Event::Submit { rows, key, priority, timeout } => {
                let request = request(self.submitted.len()).rows(rows).key(key).priority(priority).timeout(ms(timeout));
                self.submitted.push(request.clone());
                self.ends.push(0);
                let refused = self.scheduler.enqueue(self.now, request.clone());
                assert_eq!(refused.is_ok(), self.slow.submit(self.now, request));
                if let Err(refused) = refused {
                    assert_eq!(refused.reason, Reason::QueueFull);
                    self.ends[refused.work.id] += 1;
                }
            }
            Event::Pass(passed) => self.now += ms(passed),
            Event::Take => drop(self.take()),
            Event::Expire => {
                self.scheduler.expire(self.now);
                self.slow.expire(self.now);
                assert!(self.scheduler.deadline().is_none_or(|deadline| deadline > self.now));
            }
            Event::Leave { back } => {
                let Some(id) = self.submitted.len().checked_sub(back + 1) else { return };
                if !self.slow.waiting.iter().any(|waits| waits.request.id == id) {
                    return;
                }
                self.submitted[id].leave();
                self.gone.push(id);
                self.slow.waiting.retain(|waits| waits.request.id != id);
                self.scheduler.caller_left(self.now);
            }
        }
        self.collect();
    }

    fn take(&mut self) -> Next {
        let mut batch = Vec::new();
        let before = self.scheduler.waiting();
        let next = self.scheduler.next(self.now, &mut batch);
        let ids: Vec<usize> = batch.iter().map(|request| request.id).collect();
        self.slow.expire(self.now);
        // Those whose callers have gone may count as waiting, below the first level or not.
        let most = before - self.slow.waiting.len();
        let mut answers = (0..=most).map(|ghosts| self.slow.clone().next(self.now, self.stopping, ghosts));
        let ghosts = answers.position(|answer| answer == (next, ids.clone()));
        let ghosts = ghosts.unwrap_or_else(|| panic!("{:?} where {most} at most had gone", (next, &ids)));
        self.slow.next(self.now, self.stopping, ghosts);
        ids.into_iter().for_each(|id| self.ends[id] += 1);
        next
    }

    fn collect(&mut self) {
        for refused in self.scheduler.refused().drain(..) {
            let id = refused.work.id;
            self.ends[id] += 1;
            // One whose caller has gone may have waited too long besides.
            if !self.gone.contains(&id) {
                assert_eq!(refused.reason, Reason::Expired);
                self.expired.push(id);
            }
        }
    }

    fn run_out(&mut self) {
        self.scheduler.stop();
        self.stopping = true;
        while self.take() == Next::Take {}
        self.collect();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_each_batch_is_what_the_rules_say(policy in some_policy(), events in vec(event(), 0..80)) {
        let mut race = Race::new(policy);
        events.iter().for_each(|event| race.play(event));
        race.run_out();
        prop_assert_eq!(race.scheduler.waiting(), 0);
        prop_assert!(race.ends.iter().all(|&ends| ends == 1), "{:?}", race.ends);
        // Who had waited too long when its caller went may have been given back for either reason.
        let stayed = |ids: &[usize]| ids.iter().copied().filter(|id| !race.gone.contains(id)).collect::<Vec<_>>();
        prop_assert_eq!(stayed(&race.expired), stayed(&race.slow.expired));
    }
}
