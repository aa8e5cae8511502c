//! From updates to overlapping windows: each window ends with the newest samples.

use std::ops::Range;

use alipes_protocol::{Datatype, Shape, copies};
use bytes::Bytes;

use super::checkpoint::StateLayout;
use super::{State, Stored, elements, wrong_length};
use crate::{EngineError, OutputTensor};

/// What a snapshotter is made for.
#[derive(Clone, Debug)]
pub struct SnapshotterShape {
    /// Element type of the samples; any that has a fixed size, since samples are only copied.
    pub datatype: Datatype,
    /// New samples of each window.
    pub stride: usize,
    /// Samples of a window.
    pub snapshot: usize,
    /// Windows, and strides, of an update.
    pub batch: usize,
    /// By output: its channels, or zero where windows have one and no axis for it.
    pub channels: Vec<usize>,
}

/// A window of the newest samples for each stride that comes.
///
/// The update is `[1, channels, batch * stride]`, output `i` is `[batch, channels[i], snapshot]`. The window `b` of a
/// request holds the last `snapshot` samples of all that came until the end of its stride `b`, with zeros before the
/// first one. A stride may be as long as a window, or longer; then some samples are never seen.
#[derive(Clone, Debug)]
pub struct Snapshotter {
    datatype: Datatype,
    /// In bytes, as all lengths from here on.
    stride: usize,
    snapshot: usize,
    batch: usize,
    channels: usize,
    outputs: Vec<Output>,
}

#[derive(Clone, Debug)]
struct Output {
    channels: Range<usize>,
    shape: Shape,
}

impl Snapshotter {
    /// A snapshotter of this shape.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where a size is zero, or so large that no message carries the windows or the update.
    pub fn new(shape: SnapshotterShape) -> Result<Snapshotter, EngineError> {
        let SnapshotterShape { datatype, stride, snapshot, batch, channels } = shape;
        let all = channels.iter().try_fold(0_usize, |sum, &more| sum.checked_add(more.max(1))).unwrap_or(usize::MAX);
        elements(datatype, &[batch, all, snapshot])?;
        elements(datatype, &[batch, all, stride])?;
        let size = datatype.size().unwrap_or(1);
        let mut first = 0;
        let output = |channels: usize| {
            let begin = first;
            first += channels.max(1);
            // Sizes fit, since their product does.
            let axis = (channels > 0).then_some(channels as i64);
            let shape = [batch as i64].into_iter().chain(axis).chain([snapshot as i64]).collect();
            Output { channels: begin..first, shape }
        };
        let outputs = channels.into_iter().map(output).collect();
        Ok(Snapshotter { datatype, stride: stride * size, snapshot: snapshot * size, batch, channels: all, outputs })
    }

    pub(super) fn output_bytes(&self) -> usize {
        self.batch * self.channels * self.snapshot
    }

    /// A state holds the newest window, whatever the strides that it is made of.
    pub(super) fn layout(&self) -> StateLayout {
        let samples = self.snapshot / self.datatype.size().unwrap_or(1);
        let datatype = self.datatype;
        StateLayout { kind: "snapshotter", datatype, channels: self.channels, samples, update: 0, updates: 0 }
    }

    pub(super) fn run(
        &self,
        State { stored, .. }: &mut State,
        update: &[u8],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        let Snapshotter { stride, snapshot, batch, .. } = *self;
        let row = batch * stride;
        if update.len() != self.channels * row {
            return Err(wrong_length(update, self.channels * row));
        }
        let before: &[u8] = if let Stored::Window(window) = stored { window } else { &[] };
        let before = |channel: usize| before.get(channel * snapshot..(channel + 1) * snapshot);
        let mut made = Vec::with_capacity(self.output_bytes());
        for output in &self.outputs {
            for ending in (1..=batch).map(|strides| strides * stride) {
                for channel in output.channels.clone() {
                    push_window(&mut made, snapshot, before(channel), &update[channel * row..][..ending]);
                }
            }
        }
        copies::note(made.len());
        let mut next = Vec::new();
        if batch > 1 {
            next.reserve_exact(self.channels * snapshot);
            for channel in 0..self.channels {
                push_window(&mut next, snapshot, before(channel), &update[channel * row..][..row]);
            }
            copies::note(next.len());
        }
        let made = Bytes::from(made);
        // The last windows are what the next ones begin with. Of a batch of one they are all that was made, in the
        // order of the channels: they are kept as they are and nothing is copied for the state.
        *stored = Stored::Window(if batch > 1 { next.into() } else { made.clone() });
        let mut begin = 0;
        for (index, output) in self.outputs.iter().enumerate() {
            let end = begin + batch * output.channels.len() * snapshot;
            outputs.push(OutputTensor {
                index,
                datatype: self.datatype,
                shape: output.shape.clone(),
                data: made.slice(begin..end),
            });
            begin = end;
        }
        Ok(())
    }
}

/// The last `length` bytes of what came before, which is as long or nothing but zeros, and what is new.
fn push_window(into: &mut Vec<u8>, length: usize, before: Option<&[u8]>, new: &[u8]) {
    if let Some(surplus) = new.len().checked_sub(length) {
        return into.extend_from_slice(&new[surplus..]);
    }
    match before {
        Some(before) => into.extend_from_slice(&before[new.len()..]),
        None => into.resize(into.len() + length - new.len(), 0),
    }
    into.extend_from_slice(new);
}
