//! Batches of requests whose shapes differ: what is put behind one another, and what the batch tells the model of it.
//!
//! Source: Triton's ragged batching. A ragged input becomes one long row of all elements; tensors that are made of the
//! batch say where each request begins, or how large it is; an output may be cut up the way an input was put together.

use alipes_protocol::{Datatype, Shape, shape};

use super::aligned::AlignedBuffer;
use super::gather::Views;
use crate::{EngineError, InputView};

/// What is unusual about the batches of a model.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Positions of the inputs that are put behind one another in one dimension.
    pub ragged: Vec<usize>,
    /// Inputs that are made of the batch.
    pub made: Vec<MadeInput>,
    /// Outputs that are cut up like an input: positions of the output and of the input.
    pub scattered: Vec<(usize, usize)>,
}

/// An input that is made of the batch rather than given by requests.
#[derive(Clone, Debug)]
pub struct MadeInput {
    /// Its position, behind those of all inputs that requests give.
    pub index: usize,
    /// The kind of value.
    pub kind: MadeKind,
    /// `INT32` or `FP32`.
    pub datatype: Datatype,
    /// Position of the input that it describes.
    pub source: usize,
}

/// The description of another input that a batch input carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MadeKind {
    /// Elements of each request.
    ElementCount,
    /// Where each request ends.
    AccumulatedElementCount,
    /// Where each request begins, and where the last one ends.
    AccumulatedElementCountWithZero,
    /// Elements of the largest request, as the size of a tensor of zeros.
    MaxElementCountAsShape,
    /// The sizes of each row, as rows.
    ItemShape,
    /// The sizes of each row, behind one another.
    ItemShapeFlatten,
}

/// The tensors that a batch makes, and the shapes of what is put behind one another; kept from one batch to the next.
#[derive(Default)]
pub(super) struct Made {
    flat: Vec<[i64; 1]>,
    columns: Vec<(Shape, AlignedBuffer)>,
}

impl Made {
    /// Makes what the layout says of these requests.
    pub(super) fn make(&mut self, layout: &Layout, requests: &[Views<'_>]) -> Result<(), EngineError> {
        self.flat.clear();
        for member in requests.iter().flatten().filter(|member| layout.is_ragged(member.index)) {
            self.flat.push([elements(member.shape)?]);
        }
        self.columns.resize_with(layout.made.len(), Default::default);
        for (made, (shape, data)) in layout.made.iter().zip(&mut self.columns) {
            let source = |request: &Views<'_>| {
                let input = request.iter().find(|member| member.index == made.source);
                input.map(|input| Shape::from_slice(input.shape)).ok_or_else(|| {
                    EngineError::internal(format!("a request has not input {}, of which the batch tells", made.source))
                })
            };
            let sources: Vec<Shape> = requests.iter().map(source).collect::<Result<_, _>>()?;
            fill(made, &sources, shape, data)?;
        }
        Ok(())
    }

    /// Gives ragged members the shapes under which they are joined.
    pub(super) fn flatten<'a>(&'a self, layout: &Layout, requests: &mut [Views<'a>]) {
        let ragged = requests.iter_mut().flatten().filter(|member| layout.is_ragged(member.index));
        for (member, flat) in ragged.zip(&self.flat) {
            member.shape = flat;
        }
    }

    pub(super) fn views<'a>(&'a self, layout: &'a Layout) -> impl Iterator<Item = InputView<'a>> {
        layout.made.iter().zip(&self.columns).map(|(made, (shape, data))| InputView {
            index: made.index,
            datatype: made.datatype,
            shape,
            data: data.bytes(),
        })
    }
}

impl Layout {
    fn is_ragged(&self, input: usize) -> bool {
        self.ragged.contains(&input)
    }

    /// The input like which an output is cut up, where it is.
    pub fn source_of(&self, output: usize) -> Option<usize> {
        self.scattered.iter().find(|(scattered, _)| *scattered == output).map(|(_, source)| *source)
    }
}

fn fill(made: &MadeInput, sources: &[Shape], shape: &mut Shape, data: &mut AlignedBuffer) -> Result<(), EngineError> {
    let mut values: Vec<i64> = Vec::new();
    let counts: Vec<i64> = sources.iter().map(|source| elements(source)).collect::<Result<_, _>>()?;
    shape.clear();
    match made.kind {
        MadeKind::ElementCount => values = counts,
        MadeKind::AccumulatedElementCount => values.extend(ends(&counts)),
        MadeKind::AccumulatedElementCountWithZero => values.extend([0].into_iter().chain(ends(&counts))),
        MadeKind::MaxElementCountAsShape => {
            values.resize(usize::try_from(counts.into_iter().max().unwrap_or(0)).unwrap_or(0), 0);
        }
        MadeKind::ItemShape | MadeKind::ItemShapeFlatten => {
            for source in sources {
                let [rows, row @ ..] = &source[..] else { continue };
                (0..*rows).for_each(|_| values.extend_from_slice(row));
            }
        }
    }
    match (made.kind, sources.first()) {
        (MadeKind::ItemShape, Some(first)) => {
            let rows = sources.iter().filter_map(|source| source.first()).sum();
            shape.extend([rows, i64::try_from(first.len().saturating_sub(1)).unwrap_or(0)]);
        }
        _ => shape.push(i64::try_from(values.len()).unwrap_or(i64::MAX)),
    }
    write(made.datatype, &values, data);
    Ok(())
}

fn ends(counts: &[i64]) -> impl Iterator<Item = i64> {
    counts.iter().scan(0_i64, |end, count| {
        *end = end.saturating_add(*count);
        Some(*end)
    })
}

fn write(datatype: Datatype, values: &[i64], data: &mut AlignedBuffer) {
    data.clear();
    for &value in values {
        match datatype {
            Datatype::Fp32 => data.extend(&(value as f32).to_ne_bytes()),
            _ => data.extend(&i32::try_from(value).unwrap_or(i32::MAX).to_ne_bytes()),
        }
    }
}

fn elements(sizes: &[i64]) -> Result<i64, EngineError> {
    let count = shape::element_count(sizes).and_then(|count| i64::try_from(count).ok());
    count.ok_or_else(|| EngineError::internal(format!("shape {} has too many elements", shape::text(sizes))))
}
