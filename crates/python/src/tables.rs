//! The tables of datatypes and error codes, for Python.

use alipes_protocol::{datatype, error};
use pyo3::prelude::*;

/// A row of the table of datatypes.
#[pyclass(frozen, get_all, module = "alipes._core")]
pub struct DatatypeRow {
    name: &'static str,
    config_name: &'static str,
    size: Option<usize>,
    numpy_name: Option<&'static str>,
}

/// Every datatype, in the order of the model configuration's enumeration.
pub fn datatypes() -> Vec<DatatypeRow> {
    datatype::TABLE.iter().map(DatatypeRow::new).collect()
}

impl DatatypeRow {
    fn new(row: &datatype::DatatypeRow) -> DatatypeRow {
        let datatype::DatatypeRow { name, config_name, size, numpy_name, .. } = *row;
        DatatypeRow { name, config_name, size, numpy_name }
    }
}

/// A row of the table of error codes.
#[pyclass(frozen, get_all, module = "alipes._core")]
pub struct ErrorCodeRow {
    name: String,
    http_status: u16,
    grpc_code: i32,
    grpc_name: &'static str,
    word: &'static str,
    triton_name: Option<&'static str>,
    exception: &'static str,
    retry: &'static str,
}

/// Every error code, in the order of the table.
pub fn error_codes() -> Vec<ErrorCodeRow> {
    error::TABLE.iter().map(ErrorCodeRow::new).collect()
}

impl ErrorCodeRow {
    fn new(row: &error::CodeRow) -> ErrorCodeRow {
        let error::CodeRow { code, http_status, grpc_code, word, triton_name, exception, retry } = *row;
        let (name, grpc_name) = (format!("{code:?}"), row.grpc_name());
        ErrorCodeRow { name, http_status, grpc_code, grpc_name, word, triton_name, exception, retry }
    }
}
