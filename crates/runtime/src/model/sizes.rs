//! How large an execution is in each direction, so that one can be compared with another.
//!
//! No number of bytes tells how long a model takes: it may take each element with each other, or one input's elements
//! much longer than another's. But what is no larger in any direction than another execution takes no longer either.

use alipes_engine::InputView;
use alipes_protocol::Shape;
use alipes_request::check::Checked;
use smallvec::SmallVec;

/// The sizes of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    rows: u64,
    /// A bit for each output that is asked for; all from the last bit on share it.
    outputs: u64,
    inputs: SmallVec<[InputSizes; 2]>,
}

/// Those of one input.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InputSizes {
    index: usize,
    /// Of all rows, texts with their lengths.
    bytes: usize,
    /// Of the largest row in each dimension, where the model batches; else of the tensor.
    row: Shape,
}

impl Sizes {
    /// Those of requests that are executed together; none where they bring different inputs.
    pub fn of_requests<'a>(batches: bool, requests: impl Iterator<Item = &'a Checked>) -> Option<Sizes> {
        let each = requests.map(|checked| {
            let inputs = checked.inputs.iter();
            let inputs = inputs.map(|input| InputSizes::of(batches, input.index, &input.shape, input.data.len()));
            Sizes { rows: checked.rows.into(), outputs: bits(&checked.outputs), inputs: inputs.collect() }
        });
        each.map(Some).reduce(|all, one| all?.and(one?)).flatten()
    }

    /// Those of inputs that have been gathered.
    pub fn of_views(batches: bool, rows: u32, views: &[InputView<'_>], wanted: &[usize]) -> Sizes {
        let inputs = views.iter().map(|view| InputSizes::of(batches, view.index, view.shape, view.data.len()));
        Sizes { rows: rows.into(), outputs: bits(wanted), inputs: inputs.collect() }
    }

    /// Bytes of all inputs.
    pub fn bytes(&self) -> usize {
        self.inputs.iter().map(|input| input.bytes).sum()
    }

    /// Whether another execution is larger in no direction.
    pub fn cover(&self, other: &Sizes) -> bool {
        other.rows <= self.rows
            && other.outputs & !self.outputs == 0
            && other.inputs.len() == self.inputs.len()
            && self.inputs.iter().zip(&other.inputs).all(|(own, other)| own.cover(other))
    }

    /// Those of both together.
    fn and(mut self, other: Sizes) -> Option<Sizes> {
        if self.inputs.len() != other.inputs.len() {
            return None;
        }
        self.rows += other.rows;
        self.outputs |= other.outputs;
        let mut pairs = self.inputs.iter_mut().zip(other.inputs);
        pairs.all(|(own, other)| own.add(&other)).then_some(self)
    }
}

impl InputSizes {
    fn of(batches: bool, index: usize, shape: &[i64], bytes: usize) -> InputSizes {
        InputSizes { index, bytes, row: shape.iter().skip(batches.into()).copied().collect() }
    }

    fn is_like(&self, other: &InputSizes) -> bool {
        self.index == other.index && self.row.len() == other.row.len()
    }

    fn cover(&self, other: &InputSizes) -> bool {
        let is_within = || self.row.iter().zip(&other.row).all(|(own, other)| other <= own);
        self.is_like(other) && other.bytes <= self.bytes && is_within()
    }

    /// Adds the rows of another request; false where they cannot be compared.
    fn add(&mut self, other: &InputSizes) -> bool {
        self.bytes += other.bytes;
        self.row.iter_mut().zip(&other.row).for_each(|(own, &other)| *own = (*own).max(other));
        self.is_like(other)
    }
}

fn bits(outputs: &[usize]) -> u64 {
    outputs.iter().fold(0, |bits, &output| bits | 1 << output.min(63))
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;

    use super::*;

    fn sizes(rows: u32, shapes: &[&[i64]], wanted: &[usize]) -> Sizes {
        let data = [0; 4096];
        let views: Vec<_> = shapes
            .iter()
            .enumerate()
            .map(|(index, shape)| {
                let data = &data[..shape.iter().product::<i64>() as usize];
                InputView { index, datatype: Datatype::Uint8, shape, data }
            })
            .collect();
        Sizes::of_views(true, rows, &views, wanted)
    }

    #[test]
    fn what_is_larger_in_one_direction_is_not_covered() {
        let quick = sizes(4, &[&[4, 8, 2], &[4, 1]], &[0]);
        for smaller in [sizes(4, &[&[4, 8, 2], &[4, 1]], &[0]), sizes(2, &[&[2, 4, 1], &[2, 1]], &[])] {
            assert!(quick.cover(&smaller));
        }
        for larger in [
            sizes(5, &[&[5, 1, 1], &[5, 1]], &[0]),
            sizes(1, &[&[1, 9, 1], &[1, 1]], &[0]),
            sizes(1, &[&[1, 4, 4], &[1, 1]], &[0]),
            sizes(1, &[&[1, 1, 1], &[1, 2]], &[0]),
            sizes(1, &[&[1, 1, 1], &[1, 1]], &[1]),
            sizes(1, &[&[1, 1, 1]], &[0]),
            sizes(1, &[&[1, 1], &[1, 1]], &[0]),
        ] {
            assert!(!quick.cover(&larger), "{larger:?}");
        }
    }

    #[test]
    fn the_bytes_of_texts_count() {
        let text = |bytes: usize| {
            let (data, shape) = (vec![0; bytes], [1, 1]);
            let view = InputView { index: 0, datatype: Datatype::Bytes, shape: &shape, data: &data };
            Sizes::of_views(true, 1, &[view], &[0])
        };
        assert!(text(20).cover(&text(20)) && !text(20).cover(&text(21)));
        assert_eq!(text(20).bytes(), 20);
    }

    #[test]
    fn rows_and_bytes_of_requests_add_up_and_the_largest_row_counts() {
        let one = || sizes(2, &[&[2, 8, 1]], &[0]);
        let both = one().and(sizes(1, &[&[1, 3, 4]], &[1]));
        assert_eq!(both, {
            let mut both = sizes(3, &[&[3, 8, 4]], &[0, 1]);
            both.inputs[0].bytes = 28;
            Some(both)
        });
        assert_eq!(one().and(sizes(2, &[&[2, 8]], &[0])), None);
        assert_eq!(one().and(sizes(2, &[], &[0])), None);
    }
}
