//! Ways of execution that the server chooses by what it measures, unless it is told which.

use serde::Deserialize;

/// Threads on which models of this process execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionThreads {
    /// Quick models on the network thread that took the request, others in the pool.
    #[default]
    Measured,
    /// Always on the network thread.
    Network,
    /// Always in the pool.
    Pool,
}

/// How the steps of an ensemble execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnsembleSteps {
    /// A batch goes through all steps at once where all models are quick.
    #[default]
    Measured,
    /// Each request goes step by step.
    Single,
}

/// Size of the shared memory between the server and a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerMemory {
    /// Enough that only the budget of requests in flight limits it.
    #[default]
    Full,
    /// Arenas that large tensors fill, and the shortest queue that keeps a worker at work.
    Small,
}

/// Which ways are taken. Only speed and memory differ between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Threads on which models of this process execute.
    pub execution_threads: ExecutionThreads,
    /// How the steps of an ensemble execute.
    pub ensemble_steps: EnsembleSteps,
    /// Size of the shared memory between the server and a worker.
    pub worker_memory: WorkerMemory,
}
