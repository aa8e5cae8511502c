//! What an execution costs beside the library's own work: the bare function table, alipes from gather to split, and the
//! safe run of the `ort` crate, in turn on one model.
//!
//! ```text
//! cargo run --release -p alipes-engine --example run_overhead -- LIBRARY MODEL [ROWS]
//! ```
//!
//! The model takes and gives one FP32 tensor of shape [-1, ...]. Prints nanoseconds per run, the median of 15 rounds.

#![allow(clippy::disallowed_methods, reason = "figures are taken on the clock of the system")]

use std::error::Error;
use std::ffi::CString;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{hint, ptr};

use alipes_engine::batch::{Gather, Member, Split};
use alipes_engine::onnxruntime::{Declared, DeclaredPort, OnnxModel, OnnxProbe, Port, SessionOptions};
use alipes_engine::{Engine, OutputTensor};
use alipes_protocol::Datatype;
use ort::memory::{AllocationDevice, AllocatorType, MemoryInfo, MemoryType};
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::TensorRef;
use ort::{AsPointer, ortsys, sys};

const ROUNDS: usize = 15;
const SAMPLES: usize = 500;
const RUNS: u32 = 40;
const WAYS: [&str; 3] = ["table", "alipes", "ort"];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [way, library, model, rows] if WAYS.contains(&way.as_str()) => {
            println!("{}", measure(way, Path::new(library), Path::new(model), rows.parse()?)?);
        }
        [library, model] => compare(library, model, "1")?,
        [library, model, rows] => compare(library, model, rows)?,
        _ => return Err("usage: run_overhead LIBRARY MODEL [ROWS]".into()),
    }
    Ok(())
}

/// Measures the ways in turn, each in a process of its own, since a process has one environment of the library.
fn compare(library: &str, model: &str, rows: &str) -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let mut samples: [Vec<u64>; 3] = Default::default();
    for _ in 0..ROUNDS {
        for (way, samples) in WAYS.into_iter().zip(&mut samples) {
            let child =
                Command::new(&program).args([way, library, model, rows]).env("ORT_DISABLE_TELEMETRY", "1").output()?;
            let text = String::from_utf8_lossy(&child.stdout);
            samples.push(text.trim().parse().map_err(|_| String::from_utf8_lossy(&child.stderr).into_owned())?);
        }
    }
    for (way, mut samples) in WAYS.into_iter().zip(samples) {
        samples.sort_unstable();
        let (least, median, most) = (samples[0], samples[ROUNDS / 2], samples[ROUNDS - 1]);
        println!("{way:>6} {median:>7} ns a run (rounds from {least} to {most})");
    }
    Ok(())
}

fn measure(way: &str, library: &Path, model: &Path, rows: i64) -> Result<u128, Box<dyn Error>> {
    let case = Case { library, model, rows };
    match way {
        "table" => case.table(),
        "alipes" => case.alipes(),
        _ => case.ort(),
    }
}

/// Nanoseconds of a run: the median of many short samples, so that what else the machine does meanwhile falls out.
fn time(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<u128, Box<dyn Error>> {
    let mut samples = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let began = Instant::now();
        for _ in 0..RUNS {
            run()?;
        }
        samples.push(began.elapsed().as_nanos() / u128::from(RUNS));
    }
    samples.sort_unstable();
    Ok(samples[SAMPLES / 2])
}

struct Case<'a> {
    library: &'a Path,
    model: &'a Path,
    rows: i64,
}

impl Case<'_> {
    /// As the server does it: gathered, run, split.
    fn alipes(&self) -> Result<u128, Box<dyn Error>> {
        let probe = OnnxProbe::open(self.library, self.model)?;
        let signature = probe.signature();
        let (inputs, outputs) = ([declare(&signature.inputs[0])], [declare(&signature.outputs[0])]);
        let declared = Declared { model_name: "m", max_batch_size: 64, inputs: &inputs, outputs: &outputs };
        let model = OnnxModel::open(self.library, self.model, SessionOptions::default())?;
        let mut session = model.session(&declared)?;
        let (shape, data) = self.input(&signature.inputs[0].shape)?;
        let data: Vec<u8> = data.into_iter().flat_map(f32::to_le_bytes).collect();
        let mut gather = Gather::default();
        let mut outputs: Vec<OutputTensor> = Vec::new();
        let rows = usize::try_from(self.rows)?;
        time(|| {
            let member = Member { index: 0, datatype: Datatype::Fp32, shape: &shape, data: &data };
            outputs.clear();
            session.run(&gather.gather([[member]])?, &[0], &mut outputs)?;
            hint::black_box(Split::new(&outputs, Some(rows))?.take(rows).next());
            Ok(())
        })
    }

    /// The least that a run takes: a value over the bytes, the run, a look at the output.
    fn table(&self) -> Result<u128, Box<dyn Error>> {
        let session = self.plain_session()?;
        let input = CString::new(session.inputs()[0].name())?;
        let output = CString::new(session.outputs()[0].name())?;
        let (shape, data) = self.input(session.inputs()[0].dtype().tensor_shape().ok_or("no tensor")?)?;
        let memory = MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::Default)?;
        time(|| {
            let (mut value, mut produced, mut floats) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            // SAFETY: data and shape outlive the value, which is released below.
            ortsys![unsafe CreateTensorWithDataAsOrtValue(
                memory.ptr(),
                data.as_ptr().cast_mut().cast(),
                size_of_val(&data[..]),
                shape.as_ptr(),
                shape.len(),
                sys::ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                &mut value,
            )?];
            // SAFETY: one name and one value each way, all valid.
            ortsys![unsafe Run(
                session.ptr().cast_mut(),
                ptr::null(),
                &input.as_ptr(),
                &value.cast_const(),
                1,
                &output.as_ptr(),
                1,
                &mut produced,
            )?];
            // SAFETY: the run has given a tensor.
            ortsys![unsafe GetTensorMutableData(produced, &mut floats)?];
            hint::black_box(floats);
            // SAFETY: the value is used no more.
            ortsys![unsafe ReleaseValue(produced)];
            // SAFETY: the value is used no more.
            ortsys![unsafe ReleaseValue(value)];
            Ok(())
        })
    }

    /// The `ort` crate's own run.
    fn ort(&self) -> Result<u128, Box<dyn Error>> {
        let mut session = self.plain_session()?;
        let (shape, data) = self.input(session.inputs()[0].dtype().tensor_shape().ok_or("no tensor")?)?;
        time(|| {
            let value = TensorRef::from_array_view((&shape[..], &data[..]))?;
            let outputs = session.run(ort::inputs![value])?;
            hint::black_box(outputs[0].try_extract_tensor::<f32>()?.1.as_ptr());
            Ok(())
        })
    }

    /// A session as `SessionOptions::default` sets it up.
    fn plain_session(&self) -> Result<Session, Box<dyn Error>> {
        let environment = ort::init_from(self.library)?.with_telemetry(false).build()?;
        let builder = Session::builder(&environment)?.with_intra_threads(1)?.with_inter_threads(1)?;
        Ok(builder.with_optimization_level(GraphOptimizationLevel::All)?.commit_from_file(self.model)?)
    }

    fn input(&self, shape: &[i64]) -> Result<(Vec<i64>, Vec<f32>), Box<dyn Error>> {
        let shape: Vec<i64> = [self.rows].iter().chain(&shape[1..]).copied().collect();
        let count = usize::try_from(shape.iter().product::<i64>())?;
        Ok((shape, vec![0.5; count]))
    }
}

fn declare(port: &Port) -> DeclaredPort<'_> {
    DeclaredPort { name: &port.name, datatype: port.datatype, dims: &port.shape[1..], optional: false, ragged: false }
}
