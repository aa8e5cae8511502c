//! ONNX Runtime, through the library of the installed `onnxruntime` wheel.
//!
//! Sessions are built with the `ort` crate. Executions call the library's function table, in `value` and `session`: the
//! crate's own values know each element type as a Rust type and strings as UTF-8 without zero bytes, where requests
//! carry bytes of whatever type the model says.
//!
//! Measured with `examples/run_overhead.rs` (2 cores, ONNX Runtime 1.31, November 2026): one row of an MLP
//! 64-256-128-64-1 takes 5.17 microseconds by the bare table, 5.71 from gather to split, 5.83 by the crate's run alone.

mod check;
mod graph;
mod library;
mod model;
mod options;
mod probe;
mod provider;
mod session;
mod signature;
mod value;

pub use check::{Declared, DeclaredPort, check_against};
pub use model::OnnxModel;
pub use options::{ExecutionMode, GraphOptimization, SessionOptions};
pub use probe::OnnxProbe;
pub use provider::{Provider, ProviderKind, open_libraries};
pub use session::OnnxSession;
pub use signature::{Port, Signature};
