//! What is sent, to whom, and when.

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use alipes_client::grpc::{local_stream, unary};
use alipes_client::http::head;
use alipes_client::{ClientError, Kind, Outgoing, Target, Verb, Wire};
use bytes::{Bytes, BytesMut};

use crate::arrivals::Schedule;
use crate::chains::{Ids, Unnumbered};
use crate::compress::compressed;
use crate::record::Keep;

/// The line of a head that a post replaces.
const JSON: &str = "Content-Type: application/json";

/// Messages up to this size are quicker copied into what is sent than sent from where they lie.
const SMALL_BYTES: usize = 64 * 1024;

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// Head and body as they travel.
    Http(Bytes),
    /// A call.
    Grpc {
        /// Its head, as [`alipes_client::grpc::unary::head`] makes it.
        head: Box<http::Request<()>>,
        /// Its method.
        method: Box<str>,
        /// The five bytes of the prefix, then the message.
        message: Bytes,
    },
    /// A request on a stream of inference requests.
    Stream {
        /// The stream's head.
        head: Box<http::Request<()>>,
        /// The five bytes of the prefix, then the message.
        message: Bytes,
        /// Whether the model may answer with any number of responses, of which the last one says so.
        decoupled: bool,
    },
    /// One of those, without the id of its sequence.
    OfSequence(Box<Unnumbered>),
}

impl Prepared {
    /// Whether it goes over a stream.
    pub fn is_stream(&self) -> bool {
        match self {
            Prepared::Stream { .. } => true,
            Prepared::OfSequence(request) => request.is_stream(),
            Prepared::Http(_) | Prepared::Grpc { .. } => false,
        }
    }

    /// A request of the client's own as it travels.
    ///
    /// # Errors
    /// Headers of the target that cannot be sent.
    pub fn new(target: &Target, outgoing: &Outgoing) -> Result<Prepared, ClientError> {
        match target.wire {
            Wire::Http => Ok(Prepared::Http(joined(&head::request(target, outgoing)?, &outgoing.pieces))),
            Wire::Grpc => {
                let (head, method) = (unary::head(target, &outgoing.path)?, outgoing.path.as_str().into());
                let message = compressed(joined("", &outgoing.pieces), target.compression);
                Ok(Prepared::Grpc { head: Box::new(head), method, message })
            }
        }
    }

    /// An inference on a stream, over gRPC.
    ///
    /// # Errors
    /// Headers of the target that cannot be sent.
    pub fn stream(target: &Target, outgoing: &Outgoing, decoupled: bool) -> Result<Prepared, ClientError> {
        let head = Box::new(local_stream::head(target)?);
        let message = compressed(joined("", &outgoing.pieces), target.compression);
        Ok(Prepared::Stream { head, message, decoupled })
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
    /// A schedule; at most so many requests of each source are under way, and what is due beyond waits here, which its
    /// latency shows.
    Open {
        /// When requests are due.
        schedule: Schedule,
        /// Most requests under way.
        in_flight: NonZeroUsize,
    },
    /// Further requests beside those under way, as soon as each of the last that began has had some responses or is
    /// over. One thread sends them, each over a stream of its own.
    Waves(Waves),
}

/// How many requests begin together.
#[derive(Clone, Copy, Debug)]
pub struct Waves {
    /// In the first wave.
    pub first: NonZeroUsize,
    /// In each further one.
    pub further: NonZeroUsize,
    /// In all waves together: the last one has what is left.
    pub all: NonZeroUsize,
    /// Responses of each request before the next wave.
    pub responses: NonZeroU64,
}

/// Requests for one server, and how often they are sent beside those for others.
#[derive(Clone, Debug)]
pub struct Source {
    /// Who is asked.
    pub target: Target,
    /// Sent in turn.
    pub requests: Vec<Prepared>,
    /// Which requests are those of sequences; without sequences each request is on its own.
    pub sequences: Option<Sequences>,
    /// Its share beside that of other sources: of the sequences in a closed loop where it has any, else of the
    /// requests.
    pub weight: f64,
}

/// Requests that one caller sends one after the other. A sequence is a chain from its beginning to its end, under an id
/// of its own; chains are sent in turn.
#[derive(Clone, Debug)]
pub struct Sequences {
    /// The requests of each.
    pub chains: Vec<Range<usize>>,
    /// Ids, used in turn.
    pub ids: Arc<Ids>,
    /// Most sequences under way; as many as there may be requests where it is left open.
    pub most: Option<NonZeroUsize>,
}

impl Sequences {
    /// Most sequences that may be under way at a time.
    pub fn most(&self) -> usize {
        let ids = self.ids.count();
        self.most.map_or(ids, |most| ids.min(most.get()))
    }
}

impl Source {
    /// Whether all of its requests are calls of gRPC that are quickly copied.
    pub fn is_small(&self) -> bool {
        let is_small = |request: &Prepared| match request {
            Prepared::Grpc { message, .. } => message.len() <= SMALL_BYTES,
            Prepared::OfSequence(request) => {
                self.target.wire == Wire::Grpc && !request.is_stream() && request.size() <= SMALL_BYTES
            }
            Prepared::Http(_) | Prepared::Stream { .. } => false,
        };
        self.requests.iter().all(is_small)
    }
}

/// A load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is sent to whom.
    pub sources: Vec<Source>,
    /// When.
    pub pace: Loop,
    /// Threads that send and receive.
    pub threads: NonZeroUsize,
    /// gRPC: most calls that share a connection.
    pub calls_per_connection: NonZeroUsize,
    /// How many requests are sent in all; without end where there is no number. Sequences that have begun are ended.
    pub count: Option<u64>,
    /// Longest wait for an answer, after which the request has failed.
    pub limit: Option<Duration>,
    /// What a cut keeps beside sums.
    pub keep: Keep,
}

impl Plan {
    /// Most requests that are under way, of each source in an open loop.
    pub fn in_flight(&self) -> usize {
        match self.pace {
            Loop::Closed { callers } => callers.get(),
            Loop::Open { in_flight, .. } => in_flight.get(),
            Loop::Waves(waves) => waves.all.get(),
        }
    }

    /// Threads that send: no more than there are requests under way, and one for waves.
    pub fn senders(&self) -> usize {
        match self.pace {
            Loop::Waves(_) => 1,
            _ => self.threads.get().min(self.in_flight()),
        }
    }
}
