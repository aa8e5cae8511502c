//! What is sent, to whom, and when.

use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use alipes_client::{Target, Wire};

use crate::arrivals::Schedule;
use crate::chains::Sequences;
use crate::prepared::Prepared;
use crate::record::Keep;

/// Messages up to this size are quicker copied into what is sent than sent from where they lie.
const SMALL_BYTES: usize = 64 * 1024;

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
