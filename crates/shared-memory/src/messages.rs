//! What clients are told of regions that cannot be.

use alipes_cuda::OpenError;
use alipes_protocol::{Code, InferError};

use crate::mapping::Unmappable;
use crate::region::MemoryKind;

/// A name that is taken, by a region of either kind.
pub(crate) fn exists(name: &str) -> InferError {
    InferError::new(Code::AlreadyExists, format!("shared memory region '{name}' already in manager"))
}

pub(crate) fn unnamed(kind: MemoryKind) -> InferError {
    InferError::invalid(format!("'region name' is necessary to register {} shared memory region", lower(kind)))
}

pub(crate) fn unknown(name: &str, kind: MemoryKind) -> InferError {
    InferError::new(Code::NotFound, format!("Unable to find {} shared memory region: '{name}'", lower(kind)))
}

/// The region has a name of the other kind.
pub(crate) fn other_kind(name: &str, asked: MemoryKind) -> InferError {
    let (is, is_not) = match asked {
        MemoryKind::System => ("CUDA", "system"),
        MemoryKind::Cuda => ("system", "CUDA"),
    };
    let text = format!("The region named '{name}' is registered as {is} shared memory, not {is_not} shared memory");
    InferError::new(Code::NotFound, text)
}

pub(crate) fn too_many(name: &str, most: usize) -> InferError {
    let text = format!(
        "failed to register shared memory region '{name}': {most} regions are registered, and no more are allowed; \
         unregister some, or start the server with a larger --shared-memory-max-regions"
    );
    InferError::new(Code::Unavailable, text)
}

pub(crate) fn unmappable(name: &str, key: &str, error: &Unmappable) -> InferError {
    let failed = |text: &str| format!("failed to register shared memory region '{name}': {text}");
    match error {
        Unmappable::Missing => InferError::internal(format!("Unable to open shared memory region: '{key}'")),
        Unmappable::NoObject => InferError::internal(format!("Invalid shared memory region: '{key}'")),
        Unmappable::TooShort => InferError::invalid(failed("invalid args")),
        Unmappable::Refused(cause) => {
            // Without a space, as in Triton.
            InferError::invalid(failed(&format!("unable to process address space{}", errno_text(*cause))))
        }
        Unmappable::Unprotected(cause) => InferError::new(Code::Unavailable, failed(cause)),
    }
}

/// Source: Triton's text for a server without GPUs.
pub(crate) fn no_gpus(name: &str) -> InferError {
    InferError::invalid(format!("failed to register CUDA shared memory region: '{name}', GPUs not supported"))
}

/// Source: Triton's text for what follows the name, and the driver's own for what its cause is.
pub(crate) fn unopened(name: &str, error: &OpenError) -> InferError {
    InferError::invalid(format!("failed to register CUDA shared memory region '{name}': {error}"))
}

const fn lower(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::System => "system",
        MemoryKind::Cuda => "cuda",
    }
}

/// The system's words for an error, as C's `strerror` gives them.
fn errno_text(cause: rustix::io::Errno) -> String {
    let text = std::io::Error::from(cause).to_string();
    text.rsplit_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}
