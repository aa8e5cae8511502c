//! A load that runs.

use std::num::NonZeroUsize;
use std::time::Duration;

use alipes_loadtest::arrivals::{Piece, Schedule};
use alipes_loadtest::{Engine, Loop, Plan};
use parking_lot::Mutex;
use pyo3::prelude::*;

use super::record::LoadTestRecord;
use super::requests::LoadTestRequests;
use crate::client::errors::{exception, wrong};
use crate::client::waiting::{Deadline, wait};

/// How often a wait for a number of answers looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// A load that runs until it is stopped, or until everything is sent and answered.
#[pyclass(frozen, module = "alipes._core")]
pub struct LoadTestEngine {
    engine: Mutex<Engine>,
}

#[pymethods]
impl LoadTestEngine {
    #[new]
    #[pyo3(signature = (
        requests, callers = None, rates = None, intervals_s = None, seed = None, in_flight = 1024, threads = 1,
        calls_per_connection = 8, count = None, samples = 0
    ))]
    #[allow(clippy::too_many_arguments, reason = "what a load is, by name")]
    fn new(
        py: Python<'_>,
        requests: &LoadTestRequests,
        callers: Option<usize>,
        rates: Option<Vec<(f64, f64, f64)>>,
        intervals_s: Option<Vec<f64>>,
        seed: Option<u64>,
        in_flight: usize,
        threads: usize,
        calls_per_connection: usize,
        count: Option<u64>,
        samples: usize,
    ) -> PyResult<LoadTestEngine> {
        let schedule = match (rates, intervals_s) {
            (Some(rates), None) => Some(Schedule::Rate { pieces: pieces(&rates)?, seed }),
            (None, Some(spans)) => Some(Schedule::Intervals(intervals(&spans)?)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err(wrong("a load has rates or intervals, not both")),
        };
        let pace = match (callers, schedule) {
            (Some(callers), None) => Loop::Closed { callers: positive("callers", callers)? },
            (None, Some(schedule)) => Loop::Open { schedule, in_flight: positive("in_flight", in_flight)? },
            _ => return Err(wrong("a load has either callers, or rates or intervals")),
        };
        let plan = Plan {
            target: requests.target.clone(),
            requests: requests.prepared.clone(),
            pace,
            threads: positive("threads", threads)?,
            calls_per_connection: positive("calls_per_connection", calls_per_connection)?,
            count,
            samples,
        };
        let engine = Engine::start(plan).map_err(|error| exception(py, &error))?;
        Ok(LoadTestEngine { engine: Mutex::new(engine) })
    }

    fn cut(&self, py: Python<'_>) -> LoadTestRecord {
        LoadTestRecord(py.detach(|| self.engine.lock().cut()))
    }

    #[pyo3(signature = (seconds, answers = None))]
    fn wait(&self, py: Python<'_>, seconds: f64, answers: Option<u64>) -> PyResult<bool> {
        let look = |slice: Duration| {
            std::thread::park_timeout(slice.min(LOOK));
            let engine = self.engine.lock();
            (engine.is_done() || answers.is_some_and(|answers| engine.answers() >= answers)).then_some(())
        };
        wait(py, &Deadline::after(Some(seconds)), look).map(|found| found.is_some())
    }

    fn is_done(&self) -> bool {
        self.engine.lock().is_done()
    }

    fn stop(&self, py: Python<'_>, grace_s: f64) -> PyResult<()> {
        let grace = Duration::try_from_secs_f64(grace_s.max(0.0)).unwrap_or(Duration::MAX);
        py.detach(|| self.engine.lock().stop(grace)).map_err(|error| exception(py, &error))
    }
}

fn positive(name: &str, number: usize) -> PyResult<NonZeroUsize> {
    NonZeroUsize::new(number).ok_or_else(|| wrong(format!("{name} has to be 1 or more")))
}

fn pieces(rates: &[(f64, f64, f64)]) -> PyResult<Vec<Piece>> {
    let fits = |rate: f64| rate.is_finite() && rate >= 0.0;
    let piece = |&(seconds, from, to): &(f64, f64, f64)| match Duration::try_from_secs_f64(seconds) {
        Ok(length) if !length.is_zero() && fits(from) && fits(to) => Ok(Piece { length, from, to }),
        _ => Err(wrong(format!(
            "({seconds}, {from}, {to}) is no piece: expected seconds above 0, and rates of 0 or more"
        ))),
    };
    rates.iter().map(piece).collect()
}

fn intervals(spans: &[f64]) -> PyResult<Vec<Duration>> {
    let all: Result<Vec<Duration>, _> = spans.iter().map(|span| Duration::try_from_secs_f64(*span)).collect();
    match all {
        Ok(all) if all.iter().any(|span| !span.is_zero()) => Ok(all),
        _ => Err(wrong("intervals are seconds of 0 or more, of which one at least is longer than 0")),
    }
}
