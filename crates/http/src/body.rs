//! The body of an HTTP request, received once into memory that suits tensors.

use std::sync::Arc;

use alipes_link::RequestArena;
use alipes_net::aligned::AlignedBytes;
use alipes_net::connection::{BodyError, RequestBody};
use alipes_protocol::{Code, InferError, call, limits};
use alipes_request::budget::{Budget, Charge};
use alipes_service::offload::offload;
use alipes_stats::turn::{Task, timed};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, SizeHint};

/// Reads and drops the rest of a body that its request was answered without, while the answer is already being sent.
///
/// A client that is still sending would otherwise find the connection closed before it has read why, and the
/// connection could not serve on. Past `HTTP_DISCARD_BYTES` or `HTTP_DISCARD_TIME` the connection is given up.
///
/// # Returns
///
/// False for a body whose announced length says already that the connection will be given up, which the answer has to
/// tell.
pub fn discard(mut body: RequestBody) -> bool {
    if body.is_end_stream() {
        return true;
    }
    let fits = body.size_hint().lower() <= limits::HTTP_DISCARD_BYTES as u64;
    let discard = tokio::time::timeout(limits::HTTP_DISCARD_TIME, async move {
        let mut discarded = 0;
        while let Ok(Some(piece)) = next(&mut body).await {
            discarded += piece.len();
            if discarded > limits::HTTP_DISCARD_BYTES {
                break;
            }
        }
    });
    tokio::spawn(timed(Task::Discard, discard));
    fits
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
    /// What the body is charged to.
    pub budget: &'a Arc<Budget>,
}

/// Reads a whole body, and says what it is charged.
///
/// Where tensors begin, there is a 64-byte boundary, unless the body arrives in one piece: then that piece is handed on
/// as it is, and an engine that needs alignment copies the few bytes.
///
/// # Errors
///
/// `TooLarge` beyond the limit and `Overloaded` where there is no room now, which are checked against the announced
/// length before anything is read; `InvalidArgument` where the connection breaks off.
pub async fn read(body: &mut RequestBody, expected: Expected<'_>) -> Result<(Body, Charge), InferError> {
    let announced = announced(body, &expected)?;
    let Some(first) = next(body).await? else { return Ok((Body::Whole(Bytes::new()), Charge::default())) };
    if announced.exact() == Some(first.len() as u64) {
        let mut charge = Charge::default();
        charge.grow(expected.budget, first.len())?;
        return Ok((Body::Whole(first), charge));
    }
    let received = Received::new(&expected, usize::try_from(announced.lower()).unwrap_or(usize::MAX));
    Ok(receive(received, first, body, expected.max_bytes).await?.freeze())
}

/// What a body announces of its length, where it may be read.
fn announced(body: &RequestBody, expected: &Expected<'_>) -> Result<SizeHint, InferError> {
    let announced = body.size_hint();
    if announced.lower() > expected.max_bytes {
        return Err(too_large(announced.lower(), expected.max_bytes));
    }
    expected.budget.check(announced.lower())?;
    Ok(announced)
}

/// Receives the pieces of a body from its first on, until so many bytes are there.
async fn receive(
    mut received: Received,
    first: Bytes,
    body: &mut RequestBody,
    max_bytes: u64,
) -> Result<Received, InferError> {
    received.push(first)?;
    while let Some(piece) = next(body).await? {
        let length = (received.len() + piece.len()) as u64;
        if length > max_bytes {
            return Err(too_large(length, max_bytes));
        }
        if received.moved_by(piece.len()) <= limits::MOVED_AT_ONCE_BYTES {
            received.push(piece)?;
        } else {
            received = Box::pin(offload(move || received.with(piece))).await.unwrap_or_else(|| Err(no_room()))?;
        }
    }
    Ok(received)
}

/// Reads a whole body as the one element of a `BYTES` tensor, with its length in front. `expected` names no header.
///
/// One of announced length is received where it is needed; any other is copied once more.
///
/// # Errors
///
/// As for `read`.
pub async fn read_element(body: &mut RequestBody, expected: Expected<'_>) -> Result<(Bytes, Charge), InferError> {
    let announced = announced(body, &expected)?.exact().and_then(|length| usize::try_from(length).ok());
    let Some(first) = next(body).await? else { return Ok((call::element(&[]), Charge::default())) };
    let Some(length) = announced else {
        let received = receive(Received::new(&expected, 0), first, body, expected.max_bytes).await?;
        let (Body::Whole(whole) | Body::Parts { tensors: whole, .. }, charge) = received.freeze();
        return Ok((as_element(whole).await?, charge));
    };
    let mut charge = Charge::default();
    if length == first.len() {
        charge.grow(expected.budget, call::PREFIX_BYTES + length)?;
        return Ok((call::element(&first), charge));
    }
    let expected = Expected { header_length: Some(0), ..expected };
    let mut received = Received::new(&expected, call::PREFIX_BYTES + length);
    received.extend(&call::prefix(length))?;
    let max_bytes = expected.max_bytes.saturating_add(call::PREFIX_BYTES as u64);
    let (Body::Whole(element) | Body::Parts { tensors: element, .. }, charge) =
        receive(received, first, body, max_bytes).await?.freeze();
    Ok((element, charge))
}

/// A body with its length in front: a copy, made beside the network where that takes long.
///
/// # Errors
///
/// There is no memory for it.
pub async fn as_element(whole: Bytes) -> Result<Bytes, InferError> {
    if whole.len() <= limits::MOVED_AT_ONCE_BYTES {
        return Ok(call::element(&whole));
    }
    Box::pin(offload(move || call::element(&whole))).await.ok_or_else(no_room)
}

fn no_room() -> InferError {
    InferError::internal("there is no memory for the request body")
}

/// Reads a body without tensors.
///
/// # Errors
///
/// As for `read`.
pub async fn read_text(
    body: &mut RequestBody,
    max_bytes: u64,
    budget: &Arc<Budget>,
) -> Result<(Bytes, Charge), InferError> {
    match read(body, Expected { header_length: None, max_bytes, memory: None, budget }).await? {
        (Body::Whole(text) | Body::Parts { json: text, .. }, charge) => Ok((text, charge)),
    }
}

/// The received part of a body that arrives in several pieces.
pub(super) struct Received {
    parts: Parts,
    budget: Arc<Budget>,
    charge: Charge,
}

enum Parts {
    Whole(AlignedBytes),
    Split { header_length: usize, json: AlignedBytes, tensors: AlignedBytes },
}

impl Received {
    /// An empty buffer for the announced number of bytes.
    pub(super) fn new(expected: &Expected<'_>, announced: usize) -> Received {
        let parts = match (expected.memory, expected.header_length) {
            (Some(memory), Some(header_length)) => Parts::Split {
                header_length,
                json: AlignedBytes::new(header_length, 0),
                tensors: AlignedBytes::for_workers(Arc::clone(memory), announced.saturating_sub(header_length)),
            },
            (_, header_length) => Parts::Whole(AlignedBytes::new(announced, header_length.unwrap_or(0))),
        };
        Received { parts, budget: Arc::clone(expected.budget), charge: Charge::default() }
    }

    /// Bytes that are copied so that there is room for a piece of so many.
    fn moved_by(&self, bytes: usize) -> usize {
        match &self.parts {
            Parts::Whole(whole) => whole.moved_by(bytes),
            Parts::Split { json, tensors, .. } => json.moved_by(bytes) + tensors.moved_by(bytes),
        }
    }

    /// This body with one more piece of the network's.
    ///
    /// # Errors
    ///
    /// As for `push`.
    fn with(mut self, piece: Bytes) -> Result<Received, InferError> {
        self.push(piece).map(|()| self)
    }

    /// Appends a piece of the network's.
    ///
    /// # Errors
    ///
    /// `Overloaded` where there is no room for it now.
    fn push(&mut self, piece: Bytes) -> Result<(), InferError> {
        match &mut self.parts {
            Parts::Whole(bytes) => bytes.push(piece),
            Parts::Split { .. } => return self.extend(&piece),
        }
        self.charge.grow(&self.budget, self.capacity())
    }

    /// Appends a piece.
    ///
    /// # Errors
    ///
    /// `Overloaded` where there is no room for it now.
    pub(super) fn extend(&mut self, piece: &[u8]) -> Result<(), InferError> {
        match &mut self.parts {
            Parts::Whole(bytes) => bytes.extend(piece),
            Parts::Split { header_length, json, tensors } => {
                let missing = *header_length - json.len();
                let (front, behind) = piece.split_at(missing.min(piece.len()));
                json.extend(front);
                tensors.extend(behind);
            }
        }
        self.charge.grow(&self.budget, self.capacity())
    }

    fn capacity(&self) -> usize {
        match &self.parts {
            Parts::Whole(bytes) => bytes.capacity(),
            Parts::Split { json, tensors, .. } => json.capacity() + tensors.capacity(),
        }
    }

    /// Bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        match &self.parts {
            Parts::Whole(bytes) => bytes.len(),
            Parts::Split { json, tensors, .. } => json.len() + tensors.len(),
        }
    }

    /// What has arrived, and what it is charged.
    pub(super) fn freeze(self) -> (Body, Charge) {
        let body = match self.parts {
            Parts::Whole(bytes) => Body::Whole(bytes.freeze()),
            // The parser refuses a header that is longer than the body.
            Parts::Split { header_length, json, .. } if json.len() < header_length => Body::Whole(json.freeze()),
            Parts::Split { json, tensors, .. } => Body::Parts { json: json.freeze(), tensors: tensors.freeze() },
        };
        (body, self.charge)
    }
}

/// The next piece of data; trailers are passed over.
async fn next(body: &mut RequestBody) -> Result<Option<Bytes>, InferError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|cause| match cause {
            BodyError::SmallChunks => InferError::invalid(cause.to_string()),
            cause => InferError::invalid(format!("the request body broke off: {cause}")),
        })?;
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
        let budget = Budget::new(u64::MAX);
        let expected = Expected { header_length, max_bytes: u64::MAX, memory: Some(arena), budget: &budget };
        let mut received = Received::new(&expected, body.len());
        body.chunks(piece_bytes).for_each(|piece| received.extend(piece).unwrap());
        assert_eq!(received.len(), body.len());
        received.freeze().0
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
    fn a_body_is_charged_for_its_memory_not_its_announced_length() {
        let budget = Budget::new(4 << 20);
        let expected = Expected { header_length: None, max_bytes: u64::MAX, memory: None, budget: &budget };
        let mut received = Received::new(&expected, 1 << 30);
        assert_eq!(budget.used(), 0);
        received.extend(b"{").unwrap();
        assert_eq!(budget.used(), 0, "one byte is free");
        let refused = (0..100).find_map(|_| received.extend(&[0; 100_000]).err());
        assert_eq!(refused.map(|error| error.code), Some(Code::Overloaded));
        drop(received);
        assert_eq!(budget.used(), 0);
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
