//! Sequence scheduling: how requests are batched, which controls the model gets, and which states the server keeps.

use alipes_protocol::Datatype;
use serde::Deserialize;

use crate::read::datatype;

/// Sequence scheduling of a model.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SequenceSpec {
    /// Which requests share a batch.
    pub strategy: StrategySpec,
    /// A sequence ends when it was idle for so long, in microseconds.
    pub max_idle_us: u64,
    /// Control inputs.
    pub controls: Vec<ControlSpec>,
    /// Implicit states.
    pub states: Vec<StateSpec>,
    /// A request without a sequence is a sequence of its own, and the model may ask for another execution of it.
    pub iterative: bool,
    /// The first execution waits until so many requests of sequences with a slot are queued; later ones do not.
    #[serde(default)]
    pub held_until: usize,
    /// The first execution waits until so many requests of sequences that wait for a slot are queued; later ones do
    /// not.
    #[serde(default)]
    pub held_until_backlog: usize,
}

/// Which requests share a batch.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum StrategySpec {
    /// Each sequence has a row of the batch.
    Direct {
        /// Longest queue delay, in microseconds.
        max_queue_delay_us: u64,
        /// A batch executes without delay when this share of the slots is ready.
        minimum_slot_utilization: f32,
    },
    /// The requests that have waited longest.
    Oldest {
        /// Sequences that an instance has at a time; 0 for as many as a batch has rows.
        max_candidate_sequences: u32,
        /// Batch sizes to aim for, in rows; empty means the largest batch.
        preferred_batch_sizes: Vec<u32>,
        /// Longest queue delay, in microseconds.
        max_queue_delay_us: u64,
    },
}

/// A control input, which describes a request's position in its sequence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlSpec {
    /// Name of the tensor.
    pub name: String,
    /// Its meaning.
    pub kind: ControlKind,
    /// Its element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// Values for false and for true; none for a correlation id.
    pub false_true: Option<[f64; 2]>,
}

/// Meaning of a control input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlKind {
    /// The request begins its sequence.
    Start,
    /// The request ends its sequence.
    End,
    /// There is a request in this row.
    Ready,
    /// The correlation id.
    Corrid,
}

/// An implicit state: a tensor that the server keeps between the requests of a sequence.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateSpec {
    /// The model's input that receives it.
    pub input: String,
    /// The model's output that replaces it.
    pub output: String,
    /// Its element type.
    #[serde(deserialize_with = "datatype")]
    pub datatype: Datatype,
    /// Its sizes without the batch dimension; -1 stands for any.
    pub dims: Vec<i64>,
    /// Its sizes when a sequence begins.
    pub initial_dims: Vec<i64>,
    /// Absolute path of the file with its initial value; none for zeros.
    pub initial_file: Option<String>,
}
