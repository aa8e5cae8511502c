//! Ensembles: a graph of steps that are joined by tensors, and one request's way through it.
//!
//! A tensor is a number here and its value is opaque. [`Graph`] is what is known when the ensemble is loaded;
//! [`EnsembleRun`] is one request: it receives the responses of steps, and returns which steps can be called now, with
//! which values, and what the caller is to be given. [`StepOrder`] keeps the requests of a sequence in their order
//! where a step needs that.

mod graph;
mod plan;
mod run;
mod step_order;

pub use graph::{Graph, GraphError, StepShape};
pub use run::{Action, EnsembleRun};
pub use step_order::{StepOrder, Ticket};
