//! From the outputs of one execution to each request's own rows.

use std::ops::Range;

use alipes_protocol::codec::elements;
use alipes_protocol::{Shape, shape};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::{EngineError, OutputTensor};

/// Hands out a batch's outputs, request by request. Nothing is copied: each piece is a slice.
#[derive(Debug)]
pub struct Split<'a> {
    outputs: &'a [OutputTensor],
    cuts: SmallVec<[Cuts; 4]>,
    rows: Option<usize>,
    consumed: usize,
    /// Requests that have been given theirs.
    requests: usize,
}

/// Where the rows of an output begin.
#[derive(Debug)]
enum Cuts {
    /// Every row takes as many bytes.
    Even(usize),
    /// At these offsets; the last is the end. For `BYTES`, whose elements differ in length.
    At(Vec<usize>),
    /// By requests rather than rows, each with a shape of its own.
    Requests(Vec<(Range<usize>, Shape)>),
}

impl<'a> Split<'a> {
    /// Prepares to split outputs along axis 0, where the batch has `rows` of them. A model that does not batch has no
    /// rows; its outputs are handed out whole.
    ///
    /// # Errors
    ///
    /// `Internal` where an output does not have one row for each of the batch's.
    pub fn new(outputs: &'a [OutputTensor], rows: Option<usize>) -> Result<Split<'a>, EngineError> {
        let cuts = match rows {
            Some(rows) => outputs.iter().map(|output| cuts(output, rows)).collect::<Result<_, _>>()?,
            None => SmallVec::new(),
        };
        Ok(Split { outputs, cuts, rows, consumed: 0, requests: 0 })
    }

    /// As [`new`](Self::new), where some outputs are one long row that is cut up like an input was put together.
    /// `shapes` tells for such an output the shape that each request gets, in their order; `None` for any other output.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new); `Internal` where an output has not as many elements as its requests are to get.
    pub fn laid_out(
        outputs: &'a [OutputTensor],
        rows: Option<usize>,
        shapes: impl Fn(usize) -> Option<Vec<Shape>>,
    ) -> Result<Split<'a>, EngineError> {
        let cut = |output: &OutputTensor| match (shapes(output.index), rows) {
            (Some(shapes), _) => scattered(output, shapes),
            (None, Some(rows)) => cuts(output, rows),
            (None, None) => Ok(Cuts::Requests(vec![(0..output.data.len(), output.shape.clone())])),
        };
        let cuts = outputs.iter().map(cut).collect::<Result<_, _>>()?;
        Ok(Split { outputs, cuts, rows, consumed: 0, requests: 0 })
    }

    /// The next `rows` rows of each output.
    ///
    /// # Panics
    ///
    /// If more rows are taken than the batch has.
    pub fn take(&mut self, rows: usize) -> impl Iterator<Item = OutputTensor> {
        let from = self.consumed;
        let to = from + rows;
        self.consumed = to;
        let request = self.requests;
        self.requests += 1;
        let (outputs, cuts, all) = (self.outputs, &self.cuts, self.rows);
        assert!(all.is_none_or(|all| to <= all), "{to} rows taken of {all:?}");
        outputs.iter().enumerate().map(move |(position, output)| match cuts.get(position) {
            Some(cuts) => piece(output, cuts, request, from, to),
            None => output.clone(),
        })
    }
}

fn piece(output: &OutputTensor, cuts: &Cuts, request: usize, from: usize, to: usize) -> OutputTensor {
    let range = match cuts {
        Cuts::Even(size) => from * size..to * size,
        Cuts::At(offsets) => offsets[from]..offsets[to],
        Cuts::Requests(requests) => {
            let (range, shape) = requests[request].clone();
            let data = slice(&output.data, range);
            return OutputTensor { index: output.index, datatype: output.datatype, shape, data };
        }
    };
    let mut shape = output.shape.clone();
    // Rows of a batch are counted in `i64` by the very shape that is changed here.
    shape[0] = (to - from) as i64;
    OutputTensor { index: output.index, datatype: output.datatype, shape, data: slice(&output.data, range) }
}

/// Slicing to nothing would give up the buffer's address; a whole slice saves the arithmetic.
fn slice(data: &Bytes, range: Range<usize>) -> Bytes {
    if range == (0..data.len()) { data.clone() } else { data.slice(range) }
}

fn cuts(output: &OutputTensor, rows: usize) -> Result<Cuts, EngineError> {
    let rest = match &output.shape[..] {
        [first, rest @ ..] if usize::try_from(*first) == Ok(rows) => rest,
        _ => return Err(mismatch(output, rows)),
    };
    let per_row = shape::element_count(rest);
    let cuts = match output.datatype.size() {
        Some(size) => per_row.and_then(|count| even(output.data.len(), rows, count.checked_mul(size)?)),
        None => per_row.and_then(|count| at_elements(&output.data, rows, count)),
    };
    cuts.ok_or_else(|| {
        EngineError::internal(format!(
            "output {}: {} bytes are no {} tensor of shape {}",
            output.index,
            output.data.len(),
            output.datatype,
            shape::text(&output.shape)
        ))
    })
}

/// An output that is cut up by requests.
fn scattered(output: &OutputTensor, shapes: Vec<Shape>) -> Result<Cuts, EngineError> {
    let counts: Option<Vec<usize>> = shapes.iter().map(|shape| shape::element_count(shape)).collect();
    let offsets = counts.and_then(|counts| match output.datatype.size() {
        Some(size) => at_sizes(output.data.len(), &counts, size),
        None => at_counts(&output.data, &counts),
    });
    let offsets = offsets.ok_or_else(|| {
        EngineError::internal(format!(
            "output {}: {} bytes of {} are not what the inputs that it is cut up like ask for",
            output.index,
            output.data.len(),
            output.datatype
        ))
    })?;
    Ok(Cuts::Requests(offsets.windows(2).map(|ends| ends[0]..ends[1]).zip(shapes).collect()))
}

fn at_sizes(len: usize, counts: &[usize], size: usize) -> Option<Vec<usize>> {
    let (mut offsets, mut offset) = (vec![0], 0_usize);
    for count in counts {
        offset = offset.checked_add(count.checked_mul(size)?)?;
        offsets.push(offset);
    }
    (offset == len).then_some(offsets)
}

fn at_counts(data: &[u8], counts: &[usize]) -> Option<Vec<usize>> {
    let (mut offsets, mut elements, mut offset) = (vec![0], elements::iter(data), 0);
    for count in counts {
        for _ in 0..*count {
            offset += 4 + elements.next()?.len();
        }
        offsets.push(offset);
    }
    (offset == data.len()).then_some(offsets)
}

fn even(len: usize, rows: usize, size: usize) -> Option<Cuts> {
    (rows.checked_mul(size) == Some(len)).then_some(Cuts::Even(size))
}

fn at_elements(data: &[u8], rows: usize, per_row: usize) -> Option<Cuts> {
    let mut offsets = Vec::with_capacity(rows.checked_add(1)?);
    let mut elements = elements::iter(data);
    let mut offset = 0;
    offsets.push(0);
    for _ in 0..rows {
        for _ in 0..per_row {
            offset += 4 + elements.next()?.len();
        }
        offsets.push(offset);
    }
    (offset == data.len()).then_some(Cuts::At(offsets))
}

fn mismatch(output: &OutputTensor, rows: usize) -> EngineError {
    EngineError::internal(format!(
        "output {}: shape {} does not match the batch of {rows} rows",
        output.index,
        shape::text(&output.shape)
    ))
}
