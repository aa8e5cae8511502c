//! Sessions and threads: many sessions run at once, and a session of one thread starts none.

use std::thread;
use std::time::Duration;

use crate::common::{floats, golden, input, load_with, run};
use alipes_engine::onnxruntime::{OnnxSession, SessionOptions};
use alipes_protocol::Datatype;

const FP32: Datatype = Datatype::Fp32;

fn mlp(intra_op_threads: u32) -> OnnxSession {
    let options = SessionOptions { intra_op_threads, ..SessionOptions::default() };
    load_with(options, &golden("mlp"), 16, &[("x", FP32, &[8])], &[("y", FP32, &[4])]).unwrap()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// A thread that was joined is still listed until the system has put it away.
fn ended_down_to(expected: usize) -> bool {
    (0..60_000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        threads() == expected
    })
}

#[test]
fn parallel_sessions_start_their_own_threads_only() {
    alipes_testkit::own_process!();
    // From the first session on the library may have a thread of its own.
    drop(mlp(1));
    let before = threads();
    let mut alone = mlp(1);
    run(&mut alone, &[input(0, FP32, &[1, 8], &floats(&[0.5; 8]))], &[0]).unwrap();
    assert_eq!(threads(), before);
    let three = mlp(3);
    assert_eq!(threads(), before + 2);
    drop(three);
    assert!(ended_down_to(before));
    side_by_side(alone);
}

/// Each thread loads, runs and drops sessions of its own while the others run theirs; all agree on the answer.
fn side_by_side(mut alone: OnnxSession) {
    let row = floats(&[0.25; 8]);
    let answer =
        |session: &mut OnnxSession| run(session, &[input(0, FP32, &[1, 8], &row)], &[0]).unwrap()[0].data.clone();
    let expected = answer(&mut alone);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let mut session = mlp(1);
                    for _ in 0..200 {
                        assert_eq!(answer(&mut session), expected);
                    }
                }
            });
        }
    });
}
