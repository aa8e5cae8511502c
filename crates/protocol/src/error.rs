//! The one table of errors: code, HTTP status, gRPC code, metric reason, retry hint.

use std::fmt;

/// What kind of thing went wrong; stable, for machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// Neither of the others; Triton's UNKNOWN.
    Unknown,
    /// The backend raised, or a value could not be read where Triton answers INTERNAL.
    Internal,
    /// No such model, version or thing.
    NotFound,
    /// Malformed body, wrong shape, unknown input.
    InvalidArgument,
    /// Exists but cannot serve now, or the queue is full.
    Unavailable,
    /// Valid, but not offered here.
    Unsupported,
    /// The name is taken.
    AlreadyExists,
    /// Withdrawn by the caller.
    Cancelled,
    /// A named limit on outside input was exceeded.
    TooLarge,
    /// The caller's deadline has passed.
    DeadlineExceeded,
    /// There is no room for it now.
    Overloaded,
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct CodeRow {
    /// The code that the line describes.
    pub code: Code,
    /// HTTP status.
    pub http_status: u16,
    /// Number of the gRPC status code.
    pub grpc_code: i32,
    /// Triton's word for it in load failures, for example `Invalid argument`.
    pub word: &'static str,
    /// The Python exception that a client raises.
    pub exception: &'static str,
    /// Whether the same request may succeed later.
    pub retry: &'static str,
}

/// Every code with its consequences. Source: Triton's mapping of codes to statuses.
pub const TABLE: [CodeRow; 11] = [
    row(Code::Unknown, 400, 2, "Unknown", "InferError", "no"),
    row(Code::Internal, 500, 13, "Internal", "Internal", "no"),
    row(Code::NotFound, 404, 5, "Not found", "NotFound", "no"),
    row(Code::InvalidArgument, 400, 3, "Invalid argument", "InvalidArgument", "no"),
    row(Code::Unavailable, 503, 14, "Unavailable", "NotReady", "after a while"),
    row(Code::Unsupported, 501, 12, "Unsupported", "Unsupported", "no"),
    row(Code::AlreadyExists, 400, 6, "Already exists", "AlreadyExists", "no"),
    row(Code::Cancelled, 400, 1, "Cancelled", "Cancelled", "no"),
    row(Code::TooLarge, 400, 3, "Invalid argument", "TooLarge", "no"),
    row(Code::DeadlineExceeded, 504, 4, "Deadline exceeded", "DeadlineExceeded", "the caller decides"),
    row(Code::Overloaded, 503, 8, "Unavailable", "Overloaded", "after a while"),
];

const fn row(
    code: Code,
    http_status: u16,
    grpc_code: i32,
    word: &'static str,
    exception: &'static str,
    retry: &'static str,
) -> CodeRow {
    CodeRow { code, http_status, grpc_code, word, exception, retry }
}

impl Code {
    /// The code's line of the table.
    pub const fn row(self) -> &'static CodeRow {
        &TABLE[self as usize]
    }
}

/// Who found the error; HTTP labels its body differently (recorded Triton behaviour).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Before the body was read as a request: unknown model, header length, compression.
    Door,
    /// While the request was parsed, checked or queued.
    Request,
    /// By the model, or while its answer was encoded.
    Model,
}

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InferError {
    /// Stable kind.
    pub code: Code,
    /// What was seen, what was expected and where; for people.
    pub message: String,
    /// Who found it.
    pub origin: Origin,
}

impl InferError {
    /// An error found while the request was parsed, checked or queued.
    pub fn new(code: Code, message: impl Into<String>) -> InferError {
        InferError { code, message: message.into(), origin: Origin::Request }
    }

    /// The caller's request is wrong.
    pub fn invalid(message: impl Into<String>) -> InferError {
        InferError::new(Code::InvalidArgument, message)
    }

    /// Triton answers INTERNAL here, or it is our own fault.
    pub fn internal(message: impl Into<String>) -> InferError {
        InferError::new(Code::Internal, message)
    }

    /// The same error, found elsewhere.
    #[must_use]
    pub fn at(mut self, origin: Origin) -> InferError {
        self.origin = origin;
        self
    }
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InferError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_finds_its_own_row() {
        for row in &TABLE {
            assert_eq!(row.code.row().code, row.code);
        }
    }
}
