//! One instance as the sequence queue sees it: its slots, its next requests, and what it does now.

use std::time::Instant;

use super::lineup::Lineup;
use super::policy::SequencePolicy;
use crate::work::Work;

/// What an instance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing; somebody has to start it.
    Idle,
    /// It runs a batch, or is on its way to ask for one.
    Busy,
    /// It sleeps until this moment, or until it is woken.
    Sleeping(Instant),
}

/// One instance.
#[derive(Debug)]
pub(super) struct Instance<W> {
    pub(super) doing: Doing,
    /// Out of service: it gets no further sequences.
    pub(super) retired: bool,
    /// By slot: the sequence that holds it.
    pub(super) occupants: Vec<Option<usize>>,
    pub(super) lineup: Lineup<W>,
    /// The sequences of which a request runs.
    pub(super) running: Vec<usize>,
    /// It is in the list of instances to look at.
    pub(super) roused: bool,
}

impl<W: Work> Instance<W> {
    pub(super) fn new(policy: &SequencePolicy) -> Self {
        Instance {
            doing: Doing::Idle,
            retired: false,
            occupants: vec![None; policy.slots()],
            lineup: Lineup::new(policy),
            running: Vec::new(),
            roused: false,
        }
    }
}
