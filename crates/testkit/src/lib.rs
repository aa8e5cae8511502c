//! What the tests of several crates share: files of the repository, damaged inputs, fuzzers, the memory that work
//! takes, a stub of a GPU's driver, and tests that need a process of their own. A development dependency only, which
//! knows none of the product's crates.

#![allow(clippy::disallowed_methods, reason = "tests read files, and the environment that the runner sets")]

pub mod corpus;
pub mod fuzz;
pub mod gpu;
mod isolation;
pub mod memory;
pub mod mutation;

use std::path::{Path, PathBuf};

pub use isolation::is_in_own_process;

/// The root of the repository.
pub fn repository_root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The model file of a recorded repository's model.
pub fn golden_model(name: &str) -> PathBuf {
    repository_root().join("tests/golden/models/basic").join(name).join("1/model.onnx")
}

/// An ONNX model made for tests.
pub fn onnx_vector(name: &str) -> PathBuf {
    repository_root().join("tests/vectors/onnx").join(format!("{name}.onnx"))
}

/// The ONNX Runtime library of the environment.
///
/// # Panics
///
/// If the environment names none.
pub fn onnxruntime_library() -> PathBuf {
    let path = std::env::var_os("ALIPES_ONNXRUNTIME_LIBRARY");
    path.expect("ALIPES_ONNXRUNTIME_LIBRARY names the libonnxruntime.so of an installed wheel: use `make test-rust`")
        .into()
}
