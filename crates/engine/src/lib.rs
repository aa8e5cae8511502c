//! What runs: batches gathered into one input and split into answers again, and the native engines that execute them.
//!
//! This crate knows neither network nor queue. Requests' bytes come in as slices; outputs leave as slices.

pub mod batch;
pub mod engine;
pub mod onnxruntime;
pub mod streaming;

pub use engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
