//! The binding: everything Python can see, on one screen.

mod allocator;
mod client;
mod control;
mod detached;
mod gpus;
mod loadtest;
mod onnx_probe;
mod server;
mod tables;
mod worker;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    use alipes_protocol::codec::proto::DESCRIPTORS;
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyList, PyString};

    #[pymodule_export]
    use super::client::link::ClientLink;
    #[pymodule_export]
    use super::client::mailbox::{ClientMailbox, ClientTask};
    #[pymodule_export]
    use super::client::plan::ClientPlan;
    #[pymodule_export]
    use super::client::stream::ClientStream;
    #[pymodule_export]
    use super::client::tls::ClientTls;
    #[pymodule_export]
    use super::control::Control;
    #[pymodule_export]
    use super::gpus::Gpu;
    #[pymodule_export]
    use super::loadtest::engine::LoadTestEngine;
    #[pymodule_export]
    use super::loadtest::record::LoadTestRecord;
    #[pymodule_export]
    use super::loadtest::requests::LoadTestRequests;
    #[pymodule_export]
    use super::onnx_probe::OnnxProbe;
    #[pymodule_export]
    use super::server::{Cancellation, ModelVersion, Server};
    #[pymodule_export]
    use super::tables::{DatatypeRow, ErrorCodeRow};
    #[pymodule_export]
    use super::worker::context::{InferenceTrace, PreferredMemory};
    #[pymodule_export]
    use super::worker::errors::{TritonError, TritonModelException};
    #[pymodule_export]
    use super::worker::iterator::ResponseIterator;
    #[pymodule_export]
    use super::worker::request::InferenceRequest;
    #[pymodule_export]
    use super::worker::response::InferenceResponse;
    #[pymodule_export]
    use super::worker::rows::RowReader;
    #[pymodule_export]
    use super::worker::sender::InferenceResponseSender;
    #[pymodule_export]
    use super::worker::tensor::Tensor;
    #[pymodule_export]
    use super::worker::worker_link::WorkerLink;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::allocator::outlive_this_thread();
        Ok(())
    }

    /// Version of the binary.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The table of datatypes, in the order of the model configuration's enumeration, which counts from 1.
    #[pyfunction]
    fn datatypes() -> Vec<DatatypeRow> {
        super::tables::datatypes()
    }

    /// The error of a response whose code is that of an exception: `failure("no such user", "NotFound")`.
    #[pyfunction]
    fn failure(text: Py<PyString>, exception: &str) -> TritonError {
        super::worker::errors::failure(text, exception)
    }

    /// The name of the exception that stands for an error, such as `NotFound`.
    #[pyfunction]
    fn failure_exception(error: &Bound<'_, TritonError>) -> &'static str {
        super::worker::errors::exception_of(error.get())
    }

    /// The GPUs that CUDA lets this process see; an empty list without NVIDIA's driver.
    #[pyfunction]
    fn gpus(py: Python<'_>) -> Vec<Gpu> {
        super::gpus::visible(py)
    }

    /// Names of models that can have no endpoint: the paths are the server's own.
    #[pyfunction]
    fn reserved_names() -> [&'static str; alipes_protocol::call::RESERVED_NAMES.len()] {
        alipes_protocol::call::RESERVED_NAMES
    }

    /// What a request brings where it is a call: body, content type, method, query string, and the text of a JSON
    /// object with its headers.
    #[pyfunction]
    fn read_call<'py>(
        request: &Bound<'py, InferenceRequest>,
    ) -> PyResult<Option<super::worker::plain_call::Call<'py>>> {
        super::worker::plain_call::read(request)
    }

    /// What a request brings where it is a call of one of the protocols: body, path, and its headers by names in small
    /// letters.
    #[pyfunction]
    fn read_whole_call<'py>(
        request: &Bound<'py, InferenceRequest>,
    ) -> PyResult<Option<super::worker::plain_call::WholeCall<'py>>> {
        super::worker::plain_call::read_whole(request)
    }

    /// The response to a call.
    #[pyfunction]
    #[pyo3(signature = (body, status = 200, content_type = "application/json", headers = "", more = false))]
    fn call_response(
        py: Python<'_>,
        body: &[u8],
        status: u16,
        content_type: &str,
        headers: &str,
        more: bool,
    ) -> PyResult<InferenceResponse> {
        super::worker::plain_call::respond(py, body, status, content_type, headers, more)
    }

    /// Leaves a child process that has imported an app for the worker of a key that starts first.
    #[pyfunction]
    fn offer_process(key: String, pid: i32, socket: i32) -> PyResult<()> {
        use std::os::fd::{FromRawFd, OwnedFd};
        // SAFETY: `alipes.apps.description` has detached the socket from its object, and names it once.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        Ok(alipes_server::waiting::offer(key, pid, socket)?)
    }

    /// Ends the process that waits under a key, unless a worker has taken it.
    #[pyfunction]
    fn withdraw_process(py: Python<'_>, key: &str) {
        py.detach(|| alipes_server::waiting::withdraw(key));
    }

    /// The inputs of requests row after row, and how many rows each has, where they can be joined.
    #[pyfunction]
    fn joint_inputs<'py>(requests: &Bound<'py, PyList>) -> PyResult<Option<super::worker::joint::JointInputs<'py>>> {
        super::worker::joint::inputs(requests)
    }

    /// The responses with the rows of each request, where the outputs can be taken apart.
    #[pyfunction]
    fn joint_responses(
        py: Python<'_>,
        outputs: Vec<super::worker::joint::Output<'_>>,
        rows: Vec<usize>,
    ) -> PyResult<Option<Vec<InferenceResponse>>> {
        super::worker::joint::responses(py, &outputs, &rows)
    }

    /// The responses that carry the rows of an array as JSON, where they can.
    #[pyfunction]
    fn row_responses(result: &Bound<'_, PyAny>, rows: usize) -> PyResult<Option<Vec<InferenceResponse>>> {
        super::worker::rows::responses(result, rows)
    }

    /// The table of error codes.
    #[pyfunction]
    fn error_codes() -> Vec<ErrorCodeRow> {
        super::tables::error_codes()
    }

    /// The serialized `FileDescriptorSet` of `proto/`.
    #[pyfunction]
    fn descriptor_set(py: Python<'_>) -> Bound<'_, PyBytes> {
        PyBytes::new(py, DESCRIPTORS)
    }
}
