//! From the inputs of some requests to the inputs of one execution.

use alipes_protocol::{Shape, shape};
use smallvec::SmallVec;

use super::aligned::AlignedBuffer;
use super::layout::{Layout, Made};
use crate::{EngineError, InputView};

/// One request's rows of an input.
pub type Member<'a> = InputView<'a>;

/// The inputs of one execution; models have few, so that they live on the stack.
pub type Views<'a> = SmallVec<[InputView<'a>; 4]>;

/// The buffers in which an instance gathers its batches, kept from one to the next.
#[derive(Default)]
pub struct Gather {
    columns: Columns,
    made: Made,
}

/// The inputs of a batch as they are joined.
#[derive(Default)]
struct Columns {
    list: Vec<Column>,
    copies: u64,
}

/// One input of the batch that is being gathered.
#[derive(Default)]
struct Column {
    shape: Shape,
    data: AlignedBuffer,
}

impl Gather {
    /// Joins the inputs of the requests along axis 0.
    ///
    /// Each request gives its inputs in the same order. A request that is alone is not copied, except where its bytes
    /// are not aligned for their datatype; several requests are copied once, behind one another.
    ///
    /// # Errors
    ///
    /// `Internal` where the requests of a batch carry different inputs, or inputs of different datatypes or of
    /// different shapes after axis 0: the caller, which forms the batch, must keep such requests apart.
    pub fn gather<'a, R>(&'a mut self, requests: R) -> Result<Views<'a>, EngineError>
    where
        R: IntoIterator<Item: IntoIterator<Item = Member<'a>>>,
    {
        let mut requests = requests.into_iter();
        let first: Views<'a> = requests.next().into_iter().flatten().collect();
        match requests.next() {
            None => Ok(self.columns.gather_one(first)),
            Some(second) => self.columns.gather_several(&first, second, requests),
        }
    }

    /// As [`gather`](Self::gather), for a model whose requests may differ in shape: ragged inputs become one long row,
    /// and what is made of the batch stands behind what requests give.
    ///
    /// # Errors
    ///
    /// As for [`gather`](Self::gather).
    pub fn gather_laid_out<'a, R>(&'a mut self, layout: &'a Layout, requests: R) -> Result<Views<'a>, EngineError>
    where
        R: IntoIterator<Item: IntoIterator<Item = Member<'a>>>,
    {
        let Gather { columns, made } = self;
        let mut requests: Vec<Views<'a>> = requests.into_iter().map(|request| request.into_iter().collect()).collect();
        made.make(layout, &requests)?;
        let made: &'a Made = made;
        made.flatten(layout, &mut requests);
        let mut requests = requests.into_iter();
        let first = requests.next().unwrap_or_default();
        let mut views = match requests.next() {
            None => columns.gather_one(first),
            Some(second) => columns.gather_several(&first, second, requests)?,
        };
        views.extend(made.views(layout));
        Ok(views)
    }

    /// Lone requests whose bytes had to be copied, since they were not aligned.
    pub fn copies(&self) -> u64 {
        self.columns.copies
    }
}

impl Columns {
    fn gather_one<'a>(&'a mut self, mut request: Views<'a>) -> Views<'a> {
        self.make_room(request.len());
        for (column, member) in self.list.iter_mut().zip(&request) {
            if !member.is_aligned() {
                column.data.clear();
                column.data.extend(member.data);
                self.copies += 1;
            }
        }
        for (column, member) in self.list.iter().zip(&mut request) {
            if !member.is_aligned() {
                member.data = column.data.bytes();
            }
        }
        request
    }

    fn gather_several<'a, R>(
        &'a mut self,
        first: &[Member<'a>],
        second: R,
        others: impl Iterator<Item = R>,
    ) -> Result<Views<'a>, EngineError>
    where
        R: IntoIterator<Item = Member<'a>>,
    {
        self.make_room(first.len());
        let columns = &mut self.list[..first.len()];
        for (column, member) in columns.iter_mut().zip(first) {
            column.begin(member);
        }
        for request in [second].into_iter().chain(others) {
            let mut joined = 0;
            for member in request {
                let (Some(column), Some(model)) = (columns.get_mut(joined), first.get(joined)) else {
                    return Err(mixed(&member, "that the batch has not"));
                };
                column.join(model, &member)?;
                joined += 1;
            }
            if let Some(missing) = first.get(joined) {
                return Err(mixed(missing, "that a request has not"));
            }
        }
        let view = |(column, member): (&'a Column, &Member<'a>)| InputView {
            shape: &column.shape,
            data: column.data.bytes(),
            ..*member
        };
        Ok(self.list.iter().zip(first).map(view).collect())
    }

    fn make_room(&mut self, inputs: usize) {
        if self.list.len() < inputs {
            self.list.resize_with(inputs, Column::default);
        }
    }
}

impl Column {
    fn begin(&mut self, member: &Member<'_>) {
        self.shape.clear();
        self.shape.extend_from_slice(member.shape);
        self.data.clear();
        self.data.extend(member.data);
    }

    fn join(&mut self, model: &Member<'_>, member: &Member<'_>) -> Result<(), EngineError> {
        if (model.index, model.datatype) != (member.index, member.datatype) {
            return Err(mixed(member, &format!("where the batch has {} as input {}", model.datatype, model.index)));
        }
        let rows = match (&self.shape[..], member.shape) {
            ([rows, rest @ ..], [more, more_rest @ ..]) if rest == more_rest => rows.checked_add(*more),
            _ => None,
        };
        let Some(rows) = rows else {
            return Err(mixed(member, &format!("where the batch has shape {}", shape::text(&self.shape))));
        };
        self.shape[0] = rows;
        self.data.extend(member.data);
        Ok(())
    }
}

fn mixed(member: &Member<'_>, why: &str) -> EngineError {
    EngineError::internal(format!(
        "requests of one batch differ: one has {} of shape {} as input {}, {why}",
        member.datatype,
        shape::text(member.shape),
        member.index
    ))
}
