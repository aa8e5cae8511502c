//! Each refusal with its text, and what a fitting request becomes.

use alipes_protocol::{RequestedOutput, TritonRelease, call};
use alipes_spec::ModelSpec;

use super::*;

fn port(name: &str, datatype: &str, dims: &[i64], more: &str) -> String {
    format!(r#"{{"name":"{name}","datatype":"{datatype}","dims":{dims:?}{more}}}"#)
}

fn model(max_batch_size: u32, inputs: &[String]) -> ModelSpec {
    let document = format!(
        r#"{{"schema":1,"name":"m","version":1,"platform":"p","max_batch_size":{max_batch_size},
        "inputs":[{}],"outputs":[{},{}],"scheduling":{{"kind":"direct"}},"instances":["m_0"],
        "engine":{{"kind":"onnxruntime","library":"","model_path":"","intra_op_threads":1,"inter_op_threads":1,
        "execution_mode":"sequential","graph_optimization":"all","session_config":{{}},"memory_arena":true}},
        "config_json":"","config_proto":"","metric_tags":{{}}}}"#,
        inputs.join(","),
        port("Y", "INT32", &[4], ""),
        port("Z", "INT32", &[4], "")
    );
    serde_json::from_str(&document).unwrap()
}

fn two_inputs() -> ModelSpec {
    model(8, &[port("A", "INT32", &[4], ""), port("B", "INT32", &[4], "")])
}

fn tensor(name: &str, shape: &[i64]) -> Tensor {
    let elements = shape::element_count(shape).unwrap_or(0);
    Tensor {
        name: name.into(),
        datatype: Datatype::Int32,
        shape: shape.iter().copied().collect(),
        data: Bytes::from(vec![0; elements * 4]),
    }
}

fn request(inputs: Vec<Tensor>) -> InferRequest {
    InferRequest { inputs, ..InferRequest::default() }
}

fn fit(model: &ModelSpec, request: InferRequest) -> Result<Checked, InferError> {
    check_request(model, request, &Budget::new(u64::MAX))
}

fn refusal(model: &ModelSpec, inputs: Vec<Tensor>) -> String {
    fit(model, request(inputs)).unwrap_err().message
}

#[test]
fn a_fitting_request_keeps_the_models_order_and_counts_its_rows() {
    let checked = fit(&two_inputs(), request(vec![tensor("B", &[3, 4]), tensor("A", &[3, 4])])).unwrap();
    assert_eq!(checked.inputs.iter().map(|input| input.index).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((checked.rows, &checked.outputs[..]), (3, &[0, 1][..]));
}

#[test]
fn outputs_come_in_the_models_order_and_once() {
    let mut repeated = request(vec![tensor("A", &[1, 4]), tensor("B", &[1, 4])]);
    repeated.outputs = ["Z", "Y", "Z"].map(|name| RequestedOutput { name: name.into(), ..Default::default() }).into();
    assert_eq!(fit(&two_inputs(), repeated.clone()).unwrap().outputs[..], [0, 1]);
    repeated.outputs[0].name = "NONE".into();
    let refused = fit(&two_inputs(), repeated).unwrap_err();
    assert_eq!(refused.message, "unexpected inference output 'NONE' for model 'm'");
}

#[test]
fn a_wrong_shape_names_what_was_expected_and_got() {
    let text = refusal(&two_inputs(), vec![tensor("A", &[1, 5]), tensor("B", &[1, 4])]);
    assert!(text.starts_with("[request id: <id_unknown>] unexpected shape for input 'A' for model 'm'. Expected [-1,4], got [1,5]. NOTE: "), "{text}");
    let text = refusal(&model(0, &[port("A", "INT32", &[2, 3], "")]), vec![tensor("A", &[3, 2])]);
    assert_eq!(
        text,
        "[request id: <id_unknown>] unexpected shape for input 'A' for model 'm'. Expected [2,3], got [3,2]. "
    );
}

#[test]
fn the_requests_id_stands_in_front() {
    let named = InferRequest { id: "seven".into(), ..request(vec![tensor("A", &[9, 4]), tensor("B", &[9, 4])]) };
    let refused = fit(&two_inputs(), named).unwrap_err();
    assert_eq!(refused.message, "[request id: seven] inference request batch-size must be <= 8 for 'm'");
}

#[test]
fn an_input_may_occur_once() {
    let text = refusal(&two_inputs(), vec![tensor("B", &[1, 4]), tensor("A", &[1, 4]), tensor("B", &[1, 4])]);
    assert_eq!(text, "[request id: <id_unknown>] input 'B' already exists in request");
    let text = refusal(&two_inputs(), ["B", "A", "B", "A"].map(|name| tensor(name, &[1, 4])).to_vec());
    assert_eq!(text, "[request id: <id_unknown>] input 'B' already exists in request", "the first that comes again");
}

#[test]
fn rows_must_agree() {
    let text = refusal(&two_inputs(), vec![tensor("A", &[2, 4]), tensor("B", &[1, 4])]);
    assert_eq!(text, "[request id: <id_unknown>] input 'A' batch size does not match other inputs for 'm'");
    let text = refusal(&two_inputs(), vec![tensor("A", &[]), tensor("B", &[1, 4])]);
    assert_eq!(text, "[request id: <id_unknown>] input 'A' has no shape but model requires batch dimension for 'm'");
}

#[test]
fn a_negative_size_is_refused() {
    let model = model(0, &[port("A", "INT32", &[-1], "")]);
    let text = refusal(&model, vec![tensor("A", &[-1])]);
    assert!(text.contains("All input dimensions should be specified for input 'A' for model 'm', got [-1]"), "{text}");
}

#[test]
fn an_absurd_shape_is_refused_without_being_believed() {
    let model = model(0, &[port("A", "INT32", &[-1, -1], "")]);
    let text = refusal(&model, vec![tensor("A", &[1 << 40, 1 << 40])]);
    assert!(text.contains("causes total element count to exceed maximum size of 9223372036854775807"), "{text}");
    let absurd = Tensor { shape: [1 << 31, 1 << 31].into_iter().collect(), ..tensor("A", &[0, 0]) };
    let text = refusal(&model, vec![absurd]);
    assert!(text.contains("byte size"), "{text}");
}

#[test]
fn bytes_must_fit_the_shape() {
    let short = Tensor { data: Bytes::from_static(&[0; 12]), ..tensor("A", &[1, 4]) };
    let text = refusal(&two_inputs(), vec![short, tensor("B", &[1, 4])]);
    assert_eq!(
        text,
        "[request id: <id_unknown>] input byte size mismatch for input 'A' for model 'm'. Expected 16, got 12"
    );
}

#[test]
fn the_number_of_inputs_is_checked_before_their_names() {
    let text = refusal(&two_inputs(), vec![tensor("A", &[1, 4])]);
    assert!(text.contains(
        "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['A'], but missing required input(s) ['B']."
    ));
    let text = refusal(&two_inputs(), vec![tensor("A", &[1, 4]), tensor("OTHER", &[1, 4])]);
    assert_eq!(text, "unexpected inference input 'OTHER' for model 'm'");
}

#[test]
fn a_wrong_name_is_answered_with_the_right_ones() {
    let model = two_inputs();
    let refused = |request| fit(&model, request).unwrap_err();
    let input = refused(request(vec![tensor("A", &[1, 4]), tensor("OTHER", &[1, 4])]));
    let explained = |error: &InferError, release| explain_refusal(&model, release, error.clone()).message;
    let later = TritonRelease::V2_73;
    assert_eq!(explained(&input, later), "unexpected inference input 'OTHER' for model 'm'; it takes 'A', 'B'");
    assert_eq!(explained(&input, TritonRelease::V2_51), input.message);
    let unknown = RequestedOutput { name: "NONE".into(), ..RequestedOutput::default() };
    let output = refused(InferRequest { outputs: vec![unknown], ..request(vec![tensor("A", &[1, 4])]) });
    assert!(explained(&output, later).starts_with("unexpected inference output 'NONE' for model 'm'; it gives '"));
    // Analyzers and PyTriton's clients show this one, so it stays as Triton has it.
    let large = refused(request(vec![tensor("A", &[9, 4]), tensor("B", &[9, 4])]));
    assert_eq!(explained(&large, later), large.message);
    let by_the_model = input.clone().at(Origin::Model);
    assert_eq!(explained(&by_the_model, later), input.message);
}

#[test]
fn an_optional_input_may_be_left_out_and_changes_the_batch() {
    let model = model(4, &[port("A", "INT32", &[4], ""), port("B", "INT32", &[4], r#","optional":true"#)]);
    let with = fit(&model, request(vec![tensor("A", &[1, 4]), tensor("B", &[1, 4])])).unwrap();
    let without = fit(&model, request(vec![tensor("A", &[1, 4])])).unwrap();
    assert_ne!(with.key, without.key);
}

#[test]
fn only_requests_of_one_shape_share_a_batch() {
    let model = model(4, &[port("A", "INT32", &[-1], "")]);
    let key = |shape: &[i64]| fit(&model, request(vec![tensor("A", shape)])).unwrap().key;
    assert_eq!(key(&[1, 3]), key(&[2, 3]));
    assert_ne!(key(&[1, 3]), key(&[1, 5]));
}

#[test]
fn a_reshape_gives_the_backend_its_own_shape() {
    let model = model(4, &[port("A", "INT32", &[-1, 4], r#","reshape":[2,-1,2]"#)]);
    let checked = fit(&model, request(vec![tensor("A", &[3, 5, 4])])).unwrap();
    assert_eq!(checked.inputs[0].shape[..], [3, 2, 5, 2]);
}

#[test]
fn a_raw_body_takes_name_shape_and_datatype_from_the_model() {
    let model = model(4, &[port("A", "INT32", &[2, -1], "")]);
    let raw = |bytes: usize| InferRequest {
        raw: true,
        ..request(vec![Tensor { data: Bytes::from(vec![0; bytes]), ..tensor("", &[]) }])
    };
    assert_eq!(fit(&model, raw(24)).unwrap().inputs[0].shape[..], [1, 2, 3]);
    let text = fit(&model, raw(25)).unwrap_err().message;
    assert!(
        text.ends_with("input byte size mismatch for input 'raw_input' for model 'm'. Expected 24, got 25"),
        "{text}"
    );
}

#[test]
fn strings_are_counted() {
    let model = model(0, &[port("T", "BYTES", &[2], "")]);
    let text = |data: &'static [u8]| {
        let tensor = Tensor { datatype: Datatype::Bytes, data: Bytes::from_static(data), ..tensor("T", &[2]) };
        refusal(&model, vec![tensor])
    };
    assert!(text(&[0; 4]).ends_with("expected 2 string elements for inference input 'T' for model 'm', got 1"));
    assert!(
        text(&[0; 16])
            .ends_with("unexpected number of string elements 3 for inference input 'T' for model 'm', expecting 2")
    );
    assert_eq!(
        text(&[9, 0, 0, 0, 1]),
        "incomplete string data for inference input 'T', expecting string of length 9 but only 1 bytes available"
    );
}

#[test]
fn a_call_is_one_row_behind_the_declared_tensors() {
    let mut model = two_inputs();
    let call = || InferRequest {
        call: true,
        id: "7".into(),
        parameters: vec![("alipes.method".to_owned(), Parameter::String("POST".to_owned()))],
        ..request(vec![call::input(call::element(b"{}"))])
    };
    let refused = fit(&model, call()).unwrap_err();
    assert_eq!((refused.code, &*refused.message), (Code::Unsupported, "model 'm' has no endpoint for plain requests"));
    model.endpoint = serde_json::from_str(r#"{"methods":["POST"]}"#).unwrap();
    assert_eq!(fit(&model, call()).unwrap_err().code, Code::Unsupported, "another engine than a worker");
    model.engine = serde_json::from_str(
        r#"{"kind":"worker","command":[],"environment":{},"setup":{},"start_timeout_s":0,"execute_timeout_s":0,
        "stop_timeout_s":0,"max_memory_bytes":0,"max_leased_bytes":0}"#,
    )
    .unwrap();
    let checked = fit(&model, call()).unwrap();
    assert!(checked.is_call);
    assert_eq!((checked.rows, checked.inputs[0].index, &checked.outputs[..]), (1, 2, &[2][..]));
    assert_eq!((checked.terms.id.as_str(), checked.context.unwrap().parameters.len()), ("7", 1));
}

#[test]
fn the_only_input_of_a_bare_model_takes_any_name_and_any_numbers() {
    let mut bare = model(8, &[port("A", "FP64", &[4], "")]);
    let mut ints = tensor("anything", &[1, 4]);
    ints.data = Bytes::from([1i32, -2, 3, 4].map(i32::to_le_bytes).concat());
    assert_eq!(refusal(&bare, vec![ints.clone()]), "unexpected inference input 'anything' for model 'm'");
    bare.is_bare = true;
    let checked = fit(&bare, request(vec![ints.clone()])).unwrap();
    assert_eq!(checked.inputs[0].data, [1f64, -2.0, 3.0, 4.0].map(f64::to_le_bytes).concat());
    ints.data.truncate(12);
    assert!(refusal(&bare, vec![ints]).contains("Expected 16, got 12"));
    let text = Tensor { datatype: Datatype::Bytes, ..tensor("A", &[1, 4]) };
    assert!(refusal(&bare, vec![text]).contains("data-type is 'BYTES', but model 'm' expects 'FP64'"));
    let wide = Tensor { datatype: Datatype::Fp64, data: Bytes::from(vec![0; 40]), ..tensor("x", &[1, 5]) };
    assert!(refusal(&bare, vec![wide]).contains("unexpected shape for input 'A'"));
    assert!(refusal(&bare, vec![tensor("A", &[1, 4]), tensor("B", &[1, 4])]).contains("expected 1 inputs"));
    let mut named = two_inputs();
    named.is_bare = true;
    assert!(
        refusal(&named, vec![tensor("A", &[1, 4]), tensor("C", &[1, 4])]).contains("unexpected inference input 'C'")
    );
    let wide = Tensor { datatype: Datatype::Int64, data: Bytes::from(vec![0; 32]), ..tensor("B", &[1, 4]) };
    let checked = fit(&named, request(vec![tensor("A", &[1, 4]), wide])).unwrap();
    assert_eq!(checked.inputs.iter().map(|input| input.data.len()).collect::<Vec<_>>(), [16, 16]);
}

#[test]
fn conversions_for_a_bare_model_are_charged_and_refused_over_the_limit() {
    let mut bare = model(0, &[port("A", "FP64", &[-1], "")]);
    bare.is_bare = true;
    let sent = |elements: i64| {
        let (shape, data) = ([elements].into_iter().collect(), Bytes::from(vec![1; elements as usize]));
        request(vec![Tensor { name: "A".into(), datatype: Datatype::Uint8, shape, data }])
    };
    let budget = Budget::new(1 << 20);
    let refused = check_request(&bare, sent(150_000), &budget).unwrap_err();
    assert_eq!(refused.code, Code::Overloaded);
    assert!(
        refused.message.starts_with("an input in the model's datatype of 1200000 bytes does not fit beside"),
        "{}",
        refused.message
    );
    assert_eq!(budget.used(), 0);
    let first = check_request(&bare, sent(100_000), &budget).unwrap();
    assert_eq!((first.inputs[0].data.len(), budget.used()), (800_000, 800_000));
    assert_eq!(check_request(&bare, sent(50_000), &budget).unwrap_err().code, Code::Overloaded, "beside the first");
    drop(first);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_number_that_does_not_fit_is_refused_by_its_place() {
    let mut bare = model(0, &[port("A", "INT8", &[2], "")]);
    bare.is_bare = true;
    let mut ints = tensor("x", &[2]);
    ints.data = Bytes::from([1i32, 300].map(i32::to_le_bytes).concat());
    let text = refusal(&bare, vec![ints]);
    assert!(text.ends_with("input 'A' of model 'm' takes INT8, and element 1 is 300: send values that fit"), "{text}");
}

#[test]
fn a_column_of_a_bare_model_may_lack_its_axis() {
    let mut bare = model(8, &[port("A", "INT32", &[1], "")]);
    assert!(refusal(&bare, vec![tensor("A", &[3])]).contains("unexpected shape"));
    bare.is_bare = true;
    let checked = fit(&bare, request(vec![tensor("A", &[3])])).unwrap();
    assert_eq!((checked.rows, &checked.inputs[0].shape[..]), (3, &[3, 1][..]));
}
