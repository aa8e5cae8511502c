//! The integration tests of this crate, as one program: it links once.

#![allow(clippy::disallowed_methods, reason = "tests may wait and read files")]

mod common;

mod batch;
mod library;
mod onnx_loading;
mod onnxruntime;
mod streaming;
mod threads;
