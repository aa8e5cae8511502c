//! Which source the next request comes from.

use alipes_client::{ClientError, Kind};

/// Requests after which the shares of the sources are right to a request.
const ROUND: usize = 10_000;

/// The sources of a load, in an order that keeps their shares at any time.
#[derive(Debug)]
pub struct Mix {
    /// One round: the source, and how many of its own came before in the round. A single source needs none.
    slots: Vec<(u32, u32)>,
    /// How many of each source a round has.
    in_round: Vec<u64>,
}

impl Mix {
    /// An order of sources with these weights.
    ///
    /// # Errors
    /// A weight that is not above 0, or so small that a round has no request of it.
    pub fn new(weights: &[f64]) -> Result<Mix, ClientError> {
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(ClientError::new(Kind::Connect, format!("the weight {weight} is no number above 0")));
        }
        if weights.len() < 2 {
            return Ok(Mix { slots: Vec::new(), in_round: Vec::new() });
        }
        let all: f64 = weights.iter().sum();
        let mut in_round = vec![0_u64; weights.len()];
        let mut slots = Vec::with_capacity(ROUND);
        for slot in 1..=ROUND {
            // Next is the source that lacks most of what its share of the requests so far is.
            let lacks = |source: usize| weights[source] / all * slot as f64 - in_round[source] as f64;
            let source = (0..weights.len()).max_by(|&one, &other| lacks(one).total_cmp(&lacks(other))).unwrap_or(0);
            slots.push((source as u32, in_round[source] as u32));
            in_round[source] += 1;
        }
        if let Some(source) = in_round.iter().position(|count| *count == 0) {
            let text = format!("the weight {} is less than 1 in {ROUND} of all weights", weights[source]);
            return Err(ClientError::new(Kind::Connect, text));
        }
        Ok(Mix { slots, in_round })
    }

    /// The source of a request, and how many of the source's requests come before it.
    pub fn at(&self, number: u64) -> (usize, u64) {
        if self.slots.is_empty() {
            return (0, number);
        }
        let (round, slot) = (number / self.slots.len() as u64, number % self.slots.len() as u64);
        let (source, before) = self.slots[slot as usize];
        (source as usize, round * self.in_round[source as usize] + u64::from(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_hold_at_any_time() {
        let mix = Mix::new(&[3.0, 1.0, 0.5]).unwrap();
        let mut seen = [0_u64; 3];
        for number in 0..25_000 {
            let (source, before) = mix.at(number);
            assert_eq!(before, seen[source], "{number}");
            seen[source] += 1;
            for (source, weight) in [3.0, 1.0, 0.5].iter().enumerate() {
                assert!((seen[source] as f64 - weight / 4.5 * (number + 1) as f64).abs() < 2.0, "{number}: {seen:?}");
            }
        }
    }

    #[test]
    fn a_single_source_has_every_request() {
        assert_eq!(Mix::new(&[2.0]).unwrap().at(7), (0, 7));
    }

    #[test]
    fn weights_without_a_share_are_refused() {
        for weights in [&[0.0, 1.0][..], &[-1.0], &[f64::NAN], &[1.0, f64::INFINITY], &[1e-9, 1.0]] {
            assert!(Mix::new(weights).unwrap_err().message.contains("the weight"), "{weights:?}");
        }
    }
}
