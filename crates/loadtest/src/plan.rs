//! What is sent, to whom, and when.

use std::num::NonZeroUsize;

use alipes_client::grpc::unary;
use alipes_client::http::head;
use alipes_client::{ClientError, Kind, Outgoing, Target, Verb, Wire};
use bytes::{Bytes, BytesMut};

use crate::arrivals::Schedule;

/// The line of a head that a post replaces.
const JSON: &str = "Content-Type: application/json";

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// Head and body as they travel.
    Http(Bytes),
    /// A call.
    Grpc {
        /// Its head, as [`alipes_client::grpc::unary::head`] makes it.
        head: Box<http::Request<()>>,
        /// The five bytes of the prefix, then the message.
        message: Bytes,
    },
}

impl Prepared {
    /// A request of the client's own as it travels.
    ///
    /// # Errors
    /// Headers of the target that cannot be sent.
    pub fn new(target: &Target, outgoing: &Outgoing) -> Result<Prepared, ClientError> {
        match target.wire {
            Wire::Http => Ok(Prepared::Http(joined(&head::request(target, outgoing)?, &outgoing.pieces))),
            Wire::Grpc => {
                let head = unary::head(target, &outgoing.path)?;
                Ok(Prepared::Grpc { head: Box::new(head), message: joined("", &outgoing.pieces) })
            }
        }
    }

    /// A post of anything, over HTTP.
    ///
    /// # Errors
    /// Headers that cannot be sent.
    pub fn post(target: &Target, path: &str, content_type: &str, body: &[u8]) -> Result<Prepared, ClientError> {
        if http::HeaderValue::from_str(content_type).is_err() {
            return Err(ClientError::new(Kind::Connect, format!("the content type '{content_type}' cannot be sent")));
        }
        let pieces = vec![Bytes::copy_from_slice(body)];
        let outgoing = Outgoing { path: path.to_owned(), verb: Verb::Post, json_length: None, pieces, infer: false };
        let head = head::request(target, &outgoing)?.replacen(JSON, &format!("Content-Type: {content_type}"), 1);
        Ok(Prepared::Http(joined(&head, &outgoing.pieces)))
    }
}

fn joined(head: &str, pieces: &[Bytes]) -> Bytes {
    let mut whole = BytesMut::with_capacity(head.len() + pieces.iter().map(Bytes::len).sum::<usize>());
    whole.extend_from_slice(head.as_bytes());
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

/// What decides when a request is sent.
#[derive(Clone, Debug)]
pub enum Loop {
    /// So many callers, each with one request at a time.
    Closed {
        /// How many.
        callers: NonZeroUsize,
    },
    /// A schedule; at most so many requests are under way, and what is due beyond waits here, which its latency shows.
    Open {
        /// When requests are due.
        schedule: Schedule,
        /// Most requests under way.
        in_flight: NonZeroUsize,
    },
}

/// A load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who is asked.
    pub target: Target,
    /// Sent in turn.
    pub requests: Vec<Prepared>,
    /// When.
    pub pace: Loop,
    /// Threads that send and receive.
    pub threads: NonZeroUsize,
    /// gRPC: most calls that share a connection.
    pub calls_per_connection: NonZeroUsize,
    /// How many requests are sent in all; without end where there is no number.
    pub count: Option<u64>,
    /// Answers that a cut keeps whole, for who checks them.
    pub samples: usize,
}

impl Plan {
    /// Most requests that are under way.
    pub fn in_flight(&self) -> usize {
        match self.pace {
            Loop::Closed { callers } => callers.get(),
            Loop::Open { in_flight, .. } => in_flight.get(),
        }
    }
}
