//! What was measured, as Python reads it.

use alipes_loadtest::Record;
use alipes_loadtest::log::Entry;
use hdrhistogram::Histogram;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

type Counts<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// A column of the log: its name, and its value in an entry.
type Column = (&'static str, fn(&Entry) -> u64);

/// What was measured between two cuts.
#[pyclass(frozen, module = "alipes._core")]
pub struct LoadTestRecord {
    all: Record,
    /// What was measured of each source, where there are several.
    parts: Vec<Record>,
}

impl LoadTestRecord {
    /// A record of these sources.
    pub fn new(mut sources: Vec<Record>) -> LoadTestRecord {
        if sources.len() == 1 {
            return LoadTestRecord::of(sources.remove(0));
        }
        let mut all = Record::default();
        sources.iter().for_each(|source| all.add(source.clone()));
        LoadTestRecord { all, parts: sources }
    }

    fn of(all: Record) -> LoadTestRecord {
        LoadTestRecord { all, parts: Vec::new() }
    }
}

#[pymethods]
impl LoadTestRecord {
    #[getter]
    fn parts(&self) -> Vec<LoadTestRecord> {
        self.parts.iter().map(|part| LoadTestRecord::of(part.clone())).collect()
    }

    #[getter]
    fn responses(&self) -> Option<u64> {
        self.all.streamed.as_ref().map(|streamed| streamed.responses)
    }

    #[getter]
    fn first_responses<'py>(&self, py: Python<'py>) -> Counts<'py> {
        self.all.streamed.as_ref().map_or_else(|| nothing(py), |streamed| counts(py, &streamed.firsts))
    }

    #[getter]
    fn response_gaps<'py>(&self, py: Python<'py>) -> Counts<'py> {
        self.all.streamed.as_ref().map_or_else(|| nothing(py), |streamed| counts(py, &streamed.gaps))
    }

    #[getter]
    fn log<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let entries = &self.all.log.entries;
        let columns: [Column; 5] = [
            ("request", |entry| entry.request as u64),
            ("due_ns", |entry| entry.due_ns),
            ("begun_ns", |entry| entry.begun_ns),
            ("end_ns", |entry| entry.end_ns),
            ("responses", |entry| entry.responses as u64),
        ];
        let log = PyDict::new(py);
        for (name, read) in columns {
            log.set_item(name, PyArray1::from_iter(py, entries.iter().map(read)))?;
        }
        log.set_item("failed", PyArray1::from_iter(py, entries.iter().map(|entry| entry.failed)))?;
        Ok(log)
    }

    #[getter]
    fn responses_ns<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        PyArray1::from_slice(py, &self.all.log.responses_ns)
    }

    #[getter]
    fn unlogged(&self) -> u64 {
        self.all.log.dropped
    }

    #[getter]
    fn latencies<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.all.latencies)
    }

    #[getter]
    fn lateness<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.all.lateness)
    }

    #[getter]
    fn queueing<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.all.queueing)
    }

    #[getter]
    fn answers(&self) -> u64 {
        self.all.answers()
    }

    #[getter]
    fn sending_ns(&self) -> u64 {
        self.all.sending_ns
    }

    #[getter]
    fn waiting_ns(&self) -> u64 {
        self.all.waiting_ns
    }

    #[getter]
    fn receiving_ns(&self) -> u64 {
        self.all.receiving_ns
    }

    #[getter]
    fn received_bytes(&self) -> u64 {
        self.all.received_bytes
    }

    #[getter]
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let failures = PyDict::new(py);
        for (text, count) in &self.all.failures {
            failures.set_item(text, count)?;
        }
        Ok(failures)
    }

    #[getter]
    fn dropped(&self) -> u64 {
        self.all.dropped
    }

    #[getter]
    fn connections(&self) -> u64 {
        self.all.connections
    }

    #[getter]
    fn busy_ns(&self) -> u64 {
        self.all.busy_ns
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> Vec<(usize, Bound<'py, PyBytes>)> {
        self.all.samples.all.iter().map(|sample| (sample.request, PyBytes::new(py, &sample.answer))).collect()
    }
}

fn nothing(py: Python<'_>) -> Counts<'_> {
    (PyArray1::from_vec(py, Vec::new()), PyArray1::from_vec(py, Vec::new()))
}

/// The times that were seen, in nanoseconds, and how often each was.
fn counts<'py>(py: Python<'py>, histogram: &Histogram<u64>) -> Counts<'py> {
    let seen = || histogram.iter_recorded();
    let times = seen().map(|step| histogram.median_equivalent(step.value_iterated_to())).collect();
    let numbers = seen().map(|step| step.count_at_value()).collect();
    (PyArray1::from_vec(py, times), PyArray1::from_vec(py, numbers))
}
