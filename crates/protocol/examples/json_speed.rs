//! Times the JSON codec alone: `cargo run --release -p alipes-protocol --example json_speed [-- FILTER]`.
//!
//! Prints, for each kind of request and response, the best and the median of many rounds on one core, in microseconds
//! and in nanoseconds per number. The best round is the codec; the rest is what else the machine did.

#![allow(clippy::disallowed_methods, reason = "figures are taken on the clock of the system")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use alipes_protocol::codec::json;
use alipes_protocol::limits::HTTP_MAX_INPUT_BYTES;
use alipes_protocol::{Datatype, InferResponse, NoRegions, Tensor};
use bytes::Bytes;

/// Values of a picture of 3x224x224.
const PICTURE: usize = 3 * 224 * 224;

fn main() {
    println!("{:<52} {:>12} {:>12} {:>10}", "", "best µs", "median µs", "ns/number");
    for (what, datatype, count, text) in requests() {
        let values: Vec<String> = Noise(7).take(count).map(text).collect();
        let body = request(datatype, &values);
        report(what, count, || {
            json::decode_request(&body, None, "m", HTTP_MAX_INPUT_BYTES, &mut NoRegions)
                .map(|request| request.inputs.len())
        });
    }
    let (body, length) = binary_request();
    report("picture FP32 in, binary behind a header", PICTURE, || {
        json::decode_request(&body, Some(length), "m", HTTP_MAX_INPUT_BYTES, &mut NoRegions)
            .map(|request| request.inputs.len())
    });
    for (what, count) in [("64 FP32 out", 64), ("picture FP32 out", PICTURE)] {
        let response = response(count);
        report(what, count, || json::encode_response(&response, &[], false).map(|encoded| encoded.head.len()));
    }
}

type Text = fn(f64) -> String;

fn requests() -> [(&'static str, &'static str, usize, Text); 10] {
    [
        ("64 FP32 in, 6 decimals", "FP32", 64, |value| format!("{value:.6}")),
        ("picture FP32 in, 4 decimals", "FP32", PICTURE, |value| format!("{value:.4}")),
        ("picture FP32 in, FP32 as doubles (tolist)", "FP32", PICTURE, |value| {
            format!("{:?}", f64::from(value as f32))
        }),
        ("picture FP32 in, doubles of 16 to 17 digits", "FP32", PICTURE, |value| format!("{value:?}")),
        ("picture FP32 in, 0.0 to 255.0, spaced", "FP32", PICTURE, |value| {
            format!(" {:.1}", (value.abs() * 255.0).floor())
        }),
        ("picture FP32 in, 0 to 255", "FP32", PICTURE, |value| format!("{:.0}", value.abs() * 255.0)),
        ("picture FP32 in, doubles up to 1000", "FP32", PICTURE, |value| format!("{:?}", value * 1e3)),
        ("picture FP64 in, 4 decimals", "FP64", PICTURE, |value| format!("{value:.4}")),
        ("picture FP64 in, doubles of 16 to 17 digits", "FP64", PICTURE, |value| format!("{value:?}")),
        ("picture UINT8 in", "UINT8", PICTURE, |value| format!("{}", (value.abs() * 255.0) as u8)),
    ]
}

/// Numbers between -1 and 1 without visible order.
struct Noise(u64);

impl Iterator for Noise {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0)
    }
}

fn request(datatype: &str, values: &[String]) -> Bytes {
    let count = values.len();
    let data = values.join(",");
    format!(r#"{{"inputs":[{{"name":"x","shape":[1,{count}],"datatype":"{datatype}","data":[{data}]}}]}}"#).into()
}

/// What the binary tensor extension sends, and the length of its JSON.
fn binary_request() -> (Bytes, usize) {
    let size = 4 * PICTURE;
    let header = format!(
        r#"{{"id":"","parameters":{{"binary_data_output":true}},"inputs":[{{"name":"x","shape":[1,{PICTURE}],"datatype":"FP32","parameters":{{"binary_data_size":{size}}}}}]}}"#
    );
    let length = header.len();
    ([header.into_bytes(), vec![0; size]].concat().into(), length)
}

fn response(count: usize) -> InferResponse {
    let data: Vec<u8> = Noise(7).take(count).flat_map(|value| (value as f32).to_le_bytes()).collect();
    let shape = [1, count as i64].into_iter().collect();
    InferResponse {
        id: "".into(),
        model_name: "m".into(),
        model_version: 1,
        parameters: Vec::new(),
        outputs: vec![Tensor { name: "y".into(), datatype: Datatype::Fp32, shape, data: data.into() }],
    }
}

/// Runs `work` for half a second, after one run that warms up, and prints a line.
fn report<T, E: std::fmt::Debug>(what: &str, count: usize, mut work: impl FnMut() -> Result<T, E>) {
    let filter = std::env::args().nth(1).unwrap_or_default();
    if !what.contains(&filter) {
        return;
    }
    black_box(work()).expect("the example is well-formed");
    let begin = Instant::now();
    let mut rounds = Vec::new();
    while begin.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        drop(black_box(work()));
        rounds.push(start.elapsed());
    }
    rounds.sort_unstable();
    let microseconds = |round: Duration| round.as_secs_f64() * 1e6;
    let (best, median) = (microseconds(rounds[0]), microseconds(rounds[rounds.len() / 2]));
    println!("{what:<52} {best:>12.2} {median:>12.2} {:>10.2}", best * 1e3 / count as f64);
}
