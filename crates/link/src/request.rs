//! A request on its way to the worker.

use alipes_protocol::CorrelationId;

use crate::tensor::ViewedTensor;

/// What a request says beside its inputs.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The caller's id, or empty.
    pub id: &'a str,
    /// Sequence membership.
    pub correlation_id: &'a CorrelationId,
    /// Triton's request flags: 1 starts a sequence, 2 ends it.
    pub flags: u32,
    /// The caller's time-out; 0 means none.
    pub timeout_us: u64,
    /// 1 is highest; 0 means the model's default.
    pub priority: u64,
    /// Text of a JSON object, or empty.
    pub parameters: &'a str,
    /// Positions of the outputs asked for, among the declared ones.
    pub outputs: &'a [u16],
    /// OpenTelemetry context to hand on.
    pub trace: Option<&'a str>,
}

/// A request as the worker claimed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Its slot.
    pub slot: u32,
    /// Its ticket, also the lease of its input memory.
    pub ticket: u64,
    /// Its batch size.
    pub rows: u32,
    /// The caller's id, or empty.
    pub id: String,
    /// Sequence membership.
    pub correlation_id: CorrelationId,
    /// Triton's request flags.
    pub flags: u32,
    /// The caller's time-out; 0 means none.
    pub timeout_us: u64,
    /// 1 is highest; 0 means the model's default.
    pub priority: u64,
    /// Text of a JSON object, or empty.
    pub parameters: String,
    /// Positions of the outputs asked for.
    pub outputs: Vec<u16>,
    /// Inputs; their bytes stay valid until the worker says that it has released them.
    pub inputs: Vec<ViewedTensor>,
    /// When it was claimed, on the clock of [`crate::message::monotonic_ns`].
    pub claimed_ns: u64,
    /// OpenTelemetry context to hand on.
    pub trace: Option<String>,
}
