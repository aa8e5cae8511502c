//! A shadow: a version that gets copies of requests. Its answers go to nobody, and are compared with the callers'.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use alipes_protocol::{InferError, Tensor};
use alipes_stats::comparison::{Comparison, ComparisonDocument};
use serde::Serialize;

use super::GOLDEN_STEP;
use super::difference::differences;

/// Most copies for one model that are under way. A slow shadow loses copies; it holds no further memory.
const MAX_COPIES: usize = 64;

/// Which version gets copies, and of which share of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShadowSettings {
    /// The version.
    pub version: i64,
    /// Share of the requests, in per cent.
    pub percent: f64,
    /// Answers may lie so far apart and still count as equal.
    pub tolerance: f64,
}

impl ShadowSettings {
    /// # Errors
    ///
    /// A share that is none or more than all, and a tolerance below zero.
    pub(super) fn check(&self) -> Result<(), InferError> {
        if !(self.percent > 0.0 && self.percent <= 100.0) {
            let text = format!("'percent' of the shadow must be above 0 and at most 100, got {}", self.percent);
            return Err(InferError::invalid(text));
        }
        if !(self.tolerance >= 0.0 && self.tolerance.is_finite()) {
            let text = format!("'tolerance' of the shadow must be a number of at least 0, got {}", self.tolerance);
            return Err(InferError::invalid(text));
        }
        Ok(())
    }
}

/// The shadow of a model.
#[derive(Debug)]
pub struct Shadow {
    settings: ShadowSettings,
    turn: AtomicU64,
    under_way: AtomicUsize,
    comparison: Comparison,
}

impl Shadow {
    pub(super) fn new(settings: ShadowSettings) -> Shadow {
        Shadow { settings, turn: AtomicU64::new(0), under_way: AtomicUsize::new(0), comparison: Comparison::default() }
    }

    /// What it was set to.
    pub fn settings(&self) -> ShadowSettings {
        self.settings
    }

    /// A permit to copy the next request, where a copy of it is due and not too many are under way.
    pub(super) fn permit(self: &Arc<Shadow>) -> Option<CopyPermit> {
        let point = self.turn.fetch_add(1, Ordering::Relaxed).wrapping_mul(GOLDEN_STEP);
        // Both are below 2⁶⁴ by far more than the digits that a float lacks matter.
        if self.settings.percent < 100.0 && point as f64 >= self.settings.percent / 100.0 * 2_f64.powi(64) {
            return None;
        }
        // Counted before it is looked at, so that callers at the same time cannot all be the last.
        let permit = CopyPermit { shadow: Arc::clone(self) };
        if self.under_way.fetch_add(1, Ordering::Relaxed) < MAX_COPIES {
            return Some(permit);
        }
        self.comparison.dropped();
        None
    }

    pub(super) fn comparison(&self) -> ComparisonDocument {
        self.comparison.document()
    }
}

/// One copy under way, until it is dropped.
#[derive(Debug)]
pub struct CopyPermit {
    shadow: Arc<Shadow>,
}

impl CopyPermit {
    /// The version that the copy is for.
    pub fn version(&self) -> i64 {
        self.shadow.settings.version
    }

    /// The copy is not made after all.
    pub fn drop_copy(self) {
        self.shadow.comparison.dropped();
    }

    /// Compares the answer that a caller got with the answer to the copy; none where the copy had none.
    pub fn compare(self, callers: &[Tensor], answer: Option<&[Tensor]>) {
        match answer {
            Some(answer) => {
                self.shadow.comparison.compared(self.shadow.settings.tolerance, differences(callers, answer));
            }
            None => self.shadow.comparison.failed(),
        }
    }
}

impl Drop for CopyPermit {
    fn drop(&mut self) {
        self.shadow.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow(percent: f64) -> Arc<Shadow> {
        Arc::new(Shadow::new(ShadowSettings { version: 2, percent, tolerance: 0.0 }))
    }

    #[test]
    fn a_share_of_any_run_of_requests_is_copied() {
        for percent in [0.5, 10.0, 50.0, 99.5, 100.0] {
            let shadow = shadow(percent);
            let copied = (0..2_000).filter(|_| shadow.permit().is_some()).count();
            assert!(copied.abs_diff((20.0 * percent) as usize) <= 2, "{copied} for {percent} %");
        }
    }

    #[test]
    fn so_many_copies_are_under_way_and_no_more() {
        let shadow = shadow(100.0);
        let mut permits: Vec<CopyPermit> = (0..MAX_COPIES + 3).filter_map(|_| shadow.permit()).collect();
        assert_eq!((permits.len(), shadow.comparison().dropped), (MAX_COPIES, 3));
        permits.pop().unwrap().compare(&[], None);
        assert!(shadow.permit().is_some() && shadow.permit().is_some());
        drop(permits);
        assert_eq!(shadow.under_way.load(Ordering::Relaxed), 0);
        assert_eq!(shadow.comparison().failed, 1);
    }

    #[test]
    fn settings_that_cannot_be_are_refused() {
        let check = |percent, tolerance| ShadowSettings { version: 1, percent, tolerance }.check();
        for percent in [0.0, -1.0, 100.1, f64::NAN] {
            assert!(check(percent, 0.0).unwrap_err().message.starts_with("'percent' of the shadow must be"));
        }
        for tolerance in [-0.1, f64::INFINITY, f64::NAN] {
            assert!(check(1.0, tolerance).unwrap_err().message.starts_with("'tolerance' of the shadow must be"));
        }
        check(100.0, 0.0).unwrap();
    }
}
