//! KServe's InferenceGraph: its document, its conditions, and which step is called next.
//!
//! It calls nobody: the caller brings [`Services`], so that every decision can be tested without a socket. Source:
//! KServe's `cmd/router`, v0.20.0, whose statuses and bytes the answers have.

#![forbid(unsafe_code)]

mod condition;
mod destination;
mod graph;
mod json;
mod limits;
mod mapping;
mod propagation;
mod run;
mod spec;
mod text_body;

#[cfg(test)]
mod fuzz;

pub use condition::Condition;
pub use destination::{Destination, Url};
pub use graph::{Graph, GraphFault, Node, Step, Target};
pub use json::{is_valid, object_text, quoted};
pub use mapping::instances_of;
pub use propagation::Propagation;
pub use run::{Failure, NoJson, Reply, Services, run};
pub use spec::{GraphSpec, NodeSpec, RouterKind, StepSpec, TargetSpec};
pub use text_body::{first_holding, merged};
