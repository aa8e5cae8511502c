//! What the head of a call says of how it is to be read and answered.

use std::time::Instant;

use alipes_protocol::InferError;
use alipes_spec::ServerConfig;
use http::{HeaderMap, HeaderValue};

use super::compression::{Encoding, Press};
use super::deadline;
use super::message::Receiving;

/// What a call carries of its head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// What it may send.
    pub(super) receiving: Receiving,
    /// What compresses the answers to inferences; none where they leave as they are.
    pub(super) press: Option<Press>,
    /// Until when its client waits.
    pub(super) deadline: Option<Instant>,
}

impl Head {
    /// # Errors
    ///
    /// An encoding that is not understood, a time-out that cannot be read.
    pub(super) fn of(headers: &HeaderMap, config: &ServerConfig) -> Result<Head, InferError> {
        Ok(Head {
            receiving: Receiving {
                encoding: Encoding::of_request(headers)?,
                max_bytes: config.grpc_max_request_bytes,
                max_expanded_bytes: config.grpc_max_expanded_bytes,
            },
            press: Press::of(headers, config.grpc_compression_level),
            deadline: deadline::of(headers)?,
        })
    }
}

/// An entry of the metadata, for requests that are divided by it.
pub(super) fn entry_of<'a>(metadata: Option<&'a HeaderMap>, name: &str) -> Option<&'a [u8]> {
    metadata?.get(name).map(HeaderValue::as_bytes)
}
