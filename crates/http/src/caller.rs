//! What is known of a request before its body.

use std::net::IpAddr;
use std::sync::Arc;

use alipes_net::connection::{Call, Spelling};
use alipes_service::request_id::RequestId;
use alipes_stats::access::AccessRecord;
use compact_str::CompactString;

/// The other end of a request's connection.
#[derive(Clone, Copy)]
pub struct Peer<'a> {
    /// Its address; none over a Unix socket.
    pub address: Option<IpAddr>,
    /// How the request spelled its headers, where models are to see that.
    pub spelling: Option<&'a Spelling>,
}

/// What a request brings beside its method, path and body.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// Who sends it.
    pub peer: Peer<'a>,
    /// Its record, where the log is verbose.
    record: Option<&'a AccessRecord>,
    /// The id of its head.
    request_id: Option<&'a RequestId>,
    /// The call belongs to a request that is counted already.
    pub is_admitted: bool,
}

impl<'a> Caller<'a> {
    /// The caller of a call whose head brought this id.
    #[inline]
    pub fn new(call: &'a Call, peer: Peer<'a>, request_id: Option<&'a RequestId>) -> Caller<'a> {
        let record = call.record().map(Arc::as_ref);
        if let (Some(record), Some(id)) = (record, request_id) {
            record.names("", id.as_str());
        }
        Caller { peer, record, request_id, is_admitted: false }
    }

    /// The caller of what a counted request needs: a server that stops still takes it.
    #[must_use]
    pub fn within_request(self) -> Caller<'a> {
        Caller { is_admitted: true, ..self }
    }

    /// The id of the head; empty where it brought none.
    pub fn request_id(&self) -> &'a str {
        self.request_id.map_or("", RequestId::as_str)
    }

    /// The request is for a model that its path did not name for sure.
    pub fn names_model(&self, model: &str) {
        if let Some(record) = self.record {
            record.names(model, "");
        }
    }

    /// Settles the id of a request whose body is read: its own, or else the head's.
    #[inline]
    pub fn name(&self, id: &mut CompactString) {
        RequestId::name(self.request_id, id);
        if let Some(record) = self.record {
            record.names("", id);
        }
    }
}
