//! How the requests of a sequence are brought to the instance that knows it, and what the model is told of it.

use alipes_protocol::Datatype;
use serde::Deserialize;

use super::datatype;

/// How sequences are scheduled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceSpec {
    /// Who runs together.
    pub strategy: StrategySpec,
    /// Silence that ends a sequence, in microseconds.
    pub max_idle_us: u64,
    /// Inputs that tell the model where a sequence stands.
    pub controls: Vec<ControlSpec>,
    /// Tensors that are kept for the model from one request to the next.
    pub states: Vec<StateSpec>,
    /// A request without a sequence is one of its own, and the model may ask for another round of it.
    pub iterative: bool,
    /// Nothing is executed before so many requests of sequences that have a slot wait, once.
    #[serde(default)]
    pub held_until: usize,
    /// Likewise, of sequences that wait for a slot.
    #[serde(default)]
    pub held_until_backlog: usize,
}

/// Who runs together.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum StrategySpec {
    /// Each sequence has a row of the batch.
    Direct {
        /// Longest wait for company, in microseconds.
        max_queue_delay_us: u64,
        /// Share of the slots that have to be ready for a batch not to wait.
        minimum_slot_utilization: f32,
    },
    /// The requests that have waited longest.
    Oldest {
        /// Sequences that an instance has at a time; 0 for as many as a batch has rows.
        max_candidate_sequences: u32,
        /// Sizes in rows to aim for; empty means the largest batch.
        preferred_batch_sizes: Vec<u32>,
        /// Longest wait for company, in microseconds.
        max_queue_delay_us: u64,
    },
}

/// An input that tells the model where a sequence stands.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlSpec {
    /// Name of the tensor.
    pub name: String,
    /// What it tells.
    pub kind: ControlKind,
    /// Its element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// What stands for false and for true; nothing for an id.
    pub false_true: Option<[f64; 2]>,
}

/// What a control tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlKind {
    /// The request begins its sequence.
    Start,
    /// It is the last one.
    End,
    /// There is a request in this row.
    Ready,
    /// The id of the sequence.
    Corrid,
}

/// A tensor that is kept for the model from one request of a sequence to the next.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSpec {
    /// The model's input that receives it.
    pub input: String,
    /// The model's output that renews it.
    pub output: String,
    /// Its element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// Its sizes without the batch dimension; -1 stands for any.
    pub dims: Vec<i64>,
    /// Its sizes when a sequence begins.
    pub initial_dims: Vec<i64>,
    /// Absolute path of the file that holds what it is then; zeros where there is none.
    pub initial_file: Option<String>,
}
