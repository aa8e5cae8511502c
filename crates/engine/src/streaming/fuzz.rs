//! A fuzzer of streaming models' states that clients bring.

use alipes_protocol::Datatype;
use alipes_testkit::fuzz::{Choices, Fuzzer};
use alipes_testkit::memory::{CountedAllocator, peak};

use super::{Averager, AveragerShape, Snapshotter, SnapshotterShape, State, StreamingModel};

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Most bytes that reading holds beside the state and the text of an error.
const BYTES_BESIDE: usize = 4 << 10;

fn averager(datatype: Datatype, channels: usize) -> StreamingModel {
    let shape = AveragerShape { datatype, update: 3, updates: 4, batch: 2, channels, kernel: 15, unbiased: true };
    StreamingModel::Averager(Averager::new(shape).expect("a shape that fits"))
}

fn snapshotter(batch: usize, channels: Vec<usize>) -> StreamingModel {
    let shape = SnapshotterShape { datatype: Datatype::Fp32, stride: 2, snapshot: 8, batch, channels };
    StreamingModel::Snapshotter(Snapshotter::new(shape).expect("a shape that fits"))
}

/// Models by number, and the bytes of an update of each.
fn models() -> [(StreamingModel, usize); 5] {
    [
        (snapshotter(1, vec![2]), 2 * 2 * 4),
        (snapshotter(3, vec![0, 2]), 3 * 3 * 2 * 4),
        (averager(Datatype::Fp32, 0), 2 * 15 * 4),
        (averager(Datatype::Fp32, 2), 2 * 2 * 15 * 4),
        (averager(Datatype::Fp64, 1), 2 * 15 * 8),
    ]
}

#[test]
fn whatever_a_client_brings_a_stream_goes_on_from_it_or_it_is_refused() {
    let states = models().into_iter().enumerate().flat_map(|(number, (model, update_bytes))| {
        let (mut state, mut outputs) = (State::default(), Vec::new());
        let fresh = model.checkpoint(&state);
        model.run(&mut state, &vec![63; update_bytes], &mut outputs).expect("an update of the right length");
        [fresh, model.checkpoint(&state)].map(|bytes| Choices::seed(&bytes, &[number as u8]))
    });
    let words = ["ALIPSEQ1", "snapshotter", "averager", "FP32", "FP64"];
    Fuzzer::new("checkpoint-streams", states).words(words).run(check);
}

fn check(input: &[u8]) {
    let (bytes, mut choices) = Choices::split(input, 1);
    let models = models();
    let (model, update_bytes) = &models[usize::from(choices.byte()) % models.len()];
    let (restored, held) = peak(|| model.restore(bytes));
    assert!(held <= BYTES_BESIDE + 2 * bytes.len(), "{held} bytes for {}", bytes.len());
    let mut state = match restored {
        Ok(state) => state,
        Err(error) => return assert!(!error.message.is_empty() && error.message.len() < 2_000, "{}", error.message),
    };
    assert_eq!(bytes.len(), model.checkpoint_bytes());
    assert_eq!(model.checkpoint(&state), bytes);
    let mut outputs = Vec::new();
    model.run(&mut state, &vec![0; *update_bytes], &mut outputs).expect("a stream goes on from a checkpoint");
    assert_eq!(outputs.iter().map(|output| output.data.len()).sum::<usize>(), model.output_bytes());
    assert_eq!(model.checkpoint(&state).len(), model.checkpoint_bytes());
}
