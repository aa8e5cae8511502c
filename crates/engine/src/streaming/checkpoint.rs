//! The state of a sequence as bytes, so that the sequence can go on elsewhere, bit for bit.
//!
//! A header of 64 bytes, then the numbers, channel by channel. All of it is little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0-7 | `ALIPSEQ1` |
//! | 8-19 | `snapshotter` or `averager`, followed by zeros |
//! | 20-27 | the datatype, such as `FP32`, followed by zeros |
//! | 28-31 | channels |
//! | 32-35 | samples of a channel |
//! | 36-39 | samples of an update of an averager; zero for a snapshotter |
//! | 40-43 | predictions that make a mean; zero for a snapshotter |
//! | 44-47 | predictions that an averager has seen, up to as many as make a mean |
//! | 48-63 | zeros |

use alipes_protocol::Datatype;
use bytes::Bytes;

use super::{State, Stored, StreamingModel};
use crate::EngineError;

const MAGIC: &[u8; 8] = b"ALIPSEQ1";
const HEADER_BYTES: usize = 64;

/// What a state must be made for, so that a model can go on with it.
pub(super) struct StateLayout {
    pub(super) kind: &'static str,
    pub(super) datatype: Datatype,
    pub(super) channels: usize,
    pub(super) samples: usize,
    pub(super) update: usize,
    pub(super) updates: usize,
}

impl StateLayout {
    fn payload(&self) -> usize {
        // It fits: the model's outputs are as large.
        self.channels * self.samples * self.datatype.size().unwrap_or(1)
    }

    /// The header of a state; all sizes fit, since their products are sizes of messages.
    fn header(&self, seen: usize) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        let datatype = self.datatype.to_string();
        header[8..8 + self.kind.len()].copy_from_slice(self.kind.as_bytes());
        header[20..20 + datatype.len()].copy_from_slice(datatype.as_bytes());
        for (place, size) in [self.channels, self.samples, self.update, self.updates, seen].into_iter().enumerate() {
            let at = 28 + 4 * place;
            header[at..at + 4].copy_from_slice(&(size as u32).to_le_bytes());
        }
        header
    }

    fn describe(header: &[u8]) -> String {
        let text = |range: std::ops::Range<usize>| {
            let word: Vec<u8> = header[range].iter().copied().take_while(u8::is_ascii_alphanumeric).collect();
            String::from_utf8_lossy(&word).into_owned()
        };
        let (kind, datatype) = (text(8..20), text(20..28));
        let [channels, samples, update, updates] = [28, 32, 36, 40].map(|at| number(header, at));
        let means = if updates > 0 { format!(", means of {updates} with updates of {update}") } else { String::new() };
        format!("{kind} {datatype} [{channels}, {samples}]{means}")
    }
}

fn number(header: &[u8], at: usize) -> u32 {
    header[at..at + 4].iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

impl StreamingModel {
    fn layout(&self) -> StateLayout {
        match self {
            StreamingModel::Snapshotter(snapshotter) => snapshotter.layout(),
            StreamingModel::Averager(averager) => averager.layout(),
        }
    }

    /// Bytes of a state, whatever it holds.
    pub fn checkpoint_bytes(&self) -> usize {
        HEADER_BYTES + self.layout().payload()
    }

    /// A state as bytes, which [`restore`](Self::restore) takes.
    pub fn checkpoint(&self, state: &State) -> Bytes {
        let layout = self.layout();
        let mut bytes = Vec::with_capacity(HEADER_BYTES + layout.payload());
        bytes.extend_from_slice(&layout.header(state.seen));
        match &state.stored {
            Stored::Zeros => {}
            Stored::Window(window) => bytes.extend_from_slice(window),
            Stored::Singles(sums) => sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes())),
            Stored::Doubles(sums) => sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes())),
        }
        bytes.resize(HEADER_BYTES + layout.payload(), 0);
        bytes.into()
    }

    /// The state that such bytes hold.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where they are none, or the state of a model of other sizes.
    pub fn restore(&self, bytes: &[u8]) -> Result<State, EngineError> {
        let layout = self.layout();
        if bytes.len() < HEADER_BYTES || &bytes[..8] != MAGIC {
            return Err(EngineError::invalid(format!(
                "{} bytes that do not begin with {} are no state of a sequence",
                bytes.len(),
                String::from_utf8_lossy(MAGIC)
            )));
        }
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        let seen = number(header, 44) as usize;
        let expected = layout.header(seen);
        if header != expected || seen > layout.updates {
            return Err(EngineError::invalid(format!(
                "the state is one of {}, expected {}",
                StateLayout::describe(header),
                StateLayout::describe(&expected)
            )));
        }
        if payload.len() != layout.payload() {
            return Err(EngineError::invalid(format!(
                "the state has {} bytes, expected {}",
                bytes.len(),
                HEADER_BYTES + layout.payload()
            )));
        }
        let stored = match (self, layout.datatype) {
            (StreamingModel::Snapshotter(_), _) => Stored::Window(Bytes::copy_from_slice(payload)),
            (StreamingModel::Averager(_), Datatype::Fp64) => Stored::Doubles(floats(payload, f64::from_le_bytes)),
            (StreamingModel::Averager(_), _) => Stored::Singles(floats(payload, f32::from_le_bytes)),
        };
        Ok(State { stored, seen })
    }
}

fn floats<T, const SIZE: usize>(payload: &[u8], read: fn([u8; SIZE]) -> T) -> Vec<T> {
    let number = |chunk: &[u8]| {
        let mut bytes = [0; SIZE];
        bytes.copy_from_slice(chunk);
        read(bytes)
    };
    payload.chunks_exact(SIZE).map(number).collect()
}
