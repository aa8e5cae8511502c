//! The body of an HTTP request, received once into memory that suits tensors.

use std::sync::Arc;

use alipes_link::RequestArena;
use alipes_protocol::{Code, InferError, limits};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Body as _;

use crate::wire::aligned::AlignedBytes;
use crate::wire::connection::Incoming;

/// Takes what is left of a refused request's body off the connection while the refusal is already on its way.
///
/// A client that is still sending would otherwise find the connection closed before it has read why, and the
/// connection could not serve on. Past `HTTP_DISCARD_BYTES` or `HTTP_DISCARD_TIME` the connection is given up.
pub fn discard(mut body: Incoming) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(tokio::time::timeout(limits::HTTP_DISCARD_TIME, async move {
        let mut discarded = 0;
        while let Ok(Some(piece)) = next(&mut body).await {
            discarded += piece.len();
            if discarded > limits::HTTP_DISCARD_BYTES {
                break;
            }
        }
    }));
}

/// A whole body.
pub enum Body {
    /// In one piece.
    Whole(Bytes),
    /// The JSON, and apart from it the tensors behind it, in memory that the model's workers see.
    Parts {
        /// Exactly as long as the header says.
        json: Bytes,
        /// What follows.
        tensors: Bytes,
    },
}

/// What is known of a body before it is read.
pub struct Expected<'a> {
    /// Length of the JSON in front of tensors; none where all of the body is JSON.
    pub header_length: Option<usize>,
    /// Longest body that is taken.
    pub max_bytes: u64,
    /// The memory of the workers that will look at the tensors, if there are such.
    pub memory: Option<&'a Arc<RequestArena>>,
}

/// Reads a whole body.
///
/// Where tensors begin, there is a 64-byte boundary, unless the body arrives in one piece: then that piece is handed on
/// as it is, and an engine that needs alignment copies the few bytes.
///
/// # Errors
///
/// `TooLarge` beyond the limit, which is checked against the announced length before anything is read;
/// `InvalidArgument` where the connection breaks off.
pub async fn read(body: &mut Incoming, expected: Expected<'_>) -> Result<Body, InferError> {
    let max_bytes = expected.max_bytes;
    let announced = body.size_hint();
    let lower = announced.lower();
    if lower > max_bytes {
        return Err(too_large(lower, max_bytes));
    }
    let Some(first) = next(body).await? else { return Ok(Body::Whole(Bytes::new())) };
    if announced.exact() == Some(first.len() as u64) {
        return Ok(Body::Whole(first));
    }
    let mut received = Received::new(&expected, usize::try_from(lower).unwrap_or(usize::MAX));
    received.extend(&first);
    drop(first);
    while let Some(piece) = next(body).await? {
        let length = (received.len() + piece.len()) as u64;
        if length > max_bytes {
            return Err(too_large(length, max_bytes));
        }
        received.extend(&piece);
    }
    Ok(received.freeze())
}

/// Reads a body without tensors.
///
/// # Errors
///
/// As for `read`.
pub async fn read_text(body: &mut Incoming, max_bytes: u64) -> Result<Bytes, InferError> {
    match read(body, Expected { header_length: None, max_bytes, memory: None }).await? {
        Body::Whole(text) | Body::Parts { json: text, .. } => Ok(text),
    }
}

/// What has come of a body that arrives in several pieces.
pub(super) enum Received {
    Whole(AlignedBytes),
    Parts { header_length: usize, json: AlignedBytes, tensors: AlignedBytes },
}

impl Received {
    /// Nothing yet of so many bytes.
    pub(super) fn new(expected: &Expected<'_>, announced: usize) -> Received {
        match (expected.memory, expected.header_length) {
            (Some(memory), Some(header_length)) => Received::Parts {
                header_length,
                json: AlignedBytes::begin(&[], header_length, 0),
                tensors: AlignedBytes::for_workers(Arc::clone(memory), announced.saturating_sub(header_length)),
            },
            (_, header_length) => Received::Whole(AlignedBytes::begin(&[], announced, header_length.unwrap_or(0))),
        }
    }

    /// Appends a piece.
    pub(super) fn extend(&mut self, piece: &[u8]) {
        match self {
            Received::Whole(bytes) => bytes.extend(piece),
            Received::Parts { header_length, json, tensors } => {
                let missing = *header_length - json.len();
                let (front, behind) = piece.split_at(missing.min(piece.len()));
                json.extend(front);
                tensors.extend(behind);
            }
        }
    }

    /// Bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        match self {
            Received::Whole(bytes) => bytes.len(),
            Received::Parts { json, tensors, .. } => json.len() + tensors.len(),
        }
    }

    /// What has arrived.
    pub(super) fn freeze(self) -> Body {
        match self {
            Received::Whole(bytes) => Body::Whole(bytes.freeze()),
            // A header that is longer than the body is refused by whoever reads it.
            Received::Parts { header_length, json, .. } if json.len() < header_length => Body::Whole(json.freeze()),
            Received::Parts { json, tensors, .. } => Body::Parts { json: json.freeze(), tensors: tensors.freeze() },
        }
    }
}

/// The next piece of data; trailers are passed over.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, InferError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|cause| InferError::invalid(format!("the request body broke off: {cause}")))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_large(length: u64, max_bytes: u64) -> InferError {
    InferError::new(
        Code::TooLarge,
        format!(
            "request JSON size of {length} bytes exceeds the maximum allowed input size of {max_bytes} bytes. \
             Use --http-max-input-size to increase the limit."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body as it is received in pieces of this size.
    fn receive(body: &[u8], header_length: Option<usize>, piece_bytes: usize, arena: &Arc<RequestArena>) -> Body {
        let expected = Expected { header_length, max_bytes: u64::MAX, memory: Some(arena) };
        let mut received = Received::new(&expected, body.len());
        body.chunks(piece_bytes).for_each(|piece| received.extend(piece));
        assert_eq!(received.len(), body.len());
        received.freeze()
    }

    #[test]
    fn the_tensors_of_a_worker_lie_in_its_memory_and_the_json_does_not() {
        let arena = RequestArena::create(1 << 30).unwrap();
        let body: Vec<u8> = (0..=255).cycle().take(3000).collect();
        for piece_bytes in [1, 7, 100, 2999] {
            let Body::Parts { json, tensors } = receive(&body, Some(100), piece_bytes, &arena) else {
                panic!("a body in parts")
            };
            assert_eq!((&json[..], &tensors[..]), (&body[..100], &body[100..]));
            assert!(arena.offset_of(&json).is_none());
            assert!(arena.offset_of(&tensors).is_some_and(|offset| offset.is_multiple_of(64)));
        }
    }

    #[test]
    fn a_body_without_tensors_or_shorter_than_its_header_stays_whole() {
        let arena = RequestArena::create(1 << 30).unwrap();
        for header_length in [None, Some(11)] {
            let Body::Whole(whole) = receive(b"0123456789", header_length, 3, &arena) else { panic!("a whole body") };
            assert_eq!(&whole[..], b"0123456789");
        }
        assert_eq!(arena.used_bytes(), 0);
    }
}
