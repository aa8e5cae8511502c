//! Loading: what a model says of itself, and each way in which it may not load.

use std::path::Path;

use crate::common::{golden, library, load, load_with, vector};
use alipes_engine::EngineError;
use alipes_engine::onnxruntime::{OnnxModel, OnnxProbe, SessionOptions, Signature};
use alipes_protocol::{Code, Datatype, shape};

const FP32: Datatype = Datatype::Fp32;

/// What the model at `path` takes and gives.
fn describe(library: &Path, path: &Path) -> Result<Signature, EngineError> {
    OnnxProbe::open(library, path).map(|probe| probe.signature().clone())
}

#[test]
fn a_model_describes_its_inputs_and_outputs() {
    let signature = describe(&library(), &golden("vardim")).unwrap();
    let text = |ports: &[alipes_engine::onnxruntime::Port]| -> Vec<String> {
        ports.iter().map(|port| format!("{} {} {}", port.name, port.datatype, shape::text(&port.shape))).collect()
    };
    assert_eq!(text(&signature.inputs), ["X FP32 [-1,-1]"]);
    assert_eq!(text(&signature.outputs), ["DOUBLE FP32 [-1,-1]", "TOTAL FP32 [-1,1]"]);
    let strings = describe(&library(), &golden("strings")).unwrap();
    assert_eq!(text(&strings.inputs), ["TEXT BYTES [-1,-1]"]);
}

#[test]
fn a_missing_model_file_is_named() {
    let error = describe(&library(), Path::new("/no/such/model.onnx")).unwrap_err();
    assert_eq!((error.code, &*error.message), (Code::Internal, "failed to stat file /no/such/model.onnx"));
}

#[test]
fn a_file_that_is_no_model_gives_the_librarys_text() {
    let error = describe(&library(), Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).unwrap_err();
    assert_eq!(error.code, Code::Internal);
    assert!(
        error.message.starts_with("onnx runtime error 7: ") && error.message.contains("Protobuf parsing failed"),
        "{error}"
    );
}

#[test]
fn what_the_protocol_has_no_words_for_is_named() {
    let error = describe(&library(), &vector("sequence")).unwrap_err();
    assert_eq!(error.code, Code::Unsupported);
    let text = "unsupported value type sequence for output 'Y', for only tensors are served: convert the model with \
                options={'zipmap': False} (skl2onnx, onnxmltools), or remove its node ZipMap (CatBoost)";
    assert_eq!(error.message, text);
    let error = describe(&library(), &vector("float8")).unwrap_err();
    assert_eq!(error.message, "unsupported element type Float8E4M3FN for input 'X'");
}

#[test]
fn a_model_that_is_not_as_declared_does_not_load() {
    let error = load(&golden("mlp"), 16, &[("x", FP32, &[7])], &[("y", FP32, &[4])]).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(
        error.message.starts_with("model 'm', tensor 'x': the model expects 2 dimensions (shape [-1,8])"),
        "{error}"
    );
}

#[test]
fn a_session_entry_that_the_library_refuses_is_its_error() {
    let entry = ("session.load_model_format".to_owned(), "ORT".to_owned());
    let options = SessionOptions { session_config: vec![entry], ..SessionOptions::default() };
    let error = load_with(options, &golden("mlp"), 16, &[("x", FP32, &[8])], &[("y", FP32, &[4])]).unwrap_err();
    assert!(error.message.starts_with("onnx runtime error "), "{error}");
}

#[test]
fn another_library_in_the_same_process_is_refused() {
    let first = library();
    OnnxModel::open(&first, &golden("mlp"), SessionOptions::default()).unwrap();
    let error = OnnxModel::open(Path::new("/other/lib.so"), &golden("mlp"), SessionOptions::default()).unwrap_err();
    assert_eq!(error.code, Code::Unavailable);
    let expected = format!("this process already runs ONNX Runtime from {}", first.display());
    assert!(error.message.starts_with(&expected) && error.message.ends_with("/other/lib.so"), "{error}");
}
