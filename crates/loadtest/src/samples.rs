//! Some of the answers that came, for who checks them.

use bytes::Bytes;

/// An answer as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which of the source's requests it answers.
    pub request: usize,
    /// HTTP's body, gRPC's message; of several responses the last.
    pub answer: Bytes,
}

/// Every n-th answer: n doubles whenever more have come than there is room for, so that those that are kept are spread
/// over all that came, however many those are.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// What is kept.
    pub all: Vec<Sample>,
    most: usize,
    seen: u64,
    every: u64,
}

impl Samples {
    /// At most so many.
    pub fn new(most: usize) -> Samples {
        Samples { all: Vec::new(), most, seen: 0, every: 1 }
    }

    /// An answer came.
    pub fn answered(&mut self, request: usize, answer: &Bytes) {
        if self.most == 0 {
            return;
        }
        let is_wanted = self.seen.is_multiple_of(self.every);
        self.seen += 1;
        if !is_wanted {
            return;
        }
        if self.all.len() == self.most {
            let mut number = 0;
            self.all.retain(|_| (number % 2 == 0, number += 1).0);
            self.every *= 2;
            // With an odd number of them the last that was kept is this one's neighbour, so this one is left out.
            if !(self.seen - 1).is_multiple_of(self.every) {
                return;
            }
        }
        self.all.push(Sample { request, answer: answer.clone() });
    }

    /// Adds those of another thread, or of another source.
    pub fn add(&mut self, other: Samples) {
        self.all.extend(other.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(most: usize, answers: usize) -> Vec<usize> {
        let mut samples = Samples::new(most);
        (0..answers).for_each(|number| samples.answered(number, &Bytes::new()));
        samples.all.iter().map(|sample| sample.request).collect()
    }

    #[test]
    fn samples_are_spread_over_all_answers() {
        assert_eq!(numbers(4, 3), [0, 1, 2]);
        assert_eq!(numbers(4, 8), [0, 2, 4, 6]);
        assert_eq!(numbers(4, 9), [0, 4, 8]);
        assert_eq!(numbers(3, 6), [0, 2, 4]);
        for most in 1..20 {
            for answers in [1, 10, 1000, 12_345] {
                let numbers = numbers(most, answers);
                assert!(
                    numbers.len() <= most && 2 * numbers.len() >= most.min(answers),
                    "{most} of {answers}: {numbers:?}"
                );
                let steps: Vec<_> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
                assert!(steps.windows(2).all(|pair| pair[0] == pair[1]), "{most} of {answers}: {numbers:?}");
                let every = steps.first().copied().unwrap_or(answers);
                assert!(answers - numbers.last().unwrap() <= 2 * every, "{most} of {answers}: {numbers:?}");
            }
        }
    }

    #[test]
    fn nothing_is_sampled_unless_it_is_wanted() {
        assert!(numbers(0, 100).is_empty());
    }
}
