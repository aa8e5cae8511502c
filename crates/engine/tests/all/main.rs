//! The integration tests of this crate, as one program: it links once.

mod common;

mod batch;
mod library;
mod onnx_loading;
mod onnxruntime;
mod streaming;
mod threads;
