//! From overlapping predictions to their mean, as soon as the last of them has come.

use alipes_protocol::{Datatype, Shape};

use super::checkpoint::StateLayout;
use super::{State, Stored, elements, wrong_length};
use crate::{EngineError, OutputTensor};

/// What an averager is made for.
#[derive(Clone, Debug)]
pub struct AveragerShape {
    /// Element type of the predictions: FP32 or FP64.
    pub datatype: Datatype,
    /// Samples by which each prediction is ahead of the one before it.
    pub update: usize,
    /// Predictions that make a mean.
    pub updates: usize,
    /// Predictions of a request.
    pub batch: usize,
    /// Channels of a prediction, or zero where it has one and no axis for it.
    pub channels: usize,
    /// Samples of a prediction, of which the newest `updates * update` count.
    pub kernel: usize,
    /// The first means are those of the predictions that there are.
    pub unbiased: bool,
}

/// The mean of the predictions that cover a sample.
///
/// The predictions are `[batch, channels, kernel]`, the output is `[1, channels, batch * update]`: the samples that no
/// later prediction covers. The first `updates - 1` of them lack predictions that never came: these count as zero, or,
/// where it is unbiased, do not count.
#[derive(Clone, Debug)]
pub struct Averager {
    shape: AveragerShape,
    output: Shape,
}

impl Averager {
    /// An averager of this shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where a size is zero, or so large that no message carries the predictions, where these are
    /// shorter than what counts of them, or where they are no floating-point numbers of 32 or 64 bits.
    pub fn new(shape: AveragerShape) -> Result<Averager, EngineError> {
        let AveragerShape { datatype, update, updates, batch, channels, kernel, .. } = shape;
        if !matches!(datatype, Datatype::Fp32 | Datatype::Fp64) {
            return Err(EngineError::invalid(format!(
                "means of {datatype} are not offered, those of FP32 and FP64 are"
            )));
        }
        elements(datatype, &[batch, channels.max(1), kernel])?;
        let counts = elements(datatype, &[update, updates])?;
        if counts > kernel {
            return Err(EngineError::invalid(format!(
                "Not enough data: {updates} updates of {update} samples are more than the {kernel} of a prediction"
            )));
        }
        let axis = (channels > 0).then_some(channels as i64);
        let output = [1].into_iter().chain(axis).chain([(batch * update) as i64]).collect();
        Ok(Averager { shape, output })
    }

    pub(super) fn output_bytes(&self) -> usize {
        let AveragerShape { datatype, update, batch, channels, .. } = self.shape;
        batch * update * channels.max(1) * datatype.size().unwrap_or(1)
    }

    pub(super) fn run(
        &self,
        State { stored, seen }: &mut State,
        update: &[u8],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let AveragerShape { datatype, batch, channels, kernel, .. } = self.shape;
        let expected = batch * channels.max(1) * kernel * datatype.size().unwrap_or(1);
        if update.len() != expected {
            return Err(wrong_length(update, expected));
        }
        let mut data = Vec::with_capacity(self.output_bytes());
        if datatype == Datatype::Fp64 {
            if !matches!(stored, Stored::Doubles(_)) {
                *stored = Stored::Doubles(Vec::new());
            }
            let Stored::Doubles(sums) = stored else { unreachable!("it was made so above") };
            self.average(sums, *seen, update, &mut data);
        } else {
            if !matches!(stored, Stored::Singles(_)) {
                *stored = Stored::Singles(Vec::new());
            }
            let Stored::Singles(sums) = stored else { unreachable!("it was made so above") };
            self.average(sums, *seen, update, &mut data);
        }
        *seen = (*seen + batch).min(self.shape.updates);
        outputs.push(OutputTensor { index: 0, datatype, shape: self.output.clone(), data: data.into() });
        Ok(())
    }

    /// A state holds the sums that are not complete, of as many predictions as a request brings.
    pub(super) fn layout(&self) -> StateLayout {
        let AveragerShape { datatype, update, updates, batch, channels, .. } = self.shape;
        let samples = update * (updates + batch - 1);
        StateLayout { kind: "averager", datatype, channels: channels.max(1), samples, update, updates }
    }

    /// Adds the predictions to the sums, one after the other, and gives the sums that are complete.
    ///
    /// The order of the additions is a part of the contract: an exported model that adds in this order gives the same
    /// bits.
    fn average<T: Float>(&self, sums: &mut Vec<T>, seen: usize, predictions: &[u8], into: &mut Vec<u8>) {
        let AveragerShape { update, updates, batch, channels, kernel, unbiased, .. } = self.shape;
        let channels = channels.max(1);
        let length = update * (updates + batch - 1);
        // All zeros at the start; of this length ever after.
        sums.resize(channels * length, T::ZERO);
        let counts = updates * update;
        let divisor = T::from_count(updates);
        // By a power of two both give the same bits, and the product is there sooner.
        let share = updates.is_power_of_two().then(|| T::ONE.over(divisor));
        for (channel, sums) in sums.chunks_exact_mut(length).enumerate() {
            for prediction in 0..batch {
                let end = ((prediction * channels + channel) * kernel + kernel) * T::SIZE;
                let newest = &predictions[end - counts * T::SIZE..end];
                let sums = &mut sums[prediction * update..];
                match share {
                    Some(share) => T::add(sums, newest, |sample| sample.times(share)),
                    None => T::add(sums, newest, |sample| sample.over(divisor)),
                }
            }
            let complete = batch * update;
            for (number, sums) in (seen + 1..).zip(sums[..complete].chunks_exact(update)) {
                if unbiased && number < updates {
                    let weight = divisor.over(T::from_count(number));
                    T::write(sums, into, |sum| sum.times(weight));
                } else {
                    T::write(sums, into, |sum| sum);
                }
            }
            sums.copy_within(complete.., 0);
            sums[length - complete..].fill(T::ZERO);
        }
    }
}

/// A floating-point number as it stands in tensors: little-endian, aligned to nothing.
///
/// Bytes are met many numbers at a time, in loops that the compiler makes vector instructions of. One by one, as they
/// were met before, they took a seventh of what a stream between snapshotter and averager took in all (2 x 512 samples;
/// 11/2026).
trait Float: Copy {
    const SIZE: usize;
    const ZERO: Self;
    const ONE: Self;

    fn from_count(count: usize) -> Self;
    /// Adds what is made of each sample to the sum at its place, as far as there are both.
    fn add(sums: &mut [Self], samples: &[u8], make: impl Fn(Self) -> Self);
    /// Appends what is made of each number.
    fn write(numbers: &[Self], into: &mut Vec<u8>, make: impl Fn(Self) -> Self);
    fn over(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            const SIZE: usize = size_of::<$type>();
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            fn from_count(count: usize) -> Self {
                count as $type
            }

            fn add(sums: &mut [Self], samples: &[u8], make: impl Fn(Self) -> Self) {
                for (sum, sample) in sums.iter_mut().zip(samples.as_chunks().0) {
                    *sum += make(<$type>::from_le_bytes(*sample));
                }
            }

            fn write(numbers: &[Self], into: &mut Vec<u8>, make: impl Fn(Self) -> Self) {
                let begin = into.len();
                into.resize(begin + size_of_val(numbers), 0);
                for (bytes, number) in into[begin..].as_chunks_mut().0.iter_mut().zip(numbers) {
                    *bytes = make(*number).to_le_bytes();
                }
            }

            fn over(self, other: Self) -> Self {
                self / other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }
        }
    };
}

float!(f32);
float!(f64);
