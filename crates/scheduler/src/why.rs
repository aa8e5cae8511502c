//! Why the scheduler does what it does, as values: what explains a queue while it is at work.

use std::time::Instant;

/// Why requests run together now, or why they do not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Requests of this model run alone.
    Alone,
    /// Their rows make a preferred size.
    Preferred,
    /// The next request would make more rows than are wanted.
    Full,
    /// The next request cannot be joined to them: its shapes or its optional inputs are others.
    Unlike,
    /// Those behind them are less urgent, and more than a batch of their own.
    Urgent,
    /// The model waits for no company: what was there goes.
    NoDelay,
    /// The oldest of them has waited for company as long as it may.
    Overdue,
    /// No company will come: the version drains.
    Draining,
    /// They wait for company.
    Company,
    /// They are those of an ensemble, which takes them through all of its steps at once.
    Fused,
}

impl Why {
    /// The reason as a word that machines may rely on.
    pub fn word(self) -> &'static str {
        match self {
            Why::Alone => "alone",
            Why::Preferred => "preferred",
            Why::Full => "full",
            Why::Unlike => "unlike",
            Why::Urgent => "urgent",
            Why::NoDelay => "no_delay",
            Why::Overdue => "overdue",
            Why::Draining => "draining",
            Why::Company => "company",
            Why::Fused => "fused",
        }
    }
}

/// What the head of a queue comes to at some moment, if nothing else arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// When these requests go, if an instance is free: at that moment or before for at once.
    pub due: Instant,
    /// How many go.
    pub requests: usize,
    /// Why then, or why not yet.
    pub why: Why,
}

/// What keeps the next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Nothing waits.
    Nothing,
    /// Fewer requests wait than are to wait before the first batch of all.
    Start,
    /// The requests wait for company.
    Company,
    /// Every instance is busy.
    Busy,
    /// Sequences wait for a slot.
    Slot,
    /// No instance is in service.
    NoInstance,
    /// Nothing: an instance is on its way to it.
    Coming,
}

impl Hold {
    /// What it is as a word that machines may rely on.
    pub fn word(self) -> &'static str {
        match self {
            Hold::Nothing => "nothing_waits",
            Hold::Start => "first_batch",
            Hold::Company => "company",
            Hold::Busy => "instances_busy",
            Hold::Slot => "no_slot",
            Hold::NoInstance => "no_instance",
            Hold::Coming => "coming",
        }
    }
}

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Requests that wait.
    pub waiting: usize,
    /// Instances in service.
    pub instances: usize,
    /// Instances that run a batch, or are on their way to one.
    pub busy: usize,
    /// What goes next, if anything waits.
    pub outlook: Option<Outlook>,
    /// What keeps it.
    pub hold: Hold,
    /// What was decided last, oldest first.
    pub decisions: Vec<(Instant, Decision)>,
}

/// One thing that was decided about a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// An instance was given a batch.
    Took {
        /// Which one.
        instance: usize,
        /// Requests in the batch.
        requests: usize,
        /// Their rows.
        rows: u64,
        /// Requests that were left waiting.
        left: usize,
        /// Why these, and why then.
        why: Why,
    },
    /// An instance waits for further requests.
    Waits {
        /// Which one.
        instance: usize,
        /// How long at most.
        until: Instant,
    },
    /// Requests whose callers have gone were taken out.
    Withdrew {
        /// How many.
        requests: usize,
    },
    /// Requests that had waited too long were given back.
    Expired {
        /// How many.
        requests: usize,
    },
    /// Requests that were taken, but not executed, came back to the head.
    PutBack {
        /// How many.
        requests: usize,
    },
    /// Requests were turned away.
    Refused {
        /// How many.
        requests: usize,
    },
    /// From here on requests are turned away.
    Stopped,
    /// Instances were put into service or out of it.
    Rearranged {
        /// How many there are now.
        instances: usize,
    },
}
