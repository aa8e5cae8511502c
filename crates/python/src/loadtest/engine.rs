//! A load that runs.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use alipes_loadtest::arrivals::{Piece, Schedule};
use alipes_loadtest::{Engine, Keep, Loop, Plan, Source, Waves};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PySequence;

use super::record::LoadTestRecord;
use super::requests::LoadTestRequests;
use crate::client::errors::{exception, wrong};
use crate::client::waiting::{Deadline, wait};

/// How often a wait for a number of answers looks at it.
const LOOK: Duration = Duration::from_millis(5);

/// Longest time that a request may be given.
const LONGEST_LIMIT: Duration = Duration::from_secs(86_400);

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
        calls_per_connection = 8, count = None, samples = 0, timeout_s = None, log = 0,
        repeats = false, waves = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "what a load is, by name")]
    fn new(
        py: Python<'_>,
        requests: &Bound<'_, PyAny>,
        callers: Option<usize>,
        rates: Option<Vec<(f64, f64, f64)>>,
        intervals_s: Option<Vec<f64>>,
        seed: Option<u64>,
        in_flight: usize,
        threads: usize,
        calls_per_connection: usize,
        count: Option<u64>,
        samples: usize,
        timeout_s: Option<f64>,
        log: usize,
        repeats: bool,
        waves: Option<(usize, usize, usize, u64)>,
    ) -> PyResult<LoadTestEngine> {
        let schedule = match (rates, intervals_s) {
            (Some(rates), None) => Some(Schedule::Rate { pieces: pieces(&rates)?, seed, repeats }),
            (None, Some(spans)) => Some(Schedule::Intervals(intervals(&spans)?)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err(wrong("a load has rates or intervals, not both")),
        };
        let pace = match (callers, schedule, waves) {
            (Some(callers), None, None) => Loop::Closed { callers: positive("callers", callers)? },
            (None, Some(schedule), None) => Loop::Open { schedule, in_flight: positive("in_flight", in_flight)? },
            (None, None, Some(waves)) => Loop::Waves(read_waves(waves)?),
            _ => return Err(wrong("a load has either callers, or rates or intervals, or waves")),
        };
        let plan = Plan {
            sources: sources(requests)?,
            pace,
            threads: positive("threads", threads)?,
            calls_per_connection: positive("calls_per_connection", calls_per_connection)?,
            count,
            limit: timeout_s.map(limit).transpose()?,
            keep: Keep { samples, requests: log.div_ceil(threads) },
        };
        let engine = Engine::start(plan).map_err(|error| exception(py, &error))?;
        Ok(LoadTestEngine { engine: Mutex::new(engine) })
    }

    fn cut(&self, py: Python<'_>) -> LoadTestRecord {
        LoadTestRecord::new(py.detach(|| self.engine.lock().cut()))
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

/// One source, or several with their weights.
fn sources(requests: &Bound<'_, PyAny>) -> PyResult<Vec<Source>> {
    if let Ok(only) = requests.cast::<LoadTestRequests>() {
        return Ok(vec![only.borrow().source(1.0)?]);
    }
    let read = |pair: Bound<'_, PyAny>| {
        let (requests, weight): (Bound<'_, LoadTestRequests>, f64) = pair.extract()?;
        requests.borrow().source(weight)
    };
    requests.cast::<PySequence>()?.try_iter()?.map(|pair| read(pair?)).collect()
}

fn read_waves((first, further, all, responses): (usize, usize, usize, u64)) -> PyResult<Waves> {
    let responses = NonZeroU64::new(responses).ok_or_else(|| wrong("responses of a wave have to be 1 or more"))?;
    let [first, further, all] = [first, further, all].map(|number| positive("a number of a wave", number));
    Ok(Waves { first: first?, further: further?, all: all?, responses })
}

fn limit(seconds: f64) -> PyResult<Duration> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if !limit.is_zero() && limit < LONGEST_LIMIT => Ok(limit),
        _ => Err(wrong(format!("timeout_s is {seconds}: expected seconds above 0, and less than a day"))),
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
