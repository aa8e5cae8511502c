//! What an instance executes before it serves: samples that the configuration describes.
//!
//! The first executions of a model are often its slowest: memory is set up, kernels are chosen, files are read. A
//! sample takes that time before the first caller comes. It is executed like any batch and counted like one.

#![allow(clippy::disallowed_methods, reason = "files of samples are read while a model loads")]

use std::fs::File;
use std::io::Read;

use alipes_protocol::limits::{WARMUP_MAX_BATCH, WARMUP_MAX_COUNT, WARMUP_MAX_TENSOR_BYTES};
use alipes_protocol::{Code, CorrelationId, Datatype, InferError, InferRequest, SequenceInfo, Shape, Tensor, shape};
use alipes_request::budget::Budget;
use alipes_request::check::{Checked, check_request};
use alipes_request::responder::{Answer, Responder};
use alipes_request::visit::StateTensor;
use alipes_spec::log::VERBOSE;
use alipes_spec::{ModelSpec, SampleData, SampleInput, SampleSpec};
use alipes_stats::events::Event;

use super::{ModelVersion, Pending, PendingRequest};

/// One sample, ready to be executed.
pub struct Sample {
    name: String,
    /// How often it is executed.
    pub count: u32,
    /// Requests that are executed together.
    pub requests: u32,
    request: Checked,
}

impl Sample {
    /// One of its requests.
    pub fn pending(&self, number: u32, responder: Responder) -> Pending {
        let (mut checked, arrived) = (self.request.clone(), alipes_clock::now());
        if let Some(context) = &mut checked.context {
            // Where requests come in sequences, each is one of its own.
            context.slot_id.slot = number;
        }
        PendingRequest::alone(checked, arrived, responder)
    }

    /// Says in a verbose log that an instance executes it; the first time is number 0. Source: Triton's text.
    pub fn announce(&self, model: &ModelVersion, instance: &str, number: u32) {
        let Some(events) = model.events.as_ref().filter(|_| model.log.as_ref().is_some_and(|log| log.is_verbose()))
        else {
            return;
        };
        let (model, sample, iteration) = (&model.name, &self.name, number + 1);
        let text = format!(
            "model '{model}' instance {instance} is running warmup sample '{sample}' for iteration {iteration}"
        );
        events.push(Event::Notice { level: VERBOSE, text });
    }

    /// What the answers of one execution mean for the instance.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`, with the texts of all that are errors. Source: Triton's text.
    pub fn judge(&self, answers: impl IntoIterator<Item = Answer>) -> Result<(), InferError> {
        let errors: String =
            answers.into_iter().filter_map(Result::err).map(|error| format!("{}; ", error.message)).collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(InferError::invalid(format!("failed to run warmup sample '{}': {errors}", self.name)))
    }
}

/// The samples of a model.
///
/// # Errors
///
/// Files that cannot be read or are too short, what is beyond a limit, and what `check_request` refuses.
pub fn samples(spec: &ModelSpec) -> Result<Vec<Sample>, InferError> {
    spec.warmup.iter().map(|sample| one(spec, sample)).collect()
}

fn one(spec: &ModelSpec, sample: &SampleSpec) -> Result<Sample, InferError> {
    let SampleSpec { name, batch_size, count, .. } = sample;
    for (what, value, limit) in [("batch_size", *batch_size, WARMUP_MAX_BATCH), ("count", *count, WARMUP_MAX_COUNT)] {
        if value > limit {
            let text = format!("warmup sample '{name}' has {what} {value}, more than the limit of {limit}");
            return Err(InferError::invalid(text));
        }
    }
    let (further, own): (Vec<&SampleInput>, Vec<&SampleInput>) =
        sample.inputs.iter().partition(|input| further_dims(spec, &input.name).is_some());
    let inputs = own.into_iter().map(|input| tensor(spec, input)).collect::<Result<_, _>>()?;
    // Where requests come in sequences, a sample is the only one of its own.
    let sequence = SequenceInfo { correlation_id: CorrelationId::Number(1), start: true, end: true };
    let sequence = if spec.scheduling.sequences().is_some() { sequence } else { SequenceInfo::default() };
    let mut request =
        check_request(spec, InferRequest { inputs, sequence, ..Default::default() }, &Budget::new(u64::MAX))?;
    if let Some(context) = &mut request.context {
        context.overrides = further.into_iter().map(|input| overriding(spec, input)).collect::<Result<_, _>>()?;
    }
    // Triton runs a sample without a count once.
    Ok(Sample { name: name.clone(), count: (*count).max(1), requests: *batch_size, request })
}

/// Datatype and sizes of a row of an input that requests do not bring, if there is one of that name: a control or a
/// state. Triton's samples may bring it, and the model gets just that.
fn further_dims<'a>(spec: &'a ModelSpec, name: &str) -> Option<(Datatype, &'a [i64])> {
    let sequences = spec.scheduling.sequences()?;
    let control = sequences.controls.iter().find(|control| control.name == name);
    let state = || sequences.states.iter().find(|state| state.input == name);
    control
        .map(|control| (control.datatype, &[1][..]))
        .or_else(|| state().map(|state| (state.datatype, &state.dims[..])))
}

/// A control or a state of a sample, by name.
fn overriding(spec: &ModelSpec, input: &SampleInput) -> Result<(String, StateTensor), InferError> {
    let (datatype, dims) = further_dims(spec, &input.name).unwrap_or((input.datatype, &input.dims));
    let (name, model) = (&input.name, &spec.name);
    if datatype != input.datatype {
        return Err(InferError::invalid(format!(
            "inference input '{name}' data-type is '{}', but model '{model}' expects '{datatype}'",
            input.datatype
        )));
    }
    let fits = |(&size, &declared): (&i64, &i64)| declared < 0 || size == declared;
    if dims.len() != input.dims.len() || !input.dims.iter().zip(dims).all(fits) {
        let (expected, got) = (shape::text(dims), shape::text(&input.dims));
        let text = format!("unexpected shape for input '{name}' for model '{model}'. Expected {expected}, got {got}");
        return Err(InferError::invalid(text));
    }
    let Tensor { shape, data, .. } = tensor(spec, input)?;
    Ok((name.clone(), StateTensor { shape, data }))
}

fn tensor(spec: &ModelSpec, input: &SampleInput) -> Result<Tensor, InferError> {
    let batch = (spec.max_batch_size > 0).then_some(1);
    let shape: Shape = batch.into_iter().chain(input.dims.iter().copied()).collect();
    let elements = shape::element_count(&input.dims);
    // A string of the shortest kind is its length alone.
    let bytes = elements.and_then(|elements| elements.checked_mul(input.datatype.size().unwrap_or(4)));
    let Some(bytes) = bytes.filter(|&bytes| bytes <= WARMUP_MAX_TENSOR_BYTES) else {
        return Err(InferError::invalid(format!(
            "warmup setting for input '{}' asks for more than {WARMUP_MAX_TENSOR_BYTES} bytes with shape {}",
            input.name,
            shape::text(&input.dims)
        )));
    };
    let data = match &input.data {
        SampleData::Zero {} => vec![0; bytes],
        SampleData::Random {} => random(input.datatype, bytes),
        SampleData::File { path } => read(path, input.datatype, bytes)?,
    };
    Ok(Tensor { name: input.name.as_str().into(), datatype: input.datatype, shape, data: data.into() })
}

/// Numbers that look like data and are the same at each load: from 1 to 2 where they have a fraction, from 0 to 127
/// where they have none, so that few models take offence at an index or at what is no number.
fn random(datatype: Datatype, bytes: usize) -> Vec<u8> {
    let Some(size) = datatype.size() else { return vec![0; bytes] };
    let mut state = 0_u64;
    let mut data = Vec::with_capacity(bytes);
    while data.len() < bytes {
        let bits = next(&mut state);
        let value = match datatype {
            Datatype::Bool => bits & 1,
            Datatype::Fp16 => 0x3c00 | bits & 0x3ff,
            Datatype::Bf16 => 0x3f80 | bits & 0x7f,
            Datatype::Fp32 => 0x3f80_0000 | bits & 0x7f_ffff,
            Datatype::Fp64 => 0x3ff0 << 48 | bits & ((1 << 52) - 1),
            _ => bits & 0x7f,
        };
        data.extend_from_slice(&value.to_le_bytes()[..size]);
    }
    data
}

/// Source: splitmix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// The first bytes of a file; all of it where the elements are strings, whose lengths it holds.
fn read(path: &str, datatype: Datatype, bytes: usize) -> Result<Vec<u8>, InferError> {
    let strings = datatype.size().is_none();
    let most = if strings { WARMUP_MAX_TENSOR_BYTES } else { bytes };
    let failed = |error| InferError::new(Code::Internal, format!("failed to read file {path}: {error}"));
    let mut data = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(most as u64).read_to_end(&mut data).map_err(failed)?;
    if data.len() < bytes && !strings {
        return Err(InferError::invalid(format!(
            "[request id: <id_unknown>] warmup setting expects {bytes} bytes, but the data provided from {path}only has \
             {} bytes",
            data.len()
        )));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(warmup: serde_json::Value) -> ModelSpec {
        let spec = json!({
            "schema": 1, "name": "m", "version": 1, "platform": "test", "max_batch_size": 4,
            "inputs": [{"name": "X", "datatype": "FP32", "dims": [-1]}],
            "outputs": [{"name": "Y", "datatype": "FP32", "dims": [-1]}],
            "scheduling": {"kind": "direct"}, "instances": ["i"],
            "engine": {"kind": "ensemble", "steps": []},
            "config_json": "{}", "config_proto": "", "metric_tags": {}, "warmup": warmup,
        });
        serde_json::from_value(spec).unwrap()
    }

    fn sample(datatype: &str, dims: &[i64], data: serde_json::Value) -> serde_json::Value {
        let input = json!({"name": "X", "datatype": datatype, "dims": dims, "data": data});
        json!({"name": "s", "batch_size": 2, "count": 3, "inputs": [input]})
    }

    fn refused(warmup: serde_json::Value) -> String {
        samples(&spec(json!([warmup]))).err().expect("it is refused").message
    }

    #[test]
    fn a_sample_is_as_many_requests_of_one_row() {
        let made = samples(&spec(json!([sample("FP32", &[3], json!({"kind": "zero"}))]))).unwrap();
        assert_eq!((made[0].requests, made[0].count), (2, 3));
        let input = &made[0].request.inputs[0];
        assert_eq!((&input.shape[..], &input.data[..]), (&[1, 3][..], &[0; 12][..]));
    }

    #[test]
    fn random_numbers_are_ordinary_ones_and_the_same_at_each_load() {
        let floats = random(Datatype::Fp32, 4000);
        assert_eq!(floats, random(Datatype::Fp32, 4000));
        let values: Vec<f32> = floats.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        assert!(values.iter().all(|value| (1.0..2.0).contains(value)) && values[0] != values[1]);
        let doubles = random(Datatype::Fp64, 800);
        assert!(doubles.chunks(8).all(|eight| (1.0..2.0).contains(&f64::from_le_bytes(eight.try_into().unwrap()))));
        assert!(random(Datatype::Bool, 100).iter().all(|&byte| byte <= 1));
        let longs = random(Datatype::Int64, 800);
        assert!(longs.chunks(8).all(|eight| (0..128).contains(&i64::from_le_bytes(eight.try_into().unwrap()))));
        assert_eq!(random(Datatype::Bytes, 8), [0; 8]);
    }

    #[test]
    fn what_does_not_fit_the_model_is_refused_in_the_words_for_requests() {
        let text = refused(sample("INT32", &[3], json!({"kind": "zero"})));
        let expected =
            "[request id: <id_unknown>] inference input 'X' data-type is 'INT32', but model 'm' expects 'FP32'";
        assert_eq!(text, expected);
    }

    #[test]
    fn controls_and_states_of_a_sample_are_no_inputs_of_its_requests() {
        let mut spec = spec(json!([]));
        spec.scheduling = serde_json::from_value(json!({
            "kind": "sequence", "max_idle_us": 9, "iterative": false,
            "strategy": {"kind": "direct", "max_queue_delay_us": 0, "minimum_slot_utilization": 0.0},
            "controls": [{"name": "START", "kind": "start", "datatype": "INT32", "false_true": [0.0, 1.0]}],
            "states": [{"input": "OLD", "output": "NEW", "datatype": "FP32", "dims": [-1], "initial_dims": [1],
                        "initial_file": null}],
        }))
        .unwrap();
        let zeros = json!({"kind": "zero"});
        let input = |name: &str, datatype: &str, dims: &[i64]| json!({"name": name, "datatype": datatype, "dims": dims, "data": zeros});
        let mut made = |inputs: serde_json::Value| {
            let sample = json!([{"name": "s", "batch_size": 1, "count": 1, "inputs": inputs}]);
            spec.warmup = serde_json::from_value(sample).unwrap();
            samples(&spec).map(|mut samples| samples.remove(0).request).map_err(|error| error.message)
        };
        let x = input("X", "FP32", &[2]);
        let request = made(json!([x, input("OLD", "FP32", &[3]), input("START", "INT32", &[1])])).unwrap();
        let overrides = &request.context.unwrap().overrides;
        let sizes = |name: &str| overrides.iter().find(|(input, _)| input == name).map(|(_, tensor)| &tensor.shape[..]);
        assert_eq!((request.inputs.len(), sizes("OLD"), sizes("START")), (1, Some(&[1, 3][..]), Some(&[1, 1][..])));
        let text = made(json!([x, input("START", "INT32", &[2])])).unwrap_err();
        assert_eq!(text, "unexpected shape for input 'START' for model 'm'. Expected [1], got [2]");
        let text = made(json!([x, input("OLD", "FP64", &[3])])).unwrap_err();
        assert_eq!(text, "inference input 'OLD' data-type is 'FP64', but model 'm' expects 'FP32'");
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let text = refused(sample("FP32", &[3], json!({"kind": "file", "path": "/no/such/file"})));
        assert!(text.starts_with("failed to read file /no/such/file: "), "{text}");
    }

    #[test]
    fn limits_hold_at_their_values() {
        let zero = json!({"kind": "zero"});
        let most = i64::try_from(WARMUP_MAX_TENSOR_BYTES / 4).unwrap();
        let text = refused(sample("FP32", &[most + 1], zero.clone()));
        assert!(text.contains(&format!("more than {WARMUP_MAX_TENSOR_BYTES} bytes")), "{text}");
        let with = |key: &str, value: u32| {
            let mut sample = sample("FP32", &[1], zero.clone());
            sample[key] = value.into();
            sample
        };
        for (key, limit) in [("batch_size", WARMUP_MAX_BATCH), ("count", WARMUP_MAX_COUNT)] {
            assert!(samples(&spec(json!([with(key, limit)]))).is_ok());
            assert!(refused(with(key, limit + 1)).ends_with(&format!("more than the limit of {limit}")));
        }
    }
}
