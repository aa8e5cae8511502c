//! Snapshotter and averager against what is said of them: worked examples, and models of a few lines.

use alipes_engine::OutputTensor;
use alipes_engine::streaming::{Averager, AveragerShape, Snapshotter, SnapshotterShape, State, StreamingModel};
use alipes_protocol::Datatype;
use proptest::collection::vec;
use proptest::prelude::*;

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(output: &OutputTensor) -> Vec<f32> {
    output.data.chunks_exact(4).map(|number| f32::from_le_bytes(number.try_into().unwrap())).collect()
}

fn snapshotter(stride: usize, snapshot: usize, batch: usize, channels: &[usize]) -> StreamingModel {
    let shape = SnapshotterShape { datatype: Datatype::Fp32, stride, snapshot, batch, channels: channels.to_vec() };
    StreamingModel::Snapshotter(Snapshotter::new(shape).unwrap())
}

fn averager(update: usize, updates: usize, batch: usize, channels: usize, kernel: usize) -> StreamingModel {
    let shape = AveragerShape { datatype: Datatype::Fp32, update, updates, batch, channels, kernel, unbiased: false };
    StreamingModel::Averager(Averager::new(shape).unwrap())
}

/// All outputs of each update of one sequence.
fn play(model: &StreamingModel, updates: &[Vec<f32>]) -> Vec<Vec<Vec<f32>>> {
    let mut state = State::default();
    let mut one = |update: &Vec<f32>| {
        let mut outputs = Vec::new();
        model.run(&mut state, &bytes(update), &mut outputs).unwrap();
        outputs.iter().map(numbers).collect()
    };
    updates.iter().map(&mut one).collect()
}

/// The only output of each update.
fn play_one(model: &StreamingModel, updates: &[Vec<f32>]) -> Vec<Vec<f32>> {
    play(model, updates).into_iter().map(|mut outputs| outputs.remove(0)).collect()
}

#[test]
fn a_window_ends_with_the_newest_samples_and_begins_with_zeros() {
    let updates = [vec![1., 2.], vec![3., 4.], vec![5., 6.]];
    let windows = [vec![0., 0., 1., 2.], vec![1., 2., 3., 4.], vec![3., 4., 5., 6.]];
    assert_eq!(play_one(&snapshotter(2, 4, 1, &[1]), &updates), windows);
}

#[test]
fn an_update_of_two_strides_gives_two_windows() {
    let updates = [vec![1., 2., 3., 4.], vec![5., 6., 7., 8.], vec![9., 10., 11., 12.]];
    let windows = [
        vec![0., 0., 1., 2., 1., 2., 3., 4.],
        vec![3., 4., 5., 6., 5., 6., 7., 8.],
        vec![7., 8., 9., 10., 9., 10., 11., 12.],
    ];
    assert_eq!(play_one(&snapshotter(2, 4, 2, &[1]), &updates), windows);
}

#[test]
fn channels_of_one_update_are_dealt_out_to_the_outputs_in_their_order() {
    let model = snapshotter(1, 3, 1, &[2, 0]);
    let updates = [vec![1., 10., 100.], vec![2., 20., 200.], vec![3., 30., 300.]];
    assert_eq!(play(&model, &updates)[2], [vec![1., 2., 3., 10., 20., 30.], vec![100., 200., 300.]]);
    let (mut state, mut outputs) = (State::default(), Vec::new());
    model.run(&mut state, &bytes(&updates[0]), &mut outputs).unwrap();
    assert_eq!([&outputs[0].shape[..], &outputs[1].shape[..]], [&[1, 2, 3][..], &[1, 3][..]]);
}

#[test]
fn a_stride_may_be_as_long_as_a_window_or_longer() {
    let updates = [vec![1., 2., 3.], vec![4., 5., 6.]];
    assert_eq!(play_one(&snapshotter(3, 3, 1, &[1]), &updates), updates);
    assert_eq!(play_one(&snapshotter(3, 2, 1, &[1]), &updates), [vec![2., 3.], vec![5., 6.]]);
}

#[test]
fn each_sample_is_the_mean_of_the_predictions_that_covered_it() {
    let model = averager(1, 2, 1, 0, 3);
    let predictions = [vec![10., 20., 30.], vec![40., 50., 60.], vec![70., 80., 90.]];
    assert_eq!(play_one(&model, &predictions), [vec![10.], vec![40.], vec![70.]]);
}

#[test]
fn predictions_of_one_update_are_added_one_after_the_other() {
    let model = averager(1, 3, 2, 0, 3);
    let predictions = [vec![3., 6., 9., 12., 15., 18.], vec![21., 24., 27., 30., 33., 36.]];
    assert_eq!(play_one(&model, &predictions), [vec![1., 6.], vec![15., 24.]]);
}

#[test]
fn an_unbiased_averager_starts_with_the_mean_of_what_it_has() {
    let shape = AveragerShape {
        datatype: Datatype::Fp32,
        update: 1,
        updates: 4,
        batch: 2,
        channels: 0,
        kernel: 4,
        unbiased: true,
    };
    let model = StreamingModel::Averager(Averager::new(shape.clone()).unwrap());
    let constant = vec![vec![8.; 8]; 3];
    assert_eq!(play_one(&model, &constant), [[8., 8.], [8., 8.], [8., 8.]]);
    let biased = StreamingModel::Averager(Averager::new(AveragerShape { unbiased: false, ..shape }).unwrap());
    assert_eq!(play_one(&biased, &constant), [[2., 4.], [6., 8.], [8., 8.]]);
}

/// The model's answers where its state has gone through bytes after each update.
fn play_moved(model: &StreamingModel, updates: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let mut state = State::default();
    let answer = |update: &Vec<f32>| {
        let mut outputs = Vec::new();
        let checkpoint = model.checkpoint(&state);
        assert_eq!(checkpoint.len(), model.checkpoint_bytes());
        state = model.restore(&checkpoint).unwrap();
        model.run(&mut state, &bytes(update), &mut outputs).unwrap();
        numbers(&outputs[0])
    };
    updates.iter().map(answer).collect()
}

#[test]
fn a_state_of_another_model_is_refused() {
    let (windows, means) = (snapshotter(2, 4, 1, &[1]), averager(2, 2, 1, 0, 4));
    let state = windows.checkpoint(&State::default());
    let refusal = |model: &StreamingModel, bytes: &[u8]| model.restore(bytes).unwrap_err().message;
    assert_eq!(
        refusal(&means, &state),
        "the state is one of snapshotter FP32 [1, 4], expected averager FP32 [1, 4], means of 2 with updates of 2"
    );
    assert_eq!(
        refusal(&snapshotter(2, 8, 1, &[1]), &state),
        "the state is one of snapshotter FP32 [1, 4], expected snapshotter FP32 [1, 8]"
    );
    assert!(snapshotter(3, 4, 5, &[0]).restore(&state).is_ok(), "other strides make the same windows");
    assert_eq!(refusal(&windows, &state[..79]), "the state has 79 bytes, expected 80");
    assert_eq!(refusal(&windows, &[&state[..], &[0]].concat()), "the state has 81 bytes, expected 80");
    let none = "64 bytes that do not begin with ALIPSEQ1 are no state of a sequence";
    assert_eq!(refusal(&windows, &[0; 64]), none);
    assert!(windows.restore(b"").is_err());
    let mut seen_too_much = means.checkpoint(&State::default()).to_vec();
    seen_too_much[44] = 3;
    assert!(means.restore(&seen_too_much).is_err());
}

#[test]
fn a_mean_of_one_prediction_is_its_newest_part() {
    assert_eq!(play_one(&averager(2, 1, 1, 0, 3), &[vec![1., 2., 3.], vec![4., 5., 6.]]), [vec![2., 3.], vec![5., 6.]]);
}

#[test]
fn a_shape_that_cannot_be_is_refused() {
    let shape = |stride, snapshot, batch, channels: &[usize]| SnapshotterShape {
        datatype: Datatype::Fp32,
        stride,
        snapshot,
        batch,
        channels: channels.to_vec(),
    };
    for wrong in [shape(0, 4, 1, &[1]), shape(1, 0, 1, &[1]), shape(1, 4, 0, &[1]), shape(1, 4, 1, &[])] {
        assert!(Snapshotter::new(wrong).is_err());
    }
    for much in [shape(1, usize::MAX, 2, &[1]), shape(1 << 30, 4, 1, &[1]), shape(1, 4, 1, &[usize::MAX, 2])] {
        assert!(Snapshotter::new(much).unwrap_err().message.contains("too many"));
    }
    assert!(Snapshotter::new(SnapshotterShape { datatype: Datatype::Bytes, ..shape(1, 4, 1, &[1]) }).is_err());
    let mean = |datatype, updates, kernel| {
        Averager::new(AveragerShape { datatype, update: 2, updates, batch: 1, channels: 0, kernel, unbiased: false })
            .map(drop)
    };
    assert!(mean(Datatype::Fp32, 2, 3).unwrap_err().message.starts_with("Not enough data"));
    assert!(mean(Datatype::Int32, 1, 3).unwrap_err().message.contains("INT32"));
    assert!(mean(Datatype::Fp64, usize::MAX, 3).is_err());
    assert!(mean(Datatype::Fp64, 0, 3).is_err());
}

#[test]
fn an_update_of_another_length_is_refused_and_leaves_the_state_as_it_was() {
    for model in [snapshotter(2, 4, 1, &[1]), averager(1, 1, 1, 0, 2)] {
        let (mut state, mut outputs) = (State::default(), Vec::new());
        assert!(model.run(&mut state, &bytes(&[1.]), &mut outputs).is_err());
        model.run(&mut state, &bytes(&[1., 2.]), &mut outputs).unwrap();
        assert_eq!(outputs.len(), 1);
    }
}

/// Some updates of some length, numbers that add up exactly.
fn updates(length: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
    vec(vec((-64_i16..64).prop_map(f32::from), length), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_the_last_samples_of_zeros_and_all_that_came(
        (stride, snapshot, batch, channels, updates) in (1_usize..5, 1_usize..9, 1_usize..4, vec(0_usize..3, 1..3))
            .prop_flat_map(|(stride, snapshot, batch, channels)| {
                let all: usize = channels.iter().map(|&channels| channels.max(1)).sum();
                (Just(stride), Just(snapshot), Just(batch), Just(channels), updates(all * batch * stride))
            })
    ) {
        let model = snapshotter(stride, snapshot, batch, &channels);
        let answers = play(&model, &updates);
        let firsts: Vec<_> = answers.iter().map(|outputs| outputs[0].clone()).collect();
        prop_assert_eq!(play_moved(&model, &updates), firsts);
        let all: usize = channels.iter().map(|&channels| channels.max(1)).sum();
        let mut came = vec![vec![0.; snapshot]; all];
        for (update, outputs) in updates.iter().zip(answers) {
            let mut expected: Vec<Vec<f32>> = channels.iter().map(|_| Vec::new()).collect();
            for at in 0..batch {
                for (channel, came) in came.iter_mut().enumerate() {
                    came.extend(&update[channel * batch * stride + at * stride..][..stride]);
                }
                let mut first = 0;
                for (output, &channels) in expected.iter_mut().zip(&channels) {
                    for came in &came[first..first + channels.max(1)] {
                        output.extend(&came[came.len() - snapshot..]);
                    }
                    first += channels.max(1);
                }
            }
            prop_assert_eq!(outputs, expected);
        }
    }

    #[test]
    fn averages_are_sums_of_shares_in_the_order_in_which_they_came(
        (update, updates, batch, channels, more, kernels) in
            (1_usize..4, 1_usize..5, 1_usize..4, 0_usize..3, 0_usize..3).prop_flat_map(|(update, count, batch, channels, more)| {
                let length = batch * channels.max(1) * (update * count + more);
                (Just(update), Just(count), Just(batch), Just(channels), Just(more), updates(length))
            })
    ) {
        let kernel = update * updates + more;
        let model = averager(update, updates, batch, channels, kernel);
        let answers = play_one(&model, &kernels);
        prop_assert_eq!(&play_moved(&model, &kernels), &answers);
        let rows = channels.max(1);
        let mut sums = vec![vec![0_f32; update * (updates + batch * (kernels.len() + 1))]; rows];
        for (request, (kernels, answer)) in kernels.iter().zip(answers).enumerate() {
            for (at, kernel_of) in kernels.chunks_exact(rows * kernel).enumerate() {
                for (sums, samples) in sums.iter_mut().zip(kernel_of.chunks_exact(kernel)) {
                    for (sum, sample) in sums[(request * batch + at) * update..].iter_mut().zip(&samples[more..]) {
                        *sum += sample / updates as f32;
                    }
                }
            }
            let range = request * batch * update..(request + 1) * batch * update;
            let expected: Vec<f32> = sums.iter().flat_map(|sums| sums[range.clone()].iter().copied()).collect();
            prop_assert_eq!(answer, expected);
        }
    }
}
