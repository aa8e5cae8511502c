//! What a tuner remembers of a decision.

use std::time::Instant;

use super::moves::Cause;
use super::setting::Setting;
use super::verdict::Figures;

/// One change of a model's setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// When it was made.
    pub at: Instant,
    /// What was set before.
    pub from: Setting,
    /// What was set instead.
    pub to: Setting,
    /// Why.
    pub cause: Cause,
    /// What was measured before it.
    pub before: Figures,
    /// What was measured afterwards; none while it is watched.
    pub after: Option<Figures>,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was made, and is being watched.
    Watched,
    /// It helped, and stays.
    Kept,
    /// It did not help, and was taken back.
    Reverted,
    /// The traffic became another meanwhile, which says nothing of the change: it was taken back, and may come again.
    Undecided,
}

impl Outcome {
    /// The outcome as a word that machines may rely on.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Watched => "watched",
            Outcome::Kept => "kept",
            Outcome::Reverted => "reverted",
            Outcome::Undecided => "undecided",
        }
    }
}
