//! Word that an answer has left.

use std::sync::Arc;

use alipes_protocol::trace::{Moment, Trace};

use crate::clock::now_ns;

/// Goes with an answer; notes, once dropped, that it has left.
#[derive(Debug)]
pub struct Sent {
    trace: Arc<Trace>,
    end: Moment,
}

impl Sent {
    /// For an answer over HTTP that begins to leave now.
    pub fn http(trace: Arc<Trace>) -> Sent {
        trace.note(Moment::HttpSendStart, now_ns());
        Sent { trace, end: Moment::HttpSendEnd }
    }

    /// The same over gRPC.
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
