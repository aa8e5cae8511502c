//! Libraries that cannot be used: each an error that says what to install. None of them is ever opened for good, so
//! that they can be tested in one process.

use std::path::{Path, PathBuf};

use alipes_engine::onnxruntime::OnnxProbe;
use alipes_protocol::Code;

fn refused(library: &Path) -> String {
    let error = OnnxProbe::open(library, Path::new("/no/such/model.onnx")).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    assert!(error.message.ends_with("or newer with: pip install onnxruntime"), "{error}");
    error.message
}

#[test]
fn a_missing_library_says_what_to_install() {
    alipes_testkit::own_process!();
    assert!(refused(Path::new("/no/such/libonnxruntime.so.1")).contains("libonnxruntime.so.1 does not exist"));
}

#[test]
fn a_relative_path_is_refused() {
    alipes_testkit::own_process!();
    assert!(refused(Path::new("libonnxruntime.so")).contains("is not an absolute path"));
}

#[test]
fn a_file_that_is_no_library_is_refused() {
    alipes_testkit::own_process!();
    let text = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    assert!(refused(text).contains("does not load: "));
}

#[test]
fn a_library_of_another_kind_is_refused() {
    alipes_testkit::own_process!();
    assert!(refused(&c_library()).contains("is not ONNX Runtime"));
}

/// A shared library that every process has: the C library of this one.
fn c_library() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut files = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    files.find(|file| file.contains("/libc.so") || file.contains("/ld-musl")).unwrap().into()
}
