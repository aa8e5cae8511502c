//! What was measured, as Python reads it.

use alipes_loadtest::Record;
use hdrhistogram::Histogram;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

type Counts<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>);

/// What was measured between two cuts.
#[pyclass(frozen, module = "alipes._core")]
pub struct LoadTestRecord(pub Record);

#[pymethods]
impl LoadTestRecord {
    #[getter]
    fn latencies<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.0.latencies)
    }

    #[getter]
    fn lateness<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.0.lateness)
    }

    #[getter]
    fn queueing<'py>(&self, py: Python<'py>) -> Counts<'py> {
        counts(py, &self.0.queueing)
    }

    #[getter]
    fn answers(&self) -> u64 {
        self.0.answers()
    }

    #[getter]
    fn sending_ns(&self) -> u64 {
        self.0.sending_ns
    }

    #[getter]
    fn waiting_ns(&self) -> u64 {
        self.0.waiting_ns
    }

    #[getter]
    fn receiving_ns(&self) -> u64 {
        self.0.receiving_ns
    }

    #[getter]
    fn received_bytes(&self) -> u64 {
        self.0.received_bytes
    }

    #[getter]
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let failures = PyDict::new(py);
        for (text, count) in &self.0.failures {
            failures.set_item(text, count)?;
        }
        Ok(failures)
    }

    #[getter]
    fn dropped(&self) -> u64 {
        self.0.dropped
    }

    #[getter]
    fn connections(&self) -> u64 {
        self.0.connections
    }

    #[getter]
    fn busy_ns(&self) -> u64 {
        self.0.busy_ns
    }

    #[getter]
    fn samples<'py>(&self, py: Python<'py>) -> Vec<(usize, Bound<'py, PyBytes>)> {
        self.0.samples.iter().map(|sample| (sample.request, PyBytes::new(py, &sample.answer))).collect()
    }
}

/// The times that were seen, in nanoseconds, and how often each was.
fn counts<'py>(py: Python<'py>, histogram: &Histogram<u64>) -> Counts<'py> {
    let seen = || histogram.iter_recorded();
    let times = seen().map(|step| histogram.median_equivalent(step.value_iterated_to())).collect();
    let numbers = seen().map(|step| step.count_at_value()).collect();
    (PyArray1::from_vec(py, times), PyArray1::from_vec(py, numbers))
}
