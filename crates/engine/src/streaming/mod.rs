//! Models whose state lives in the server: a client sends what is new, the server keeps what came before.
//!
//! Only the arithmetic is here. Which request belongs to which sequence, and whose turn it is, is decided elsewhere; a
//! [`State`] is whatever one sequence has left behind.

mod averager;
mod checkpoint;
#[cfg(test)]
mod fuzz;
mod snapshotter;

use alipes_protocol::Datatype;
use bytes::Bytes;

pub use averager::{Averager, AveragerShape};
pub use snapshotter::{Snapshotter, SnapshotterShape};

use crate::{EngineError, OutputTensor};

/// Largest output of one request in bytes: no message carries more.
const MAX_OUTPUT_BYTES: usize = i32::MAX as usize;

/// What a sequence has left behind; the default is that of a sequence that has just begun, all zeros.
#[derive(Clone, Debug, Default)]
pub struct State {
    stored: Stored,
    /// Predictions that an averager has seen, up to as many as make a mean.
    seen: usize,
}

#[derive(Clone, Debug, Default)]
enum Stored {
    #[default]
    Zeros,
    /// The newest samples of all channels.
    Window(Bytes),
    /// Sums that are not complete yet, of all channels.
    Singles(Vec<f32>),
    /// Sums that are not complete yet, of all channels, in double precision.
    Doubles(Vec<f64>),
}

/// A model that answers an update with what follows from it and all that came before in its sequence.
#[derive(Clone, Debug)]
pub enum StreamingModel {
    /// From updates to overlapping windows.
    Snapshotter(Snapshotter),
    /// From overlapping predictions to their mean.
    Averager(Averager),
}

impl StreamingModel {
    /// Takes an update in and gives all outputs, in the order in which the configuration declares them.
    ///
    /// # Errors
    ///
    /// `Internal` where the update is not as long as the model's input: the check of requests has let it pass.
    pub fn run(&self, state: &mut State, update: &[u8], outputs: &mut Vec<OutputTensor>) -> Result<(), EngineError> {
        match self {
            StreamingModel::Snapshotter(snapshotter) => snapshotter.run(state, update, outputs),
            StreamingModel::Averager(averager) => averager.run(state, update, outputs),
        }
    }

    /// Bytes that one request has written: what it costs.
    pub fn output_bytes(&self) -> usize {
        match self {
            StreamingModel::Snapshotter(snapshotter) => snapshotter.output_bytes(),
            StreamingModel::Averager(averager) => averager.output_bytes(),
        }
    }
}

/// The product, where a message of so many elements can leave.
fn elements(datatype: Datatype, sizes: &[usize]) -> Result<usize, EngineError> {
    let size = datatype.size().ok_or_else(|| EngineError::invalid(format!("{datatype} has no fixed size")))?;
    let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size)).filter(|&count| count > 0);
    let bytes = count.and_then(|count| count.checked_mul(size)).filter(|&bytes| bytes <= MAX_OUTPUT_BYTES);
    let sizes = || sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
    let text =
        || EngineError::invalid(format!("{} elements of {datatype} are none, or too many for a message", sizes()));
    bytes.and(count).ok_or_else(text)
}

fn wrong_length(update: &[u8], expected: usize) -> EngineError {
    EngineError::internal(format!("an update has {} bytes where {expected} are expected", update.len()))
}
