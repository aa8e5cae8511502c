//! The body of an HTTP request, received once into memory that suits tensors.

use alipes_protocol::{Code, InferError, limits};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

/// Alignment in bytes that tensor data is received with: the widest vector loads of today's processors.
const ALIGNMENT: usize = 64;

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
pub async fn read(mut body: Incoming, aligned_at: usize, max_bytes: u64) -> Result<Bytes, InferError> {
    let announced = body.size_hint();
    let lower = announced.lower();
    if lower > max_bytes {
        return Err(too_large(lower, max_bytes));
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if announced.exact() == Some(first.len() as u64) {
        return Ok(first);
    }
    let reserve = usize::try_from(lower).unwrap_or(usize::MAX).clamp(first.len(), limits::BODY_RESERVE_BYTES.max(first.len()));
    let mut buffer = BytesMut::with_capacity(reserve + ALIGNMENT);
    let start = (buffer.as_ptr() as usize).wrapping_add(aligned_at).wrapping_neg() % ALIGNMENT;
    buffer.resize(start, 0);
    buffer.extend_from_slice(&first);
    drop(first);
    while let Some(piece) = next(&mut body).await? {
        let length = (buffer.len() - start + piece.len()) as u64;
        if length > max_bytes {
            return Err(too_large(length, max_bytes));
        }
        buffer.extend_from_slice(&piece);
    }
    Ok(buffer.freeze().slice(start..))
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
