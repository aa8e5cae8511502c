//! How the answers of one version compare with those that another one gave to the same requests.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde::Serialize;

/// Outputs whose largest differences are remembered, the first by name.
const MAX_OUTPUTS: usize = 16;

/// Compared answers; counted under one short mutex.
#[derive(Debug, Default)]
pub struct Comparison {
    document: Mutex<ComparisonDocument>,
}

/// The comparison so far, as clients read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ComparisonDocument {
    /// Pairs of answers that were compared.
    pub compared: u64,
    /// Those among them that lie further apart than is tolerated.
    pub different: u64,
    /// Copies that had no answer.
    pub failed: u64,
    /// Copies that were not made, since too many were under way.
    pub dropped: u64,
    /// The largest difference seen, by output.
    pub largest_difference: BTreeMap<String, f64>,
}

impl Comparison {
    /// Counts two answers that lie so far apart, by output.
    pub fn compared<'a>(&self, tolerance: f64, differences: impl Iterator<Item = (&'a str, f64)>) {
        let mut document = self.document.lock();
        let mut is_different = false;
        for (output, difference) in differences {
            is_different |= difference > tolerance;
            document.largest(output, difference);
        }
        document.compared += 1;
        document.different += u64::from(is_different);
    }

    /// Counts a copy that had no answer.
    pub fn failed(&self) {
        self.document.lock().failed += 1;
    }

    /// Counts a copy that was not made.
    pub fn dropped(&self) {
        self.document.lock().dropped += 1;
    }

    /// The comparison so far.
    pub fn document(&self) -> ComparisonDocument {
        self.document.lock().clone()
    }
}

impl ComparisonDocument {
    fn largest(&mut self, output: &str, difference: f64) {
        if let Some(largest) = self.largest_difference.get_mut(output) {
            *largest = largest.max(difference);
        } else if self.largest_difference.len() < MAX_OUTPUTS {
            self.largest_difference.insert(output.to_owned(), difference);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_different_where_one_output_is() {
        let comparison = Comparison::default();
        comparison.compared(0.1, [("X", 0.0), ("Y", 0.1)].into_iter());
        comparison.compared(0.1, [("X", 0.0), ("Y", 0.2)].into_iter());
        comparison.compared(0.1, [("X", 0.05), ("Y", 0.0)].into_iter());
        comparison.failed();
        comparison.dropped();
        let document = comparison.document();
        assert_eq!((document.compared, document.different, document.failed, document.dropped), (3, 1, 1, 1));
        assert_eq!(document.largest_difference, [("X".to_owned(), 0.05), ("Y".to_owned(), 0.2)].into());
    }

    #[test]
    fn so_many_outputs_have_a_largest_difference_and_no_more() {
        let comparison = Comparison::default();
        let names: Vec<String> = (0..MAX_OUTPUTS + 3).map(|number| format!("output {number:02}")).collect();
        comparison.compared(0.0, names.iter().map(|name| (name.as_str(), 1.0)));
        assert_eq!(comparison.document().largest_difference.len(), MAX_OUTPUTS);
    }
}
