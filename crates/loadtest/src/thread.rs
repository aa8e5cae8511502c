//! What a thread of a load has, and what its callers ask of it.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alipes_client::{ClientError, Target};
use parking_lot::Mutex;

use crate::chains::Chains;
use crate::log::Calendar;
use crate::mix::Mix;
use crate::plan::Plan;
use crate::prepared::Prepared;
use crate::queue::{Order, Queue};
use crate::record::{Keep, Record};

/// What the threads of a load share.
pub struct Common {
    /// What is done.
    pub plan: Plan,
    /// The order of the plan's sources.
    pub mix: Mix,
    /// The sequences of each source that has any.
    pub chains: Vec<Option<Chains>>,
    /// What time it is.
    pub calendar: Calendar,
    /// Nothing more is to be sent.
    pub stopping: AtomicBool,
    /// Requests, or sequences, that were begun.
    pub begun: AtomicU64,
    /// Requests of the plan's count that somebody sends; counted only where there are sequences.
    pub claimed: AtomicU64,
}

/// What a thread shares with who measures.
pub struct Measured {
    /// Since the last cut, one for each source.
    pub records: Mutex<Vec<Record>>,
    /// Processor time since the thread began.
    pub busy_ns: AtomicU64,
}

impl Measured {
    /// Nothing was measured so far.
    pub fn new(sources: usize, keep: Keep) -> Measured {
        Measured { records: Mutex::new(empty(sources, keep)), busy_ns: AtomicU64::new(0) }
    }
}

/// Records in which nothing was measured, one for each source.
pub fn empty(sources: usize, keep: Keep) -> Vec<Record> {
    (0..sources).map(|_| Record::new(keep)).collect()
}

/// A thread's own part of the load.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number.
    pub number: usize,
    /// How many threads there are.
    pub of: usize,
}

impl Part {
    /// Its share of so many things.
    pub fn share(&self, all: usize) -> usize {
        (all + self.of - 1 - self.number) / self.of
    }
}

/// A thread of a load, and what its callers share.
pub struct Thread {
    /// What all threads share.
    pub common: Arc<Common>,
    /// What was measured.
    pub measured: Arc<Measured>,
    /// Which of them it is.
    pub part: Part,
    /// The server of each source.
    pub targets: Vec<Arc<Target>>,
    /// Whether the number of what was begun is not the number of requests.
    counts_requests: bool,
}

impl Thread {
    /// A thread's part of a load.
    pub fn new(common: &Arc<Common>, measured: &Arc<Measured>, part: Part) -> Thread {
        let sources = &common.plan.sources;
        Thread {
            common: common.clone(),
            measured: measured.clone(),
            part,
            targets: sources.iter().map(|source| Arc::new(Target { timed: true, ..source.target.clone() })).collect(),
            counts_requests: common.plan.count.is_some() && common.chains.iter().any(Option::is_some),
        }
    }

    /// A queue for each source.
    pub fn queues(&self) -> Vec<Rc<Queue>> {
        let order = |chains: &Option<Chains>| if chains.is_some() { Order::InTurn } else { Order::LastFirst };
        self.common.chains.iter().map(|chains| Rc::new(Queue::new(order(chains)))).collect()
    }

    /// The source of the next request, and how many of the source's come before it; `None` where nothing is to be sent.
    pub fn next(&self) -> Option<(usize, u64)> {
        if self.is_stopping() {
            return None;
        }
        let number = self.common.begun.fetch_add(1, Ordering::Relaxed);
        let is_wanted = self.common.plan.count.is_none_or(|count| number < count);
        is_wanted.then(|| self.common.mix.at(number))
    }

    /// Whether so many requests more are to be sent: where there are sequences, [`Thread::next`] does not count them.
    pub fn claim(&self, requests: u64) -> bool {
        if !self.counts_requests {
            return true;
        }
        let claimed = self.common.claimed.fetch_add(requests, Ordering::Relaxed);
        self.common.plan.count.is_none_or(|count| claimed < count)
    }

    /// Whether nothing more is to be sent.
    pub fn is_stopping(&self) -> bool {
        self.common.stopping.load(Ordering::Relaxed)
    }

    /// A request of a source, one of a sequence with its id.
    ///
    /// # Errors
    /// What cannot be sent.
    pub fn prepared(&self, source: usize, request: usize, id: Option<u64>) -> Result<Cow<'_, Prepared>, ClientError> {
        match (&self.common.plan.sources[source].requests[request], id) {
            (Prepared::OfSequence(request), Some(id)) => request.numbered(&self.targets[source], id).map(Cow::Owned),
            (request, _) => Ok(Cow::Borrowed(request)),
        }
    }

    /// Which request of a source is sent behind so many others.
    pub fn request(&self, source: usize, before: u64) -> usize {
        (before % self.common.plan.sources[source].requests.len() as u64) as usize
    }
}
