//! A simulated server, its traffic and its clock: a day of requests, played as quickly as the queue decides.

use std::fmt;
use std::time::{Duration, Instant};

use alipes_scheduler::tuning::{Change, LATENCY_BUCKETS, Objective, Observation, Setting, Tuner};
use alipes_scheduler::{Batching, ModelQueue, Next, Queue, Scheduler};

use super::stage::{Place, carry_out};
use super::{Request, ms, policy, request, zero};

/// Numbers that look random and are the same in every run (the constants are Knuth's).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Evenly between 0 and 1.
    pub fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How requests come for a while, and how slow the machine is meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Phase {
    pub lasts: Duration,
    /// Requests a second at its begin and at its end, in single requests that know nothing of each other.
    pub singles: (f64, f64),
    /// Groups a second, the requests of each, and the time over which they come.
    pub groups: (f64, usize, Duration),
    /// What executions take, as a multiple of what they take alone on the machine.
    pub slowness: f64,
}

impl Default for Phase {
    fn default() -> Self {
        Phase { lasts: ms(30_000), singles: (0.0, 0.0), groups: (0.0, 0, ms(0)), slowness: 1.0 }
    }
}

/// When requests come, from the begin of the day, in order.
pub fn arrivals(phases: &[Phase], seed: u64) -> Vec<Duration> {
    let mut dice = Dice::new(seed);
    let mut found = Vec::new();
    let mut begin = Duration::ZERO;
    for phase in phases {
        let end = begin + phase.lasts;
        let span_s = phase.lasts.as_secs_f64();
        let most = phase.singles.0.max(phase.singles.1);
        for at in moments(&mut dice, most, span_s) {
            let rate = phase.singles.0 + (phase.singles.1 - phase.singles.0) * at / span_s;
            if dice.throw() * most < rate {
                found.push(begin + Duration::from_secs_f64(at));
            }
        }
        let (rate, requests, over) = phase.groups;
        for at in moments(&mut dice, rate, span_s) {
            found.extend((0..requests).map(|_| begin + Duration::from_secs_f64(at) + over.mul_f64(dice.throw())));
        }
        begin = end;
    }
    found.sort_unstable();
    found
}

/// Moments at which something happens that happens so often a second.
fn moments(dice: &mut Dice, rate: f64, span_s: f64) -> Vec<f64> {
    let mut found = Vec::new();
    let mut at = 0.0;
    if rate > 0.0 {
        loop {
            at -= (1.0 - dice.throw()).ln() / rate;
            if at >= span_s {
                break;
            }
            found.push(at);
        }
    }
    found
}

/// What an execution takes: so much, and so much for each row.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    pub batch: Duration,
    pub row: Duration,
    pub largest: u32,
    pub instances: usize,
}

/// What became of a day.
#[derive(Debug, Default)]
pub struct Report {
    /// Stretches of the day in which requests came, and those in which the objective was kept.
    pub stretches: usize,
    pub kept: usize,
    pub answered: usize,
    /// Requests that took longer than the objective.
    pub late: usize,
    pub computing: Duration,
    pub ended: Duration,
    pub changes: Vec<Change>,
    pub last: Option<Setting>,
    pub begin: Option<Instant>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { stretches, kept, answered, late, computing, .. } = self;
        write!(formatter, "kept in {kept} of {stretches} stretches, {late} of {answered} late, computed {computing:?}")
    }
}

/// How long a period of the tuner lasts, and a stretch of the day over which the objective is judged.
const PERIOD: Duration = Duration::from_secs(1);
const STRETCH: Duration = Duration::from_secs(10);

pub struct Day<'a> {
    pub phases: &'a [Phase],
    pub arrivals: &'a [Duration],
    pub machine: Machine,
    pub objective: Objective,
}

impl Day<'_> {
    /// Plays the day with a setting, which a tuner may change.
    pub fn play(&self, setting: Setting, tuner: Option<Tuner>) -> Report {
        let mut play = Play::new(self, setting, tuner);
        for (id, &at) in self.arrivals.iter().enumerate() {
            play.run_until(at);
            play.submit(id);
        }
        play.run_until(self.phases.iter().map(|phase| phase.lasts).sum());
        play.finish()
    }
}

struct Play<'a> {
    day: &'a Day<'a>,
    queue: ModelQueue<Request>,
    places: Vec<Place>,
    /// By instance: what runs.
    running: Vec<Vec<usize>>,
    start: Instant,
    now: Duration,
    tuner: Option<Tuner>,
    setting: Setting,
    period: Observation,
    edges: [Duration; LATENCY_BUCKETS - 1],
    period_end: Duration,
    /// By stretch in which they came: requests, and those that were late.
    stretches: Vec<(usize, usize)>,
    report: Report,
}

impl<'a> Play<'a> {
    fn new(day: &'a Day<'a>, setting: Setting, tuner: Option<Tuner>) -> Play<'a> {
        let scheduler = Scheduler::dynamic(policy(day.machine.largest, &[], setting.queue_delay));
        let mut play = Play {
            day,
            queue: ModelQueue::new(scheduler, day.machine.instances),
            places: vec![Place::Idle; day.machine.instances],
            running: vec![Vec::new(); day.machine.instances],
            start: zero(),
            now: Duration::ZERO,
            tuner,
            setting,
            period: Observation::default(),
            edges: day.objective.latency_edges(),
            period_end: PERIOD,
            stretches: Vec::new(),
            report: Report::default(),
        };
        play.apply(setting);
        play
    }

    fn submit(&mut self, id: usize) {
        let effect = self.queue.submit(self.start + self.now, request(id, 1)).expect("the queue has room");
        carry_out(&mut self.places, effect);
        self.settle();
    }

    fn run_until(&mut self, moment: Duration) {
        loop {
            let next = self.next_moment().min(self.period_end);
            if next > moment {
                break;
            }
            self.now = self.now.max(next);
            if self.now >= self.period_end {
                self.end_period();
            }
            self.settle();
        }
        self.now = moment;
    }

    fn next_moment(&self) -> Duration {
        let moments = self.places.iter().filter_map(|place| match place {
            Place::Sleeping(moment) | Place::RunningUntil(moment) => Some(moment.saturating_duration_since(self.start)),
            Place::Coming => Some(self.now),
            Place::Idle => None,
        });
        moments.min().unwrap_or(Duration::MAX)
    }

    fn settle(&mut self) {
        let now = self.start + self.now;
        let can_move = |place: &Place| match place {
            Place::Idle => false,
            Place::Coming => true,
            Place::Sleeping(moment) | Place::RunningUntil(moment) => *moment <= now,
        };
        while let Some(instance) = self.places.iter().position(can_move) {
            self.ask(instance);
        }
    }

    fn ask(&mut self, instance: usize) {
        self.answer(instance);
        let mut batch = Vec::new();
        let now = self.start + self.now;
        let (next, effect) = self.queue.next(now, instance, &mut batch);
        self.places[instance] = match next {
            Next::Take => Place::RunningUntil(now + self.execute(instance, &batch)),
            Next::WaitUntil(until) => Place::Sleeping(until),
            Next::Idle => Place::Idle,
        };
        carry_out(&mut self.places, effect);
    }

    fn execute(&mut self, instance: usize, batch: &[Request]) -> Duration {
        let machine = &self.day.machine;
        assert!(batch.len() <= machine.largest as usize, "a batch is larger than the model takes");
        let took = (machine.batch + machine.row * batch.len() as u32).mul_f64(self.slowness());
        self.running[instance] = batch.iter().map(|request| request.id).collect();
        self.period.executions += 1;
        self.period.full += u64::from(batch.len() >= self.setting.batch as usize);
        self.period.rows += batch.len() as u64;
        self.period.computing += took;
        self.report.computing += took;
        took
    }

    fn slowness(&self) -> f64 {
        let mut begin = Duration::ZERO;
        let phase = self.day.phases.iter().find(|phase| {
            begin += phase.lasts;
            self.now < begin
        });
        phase.map_or(1.0, |phase| phase.slowness)
    }

    fn answer(&mut self, instance: usize) {
        for id in std::mem::take(&mut self.running[instance]) {
            let arrived = self.day.arrivals[id];
            let spent = self.now - arrived;
            self.period.latencies[self.edges.partition_point(|&edge| edge < spent)] += 1;
            let stretch = (arrived.as_millis() / STRETCH.as_millis()) as usize;
            self.stretches.resize(self.stretches.len().max(stretch + 1), (0, 0));
            self.stretches[stretch].0 += 1;
            self.stretches[stretch].1 += usize::from(spent > self.day.objective.p99);
            self.report.answered += 1;
        }
    }

    fn end_period(&mut self) {
        self.period.span = PERIOD;
        self.period.waiting = self.queue.waiting();
        let period = std::mem::take(&mut self.period);
        self.period_end += PERIOD;
        let now = self.start + self.now;
        if let Some(setting) = self.tuner.as_mut().and_then(|tuner| tuner.observe(now, &period)) {
            self.apply(setting);
        }
    }

    fn apply(&mut self, setting: Setting) {
        self.setting = setting;
        let now = self.start + self.now;
        let batching = Batching { max_queue_delay: setting.queue_delay, batch: setting.batch };
        let effect = self.queue.set_batching(now, batching);
        carry_out(&mut self.places, effect);
        let instances: Vec<usize> = (0..setting.instances).collect();
        let effect = self.queue.rearrange(now, &instances);
        carry_out(&mut self.places, effect);
        self.settle();
    }

    fn finish(mut self) -> Report {
        while self.next_moment() < Duration::MAX {
            self.now = self.now.max(self.next_moment());
            self.settle();
        }
        assert_eq!(self.report.answered, self.day.arrivals.len(), "every request is answered once");
        let Report { answered, computing, .. } = self.report;
        let busy: Vec<_> = self.stretches.iter().filter(|(requests, _)| *requests > 0).collect();
        Report {
            stretches: busy.len(),
            kept: busy.iter().filter(|(requests, late)| late * 100 <= *requests).count(),
            answered,
            late: busy.iter().map(|(_, late)| late).sum(),
            computing,
            ended: self.now,
            changes: self.tuner.iter().flat_map(Tuner::changes).copied().collect(),
            last: self.tuner.as_ref().map(Tuner::setting),
            begin: Some(self.start),
        }
    }
}
