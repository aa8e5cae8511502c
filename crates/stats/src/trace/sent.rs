//! A guard that notes when a response was sent.

use std::sync::Arc;

use alipes_protocol::trace::{Moment, Trace};

use crate::clock::now_ns;

/// Travels with a response; dropping it notes the end of sending in the record.
#[derive(Debug)]
pub struct Sent {
    trace: Arc<Trace>,
    end: Moment,
}

impl Sent {
    /// For a response over HTTP; sending begins now.
    pub fn http(trace: Arc<Trace>) -> Sent {
        trace.note(Moment::HttpSendStart, now_ns());
        Sent { trace, end: Moment::HttpSendEnd }
    }

    /// For a response over gRPC; sending begins now.
    pub fn grpc(trace: Arc<Trace>) -> Sent {
        trace.note(Moment::GrpcSendStart, now_ns());
        Sent { trace, end: Moment::GrpcSendEnd }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.trace.note(self.end, now_ns());
    }
}
