//! ONNX Runtime, through the library of the installed `onnxruntime` wheel.
//!
//! Sessions are built with the `ort` crate. Executions call the library's function table directly, in `value` and
//! `session`: a small model takes a few microseconds, as much as the convenience around a run would add.

mod check;
mod library;
mod model;
mod options;
mod session;
mod signature;
mod value;

pub use check::{Declared, DeclaredPort, check_against};
pub use model::{OnnxModel, describe};
pub use options::{ExecutionMode, GraphOptimization, SessionOptions};
pub use session::OnnxSession;
pub use signature::{Port, Signature};
