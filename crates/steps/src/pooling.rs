//! One vector for a text: the mean of its tokens' vectors.

use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_protocol::{Datatype, Shape, shape};
use alipes_spec::PoolingSpec;

use super::numbers::{input, last_axis, output, read};

/// Smallest count that a sum is divided by, for texts without a token. Source: sentence-transformers.
const LEAST_COUNT: f32 = 1e-9;

/// Smallest length that a vector is divided by. Source: PyTorch's `normalize`.
const LEAST_LENGTH: f32 = 1e-12;

/// The mean of the vectors that a mask leaves.
#[derive(Clone)]
pub struct Pooling {
    vectors: usize,
    mask: Option<usize>,
    normalize: bool,
}

impl Pooling {
    /// The pooling that a specification describes.
    pub fn new(spec: &PoolingSpec) -> Pooling {
        Pooling { vectors: spec.vectors, mask: spec.mask, normalize: spec.normalize }
    }

    /// The mean of vectors as they lie in a tensor: a copy of them would take as long as their sum.
    fn mean(&self, vectors: &[[u8; 4]], mask: &[f32], mean: &mut [f32]) {
        for (vector, &weight) in vectors.chunks_exact(mean.len()).zip(mask) {
            mean.iter_mut().zip(vector).for_each(|(mean, bytes)| *mean += f32::from_le_bytes(*bytes) * weight);
        }
        let count = mask.iter().sum::<f32>().max(LEAST_COUNT);
        mean.iter_mut().for_each(|mean| *mean /= count);
        if self.normalize {
            let length = mean.iter().map(|number| number * number).sum::<f32>().sqrt().max(LEAST_LENGTH);
            mean.iter_mut().for_each(|number| *number /= length);
        }
    }
}

impl Engine for Pooling {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let vectors = input(inputs, self.vectors)?;
        let [rows @ .., tokens, width] = vectors.shape else {
            return Err(EngineError::internal("vectors of tokens have two axes at least, please report it"));
        };
        let mask = match self.mask {
            Some(index) => mask_of(input(inputs, index)?),
            None => vec![1.0; vectors.data.len() / 4 / last_axis(vectors.shape).max(1)],
        };
        let (tokens, width) = (usize::try_from(*tokens).unwrap_or(0), usize::try_from(*width).unwrap_or(0));
        let texts = shape::element_count(rows).unwrap_or(0);
        if texts.checked_mul(tokens) != Some(mask.len()) {
            let text = format!("a mask of {} numbers for {texts} x {tokens} tokens, expected one for each", mask.len());
            return Err(EngineError::invalid(text));
        }
        let numbers = vectors.data.as_chunks().0;
        let mut means = vec![0.0; texts * width];
        if tokens * width > 0 {
            let texts = numbers.chunks_exact(tokens * width).zip(mask.chunks_exact(tokens));
            means.chunks_exact_mut(width).zip(texts).for_each(|(mean, (vectors, mask))| self.mean(vectors, mask, mean));
        }
        let shape: Shape = rows.iter().chain([&(width as i64)]).copied().collect();
        let pooled = output(0, shape, means);
        outputs.extend(wanted.iter().map(|&index| OutputTensor { index, ..pooled.clone() }));
        Ok(())
    }
}

/// A mask as numbers, whichever type it has.
fn mask_of(mask: &InputView<'_>) -> Vec<f32> {
    match mask.datatype {
        Datatype::Int64 => mask.data.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes) as f32).collect(),
        Datatype::Int32 => mask.data.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes) as f32).collect(),
        _ => read(mask).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::bytes_of;

    fn pooled(normalize: bool, shape: &[i64], numbers: &[f32], mask: &[i64]) -> Result<Vec<f32>, EngineError> {
        let vectors = bytes_of(numbers.to_vec());
        let mask_bytes: Vec<u8> = mask.iter().flat_map(|number| number.to_le_bytes()).collect();
        let inputs = [
            InputView { index: 0, datatype: Datatype::Fp32, shape, data: &vectors },
            InputView { index: 1, datatype: Datatype::Int64, shape: &shape[..2], data: &mask_bytes },
        ];
        let mut outputs = Vec::new();
        Pooling { vectors: 0, mask: Some(1), normalize }.run(&inputs, &[0], &mut outputs)?;
        assert_eq!(outputs[0].shape[..], [shape[0], shape[2]]);
        Ok(outputs[0].data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    #[test]
    fn tokens_outside_of_the_mask_do_not_count() {
        let numbers = [1.0, 2.0, 3.0, 6.0, 50.0, 50.0, 7.0, 8.0, 9.0, 9.0, 9.0, 9.0];
        let means = pooled(false, &[2, 3, 2], &numbers, &[1, 1, 0, 1, 0, 0]).unwrap();
        assert_eq!(means, [2.0, 4.0, 7.0, 8.0]);
    }

    #[test]
    fn a_normalised_mean_is_one_long_and_a_text_without_tokens_zero() {
        let means = pooled(true, &[2, 1, 2], &[3.0, 4.0, 1.0, 1.0], &[1, 0]).unwrap();
        assert!((means[0] - 0.6).abs() < 1e-6 && (means[1] - 0.8).abs() < 1e-6, "{means:?}");
        assert_eq!(means[2..], [0.0, 0.0]);
    }

    #[test]
    fn a_mask_of_another_length_is_refused() {
        let error = pooled(false, &[1, 2, 1], &[1.0, 2.0], &[1]).unwrap_err();
        assert_eq!(error.message, "a mask of 1 numbers for 1 x 2 tokens, expected one for each");
    }
}
