//! Ensembles: a graph of steps that are joined by tensors, and one request's way through it.
//!
//! A tensor is a number here and its value is opaque. [`Graph`] is what is known when the ensemble is loaded;
//! [`EnsembleRun`] is one request: it is told which step has responded with what, and says which steps can be called
//! now, with which values, and what the caller is to be given.

mod graph;
mod plan;
mod run;

pub use graph::{Graph, GraphError, StepShape};
pub use run::{Action, EnsembleRun};
