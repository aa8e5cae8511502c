//! Shares of one, and the best classes with their names.

use std::cmp::Ordering;
use std::sync::Arc;

use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_protocol::codec::elements;
use alipes_protocol::{Datatype, Shape};
use alipes_spec::{ModelSpec, TopKOutput, TopKSpec};
use bytes::Bytes;

use super::numbers::{bytes_of, input, last_axis, output, read};

/// Numbers become shares of one along the last axis.
pub struct Softmax;

impl Engine for Softmax {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let input = input(inputs, 0)?;
        let mut numbers: Vec<f32> = read(input).collect();
        numbers.chunks_mut(last_axis(input.shape).max(1)).for_each(share);
        let shares = output(0, input.shape.into(), numbers);
        outputs.extend(wanted.iter().map(|&index| OutputTensor { index, ..shares.clone() }));
        Ok(())
    }
}

/// Numbers as shares of one. The largest is taken away first, so that none is too large to be a power.
fn share(numbers: &mut [f32]) {
    let largest = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    numbers.iter_mut().for_each(|number| *number = (*number - largest).exp());
    // In double precision: a thousand small shares would else be rounded away beside a large one.
    let sum: f64 = numbers.iter().map(|&number| f64::from(number)).sum();
    numbers.iter_mut().for_each(|number| *number = (f64::from(*number) / sum) as f32);
}

/// Which classes are answered, and what they are called.
pub struct Choice {
    count: usize,
    softmax: bool,
    outputs: Vec<TopKOutput>,
    labels: Vec<String>,
}

impl Choice {
    /// The choice that a specification describes; names are those of its output of names.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the outputs are not those of the model.
    pub fn new(model: &ModelSpec, spec: &TopKSpec) -> Result<Choice, EngineError> {
        if model.outputs.len() != spec.outputs.len() || spec.count == 0 {
            let (declared, described) = (model.outputs.len(), spec.outputs.len());
            let text = format!("{declared} outputs of '{}', of which {described} are described", model.name);
            return Err(EngineError::invalid(text));
        }
        let named = model.outputs.iter().find(|port| !port.labels.is_empty());
        let labels = named.map(|port| port.labels.clone()).unwrap_or_default();
        Ok(Choice { count: spec.count, softmax: spec.softmax, outputs: spec.outputs.clone(), labels })
    }
}

/// The best classes of each row, best first.
pub struct TopK {
    choice: Arc<Choice>,
    scores: Vec<f32>,
    order: Vec<usize>,
}

impl TopK {
    /// An instance.
    pub fn new(choice: Arc<Choice>) -> TopK {
        TopK { choice, scores: Vec::new(), order: Vec::new() }
    }

    /// Positions of the best classes of a row. Among equals the first is better, and no number is better than any.
    fn best(&mut self) -> &[usize] {
        let scores = &self.scores;
        let better = |&one: &usize, &other: &usize| compare(scores[other], scores[one]).then(one.cmp(&other));
        self.order.clear();
        self.order.extend(0..scores.len());
        let count = self.choice.count.min(scores.len());
        if count < scores.len() {
            self.order.select_nth_unstable_by(count, better);
        }
        self.order[..count].sort_unstable_by(better);
        &self.order[..count]
    }
}

impl Engine for TopK {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let input = input(inputs, 0)?;
        let (classes, count) = (last_axis(input.shape), self.choice.count);
        if classes < count {
            return Err(EngineError::invalid(format!("{classes} scores of a row, expected at least the {count} best")));
        }
        let numbers: Vec<f32> = read(input).collect();
        let mut found = Found::default();
        for row in numbers.chunks_exact(classes) {
            self.scores.clear();
            self.scores.extend_from_slice(row);
            if self.choice.softmax {
                share(&mut self.scores);
            }
            self.best();
            for &class in &self.order[..count] {
                found.add(self.scores[class], class, self.choice.labels.get(class));
            }
        }
        let mut shape: Shape = input.shape.into();
        if let Some(last) = shape.last_mut() {
            *last = i64::try_from(count).unwrap_or(i64::MAX);
        }
        let choice = &self.choice;
        outputs.extend(wanted.iter().map(|&index| found.output(index, choice.outputs[index], shape.clone())));
        Ok(())
    }
}

fn compare(one: f32, other: f32) -> Ordering {
    let number = |score: f32| !score.is_nan();
    one.partial_cmp(&other).unwrap_or_else(|| number(one).cmp(&number(other)))
}

/// The classes of a batch.
#[derive(Default)]
struct Found {
    labels: Vec<u8>,
    scores: Vec<f32>,
    indices: Vec<i64>,
}

impl Found {
    /// A class without a name is called by its position.
    fn add(&mut self, score: f32, class: usize, label: Option<&String>) {
        match label.filter(|label| !label.is_empty()) {
            Some(label) => elements::push(&mut self.labels, label.as_bytes()),
            None => elements::push(&mut self.labels, class.to_string().as_bytes()),
        }
        self.scores.push(score);
        self.indices.push(i64::try_from(class).unwrap_or(i64::MAX));
    }

    fn output(&self, index: usize, holds: TopKOutput, shape: Shape) -> OutputTensor {
        let (datatype, data) = match holds {
            TopKOutput::Labels => (Datatype::Bytes, Bytes::from(self.labels.clone())),
            TopKOutput::Scores => (Datatype::Fp32, bytes_of(self.scores.clone())),
            TopKOutput::Indices => {
                (Datatype::Int64, self.indices.iter().flat_map(|index| index.to_le_bytes()).collect())
            }
        };
        OutputTensor { index, datatype, shape, data }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(count: usize, softmax: bool, labels: &[&str]) -> TopK {
        let outputs = vec![TopKOutput::Labels, TopKOutput::Scores, TopKOutput::Indices];
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        TopK::new(Arc::new(Choice { count, softmax, outputs, labels }))
    }

    fn run(engine: &mut impl Engine, shape: &[i64], numbers: &[f32]) -> Result<Vec<OutputTensor>, EngineError> {
        let data = bytes_of(numbers.to_vec());
        let input = InputView { index: 0, datatype: Datatype::Fp32, shape, data: &data };
        let mut outputs = Vec::new();
        engine.run(&[input], &[0, 1, 2], &mut outputs).map(|()| outputs)
    }

    fn floats(output: &OutputTensor) -> Vec<f32> {
        output.data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn the_best_classes_come_first_with_their_names() {
        let mut top = choice(2, false, &["ant", "bee"]);
        let outputs = run(&mut top, &[2, 3], &[0.5, 3.0, -1.0, 0.0, 0.25, 2.0]).unwrap();
        let labels: Vec<&[u8]> = elements::iter(&outputs[0].data).collect();
        assert_eq!(labels, [b"bee".as_slice(), b"ant", b"2", b"bee"]);
        assert_eq!(floats(&outputs[1]), [3.0, 0.5, 2.0, 0.25]);
        assert_eq!(outputs[2].shape[..], [2, 2]);
        assert_eq!(outputs[2].data[..8], 1_i64.to_le_bytes());
    }

    #[test]
    fn among_equals_the_first_is_better_and_no_number_is_the_worst() {
        let outputs = run(&mut choice(3, false, &[]), &[1, 4], &[f32::NAN, 1.0, f32::NEG_INFINITY, 1.0]).unwrap();
        let labels: Vec<&[u8]> = elements::iter(&outputs[0].data).collect();
        assert_eq!(labels, [b"1".as_slice(), b"3", b"2"]);
    }

    #[test]
    fn more_classes_than_there_are_cannot_be_best() {
        let error = run(&mut choice(3, false, &[]), &[1, 2], &[1.0, 2.0]).unwrap_err();
        assert_eq!(error.message, "2 scores of a row, expected at least the 3 best");
    }

    #[test]
    fn shares_sum_up_to_one_however_large_the_numbers() {
        let outputs = run(&mut Softmax, &[2, 2], &[1e30, 1e30, 0.0, 3_f32.ln()]).unwrap();
        let shares = floats(&outputs[0]);
        assert_eq!(shares[..2], [0.5, 0.5]);
        assert!((shares[2] - 0.25).abs() < 1e-6 && (shares[3] - 0.75).abs() < 1e-6, "{shares:?}");
        let best = run(&mut choice(1, true, &[]), &[2, 2], &[1e30, 1e30, 0.0, 3_f32.ln()]).unwrap();
        assert_eq!(floats(&best[1])[0], 0.5);
    }
}
