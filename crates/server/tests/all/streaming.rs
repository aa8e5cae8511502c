//! Streaming models under many threads: each update of a sequence is taken once, whichever thread brings it.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Instant;

use alipes_driver_streaming::Streaming;
use alipes_protocol::{CorrelationId, Datatype, InferError, InferRequest, SequenceInfo, Tensor};
use alipes_request::responder::Responder;
use alipes_runtime::model::ModelVersion;
use alipes_spec::{EngineSpec, ModelSpec};
use serde_json::json;

const THREADS: u64 = 8;
const SEQUENCES: u64 = 3;
const UPDATES: u64 = 300;
/// Every update of a sequence still stands in its last window.
const WINDOW: usize = (1 + THREADS * UPDATES) as usize;

fn model(max_sequences: usize) -> Arc<ModelVersion> {
    let spec = json!({
        "schema": 1, "name": "windows", "version": 1, "platform": "snapshotter", "max_batch_size": 0,
        "inputs": [{"name": "update", "datatype": "INT64", "dims": [1, 1, 1]}],
        "outputs": [{"name": "window", "datatype": "INT64", "dims": [1, 1, WINDOW]}],
        "scheduling": {"kind": "direct"}, "instances": ["i"],
        "engine": {"kind": "streaming", "max_sequences": max_sequences, "max_idle_us": 3_600_000_000_u64,
            "update": {"kind": "snapshotter", "stride": 1, "snapshot": WINDOW, "batch": 1, "channels": [1]}},
        "config_json": "{}", "config_proto": "", "metric_tags": {},
    });
    let spec: ModelSpec = serde_json::from_value(spec).unwrap();
    let EngineSpec::Streaming(engine) = &spec.engine else { panic!("it is one") };
    let streaming = Streaming::new(&spec, engine, &Weak::new()).unwrap();
    Arc::new(ModelVersion::new(spec, streaming).unwrap())
}

/// The window that answers an update.
fn ask(model: &Arc<ModelVersion>, sequence: u64, start: bool, end: bool, value: i64) -> Result<Vec<i64>, InferError> {
    let data = value.to_le_bytes().to_vec().into();
    let update =
        Tensor { name: "update".into(), datatype: Datatype::Int64, shape: [1, 1, 1].into_iter().collect(), data };
    let sequence = SequenceInfo { correlation_id: CorrelationId::Number(sequence), start, end };
    let request = InferRequest { inputs: vec![update], sequence, ..Default::default() };
    let answer =
        model.submit(request, Instant::now(), Responder::unary)?.blocking_recv().expect("every request is answered")?;
    Ok(answer.outputs[0].data.chunks_exact(8).map(|value| i64::from_le_bytes(value.try_into().unwrap())).collect())
}

#[test]
fn updates_of_many_threads_run_once_in_the_order_of_their_thread() {
    let model = model(10);
    (1..=SEQUENCES).for_each(|sequence| drop(ask(&model, sequence, true, false, 0).unwrap()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let model = &model;
            scope.spawn(move || {
                for update in 1..=UPDATES {
                    for sequence in 1..=SEQUENCES {
                        let value = i64::try_from(thread * UPDATES + update).unwrap();
                        // Its own update is the newest of the window that answers it.
                        assert_eq!(ask(model, sequence, false, false, value).unwrap().last(), Some(&value));
                    }
                }
            });
        }
    });
    for sequence in 1..=SEQUENCES {
        let window = ask(&model, sequence, false, true, -1).unwrap();
        let seen = &window[..WINDOW - 1];
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "an update was taken twice");
        for thread in 0..THREADS {
            let of_thread = (thread * UPDATES + 1)..=((thread + 1) * UPDATES);
            let mine: Vec<i64> = seen.iter().copied().filter(|&value| of_thread.contains(&(value as u64))).collect();
            assert_eq!(mine.len() as u64, UPDATES);
            assert!(mine.is_sorted());
        }
    }
    let states = model.driver.sequence_states().unwrap();
    assert_eq!((states.live(), model.waiting()), (0, 0));
    let statistics = model.statistics.snapshot();
    assert_eq!(statistics.execution_count, SEQUENCES * (2 + THREADS * UPDATES));
    assert_eq!(statistics.success.count, statistics.execution_count);
}

#[test]
fn a_sequence_beyond_the_limit_is_refused_and_leaves_no_trace() {
    let model = model(2);
    ask(&model, 1, true, false, 1).unwrap();
    ask(&model, 2, true, false, 1).unwrap();
    let refused = ask(&model, 3, true, false, 1).unwrap_err();
    assert!(refused.message.starts_with("model 'windows' has 2 live sequences and takes no more"));
    ask(&model, 1, false, true, 2).unwrap();
    assert!(ask(&model, 3, true, false, 1).is_ok());
}
