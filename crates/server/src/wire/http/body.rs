//! The body of an HTTP request, received once into memory that suits tensors.

use alipes_protocol::{Code, InferError, limits};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::wire::aligned::AlignedBytes;

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

/// Reads a whole body of at most `max_bytes`.
///
/// The byte at `aligned_at`, where a JSON header ends and tensors begin, comes to lie on a 64-byte boundary, unless
/// the body arrives in one piece: then that piece is handed on as it is, and an engine that needs alignment copies
/// the few bytes.
///
/// # Errors
///
/// `TooLarge` beyond the limit, which is checked against the announced length before anything is read;
/// `InvalidArgument` where the connection breaks off.
pub async fn read(body: &mut Incoming, aligned_at: usize, max_bytes: u64) -> Result<Bytes, InferError> {
    let announced = body.size_hint();
    let lower = announced.lower();
    if lower > max_bytes {
        return Err(too_large(lower, max_bytes));
    }
    let Some(first) = next(body).await? else { return Ok(Bytes::new()) };
    if announced.exact() == Some(first.len() as u64) {
        return Ok(first);
    }
    let mut received = AlignedBytes::begin(&first, usize::try_from(lower).unwrap_or(usize::MAX), aligned_at);
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
