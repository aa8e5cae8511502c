//! The settings of tracing, read and changed while the server runs, and the traces of arriving requests.

use std::sync::Arc;

use alipes_protocol::InferError;
use alipes_protocol::trace::{Moment, Trace};
use alipes_spec::trace::{Change, Values};
use alipes_stats::clock::now_ns;
use alipes_stats::trace::context;
use http::HeaderMap;

use super::Service;

/// The refusal of a trace setting that names the file. Source: Triton.
pub const FILE_IS_FIXED: &str = "trace file location can not be updated through network protocol";

impl Service {
    /// The settings of a model, or those of all models where the name is empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a model that is not served.
    pub fn trace_settings(&self, model: &str) -> Result<Values, InferError> {
        self.check_traced_model(model)?;
        Ok(self.traces.settings(model))
    }

    /// Changes settings of a model, or of all models where the name is empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for settings by which nothing could be traced.
    pub fn change_tracing(&self, model: &str, change: &Change) -> Result<Values, InferError> {
        self.traces.change(model, change)
    }

    /// # Errors
    ///
    /// `InvalidArgument` for a model that is not served, in Triton's words, which come before those about its settings.
    pub fn check_traced_model(&self, model: &str) -> Result<(), InferError> {
        if model.is_empty() || self.lookup(model, "").is_ok() {
            return Ok(());
        }
        Err(InferError::invalid(format!("Request for unknown model : {model}")))
    }

    /// The trace of a request whose head has arrived, where it is traced. One load of a flag where tracing is off.
    pub fn trace(&self, model: &str, headers: &HeaderMap) -> Option<Arc<Trace>> {
        if !self.traces.is_on() {
            return None;
        }
        let trace = self.traces.draw(model, context::of(headers))?;
        trace.note(Moment::HttpRecvStart, now_ns());
        Some(trace)
    }
}
