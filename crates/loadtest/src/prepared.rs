//! One request, ready to be sent, or ready but for the id of its sequence.

use alipes_client::grpc::{local_stream, unary};
use alipes_client::http::head;
use alipes_client::{ClientError, Kind, Outgoing, Target, Verb, Wire};
use bytes::{Bytes, BytesMut};

use crate::compress::compressed;

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
        let outgoing = Outgoing {
            path: path.to_owned(),
            verb: Verb::Post,
            json_length: None,
            pieces,
            infer: false,
            sequence: None,
            headers: Vec::new(),
        };
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

/// A request of a sequence. The id of its sequence is written into it when it is sent.
#[derive(Clone, Debug)]
pub struct Unnumbered {
    outgoing: Outgoing,
    /// On a stream: whether the model is decoupled.
    stream: Option<bool>,
}

impl Unnumbered {
    /// A request that has parameters, but no id of a sequence; with `stream`, one on a stream to a model that is
    /// decoupled or not.
    ///
    /// # Errors
    /// A request without parameters, or headers of the target that cannot be sent.
    pub fn new(target: &Target, outgoing: Outgoing, stream: Option<bool>) -> Result<Unnumbered, ClientError> {
        let request = Unnumbered { outgoing, stream };
        request.numbered(target, 0)?;
        Ok(request)
    }

    /// The request with the id of its sequence, as a client would send it.
    ///
    /// # Errors
    /// Those of [`Unnumbered::new`].
    pub fn numbered(&self, target: &Target, id: u64) -> Result<Prepared, ClientError> {
        let needs = || ClientError::new(Kind::Connect, "a request of a sequence needs parameters".to_owned());
        let outgoing = self.outgoing.of_sequence(target.wire, id).ok_or_else(needs)?;
        match self.stream {
            Some(decoupled) => Prepared::stream(target, &outgoing, decoupled),
            None => Prepared::new(target, &outgoing),
        }
    }

    /// Whether it goes over a stream.
    pub fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Bytes of its body.
    pub fn size(&self) -> usize {
        self.outgoing.pieces.iter().map(Bytes::len).sum()
    }
}
