//! What a model declares, and what a body asks of it.

use alipes_protocol::{Datatype, Shape, Tensor};
use compact_str::CompactString;

/// What a model declares, as far as a body is read by it.
#[derive(Clone, Debug)]
pub struct PredictModel {
    /// Named in refusals.
    pub name: String,
    /// Its inputs, in the order of its configuration.
    pub inputs: Vec<PredictInput>,
    /// What an instance is to it.
    pub axis: InstanceAxis,
}

/// What a model declares of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictInput {
    /// Its name.
    pub name: CompactString,
    /// Its element type.
    pub datatype: Datatype,
    /// Sizes of one instance; -1 stands for any.
    pub instance: Shape,
    /// A request may leave it out.
    pub optional: bool,
}

/// What an instance is to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceAxis {
    /// A row: the model batches.
    Batch,
    /// A row of the first dimension of every input, which the model declares open; no other requests join it.
    First,
    /// All that the model takes at once: it has no dimension for more.
    Whole,
}

/// The form of a body, and of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictForm {
    /// `instances` and `predictions`.
    Rows,
    /// `inputs` and `outputs`.
    Columns,
}

/// What a body asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictRequest {
    /// Its form.
    pub form: PredictForm,
    /// Its tensors. Where they are stacked, each has the instances as its first dimension.
    pub inputs: Vec<Tensor>,
    /// How many instances are stacked; none where the tensors are the model's as they stand.
    pub stacked: Option<usize>,
}
