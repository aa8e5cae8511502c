//! The one table of errors: code, HTTP status, gRPC code, Triton's name, client exception, retry hint.

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
    /// The caller sent no valid credentials: no key of the server, or none for a proxy in front of it.
    Unauthenticated,
    /// The caller lacks the permission; answered by proxies in front of a server.
    PermissionDenied,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct CodeRow {
    /// The code that the row describes.
    pub code: Code,
    /// HTTP status.
    pub http_status: u16,
    /// Number of the gRPC status code.
    pub grpc_code: i32,
    /// Triton's word for it in load failures, for example `Invalid argument`.
    pub word: &'static str,
    /// The name in Triton's error enumeration, where it has one, for example `INVALID_ARG`.
    pub triton_name: Option<&'static str>,
    /// The Python exception that a client raises.
    pub exception: &'static str,
    /// Whether the same request may succeed later.
    pub retry: &'static str,
}

impl CodeRow {
    /// The name of the gRPC status code.
    pub fn grpc_name(&self) -> &'static str {
        grpc_name(self.grpc_code)
    }
}

/// Every code with its consequences. Where rows share a gRPC code, clients raise the exception of the first.
/// Source: Triton's mapping of codes to statuses.
pub const TABLE: [CodeRow; 13] = [
    row(Code::Unknown, 400, 2, "Unknown", Some("UNKNOWN"), "InferError", "no"),
    row(Code::Internal, 500, 13, "Internal", Some("INTERNAL"), "Internal", "no"),
    row(Code::NotFound, 404, 5, "Not found", Some("NOT_FOUND"), "NotFound", "no"),
    row(Code::InvalidArgument, 400, 3, "Invalid argument", Some("INVALID_ARG"), "InvalidArgument", "no"),
    row(Code::Unavailable, 503, 14, "Unavailable", Some("UNAVAILABLE"), "NotReady", "after a while"),
    row(Code::Unsupported, 501, 12, "Unsupported", Some("UNSUPPORTED"), "Unsupported", "no"),
    row(Code::AlreadyExists, 400, 6, "Already exists", Some("ALREADY_EXISTS"), "AlreadyExists", "no"),
    row(Code::Cancelled, 400, 1, "Cancelled", Some("CANCELLED"), "Cancelled", "no"),
    row(Code::TooLarge, 400, 3, "Invalid argument", None, "TooLarge", "no"),
    row(Code::DeadlineExceeded, 504, 4, "Deadline exceeded", None, "DeadlineExceeded", "the caller decides"),
    row(Code::Overloaded, 503, 8, "Unavailable", None, "Overloaded", "after a while"),
    row(Code::Unauthenticated, 401, 16, "Unauthenticated", None, "Unauthenticated", "no"),
    row(Code::PermissionDenied, 403, 7, "Permission denied", None, "PermissionDenied", "no"),
];

const fn row(
    code: Code,
    http_status: u16,
    grpc_code: i32,
    word: &'static str,
    triton_name: Option<&'static str>,
    exception: &'static str,
    retry: &'static str,
) -> CodeRow {
    CodeRow { code, http_status, grpc_code, word, triton_name, exception, retry }
}

/// Names of the gRPC status codes, by number. Source: gRPC's status codes.
const GRPC_NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The name of a gRPC status code; `UNKNOWN` for numbers that gRPC does not define.
pub fn grpc_name(code: i32) -> &'static str {
    usize::try_from(code).ok().and_then(|code| GRPC_NAMES.get(code)).copied().unwrap_or("UNKNOWN")
}

/// The Python exception that a client raises for a gRPC status code.
pub fn grpc_exception(code: i32) -> &'static str {
    TABLE.iter().find(|row| row.grpc_code == code).map_or("InferError", |row| row.exception)
}

impl Code {
    /// The code's row of the table.
    pub const fn row(self) -> &'static CodeRow {
        &TABLE[self as usize]
    }

    /// The code with this name in Triton's error enumeration.
    pub fn from_triton_name(name: &str) -> Option<Code> {
        TABLE.iter().find(|row| row.triton_name == Some(name)).map(|row| row.code)
    }
}

/// Who found the error; HTTP labels its body differently (recorded Triton behaviour).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Before the body was read as a request: unknown model, header length, compression.
    Endpoint,
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

    /// The same error with this origin.
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

    #[test]
    fn triton_names_lead_back_to_their_code() {
        for row in &TABLE {
            if let Some(name) = row.triton_name {
                assert_eq!(Code::from_triton_name(name), Some(row.code));
            }
        }
        assert_eq!(Code::from_triton_name("TOO_LARGE"), None);
    }

    #[test]
    fn grpc_codes_have_names_and_exceptions() {
        assert_eq!((grpc_name(14), grpc_name(99), grpc_name(-1)), ("UNAVAILABLE", "UNKNOWN", "UNKNOWN"));
        assert_eq!(grpc_exception(3), "InvalidArgument");
        assert_eq!(grpc_exception(14), "NotReady");
        assert_eq!(grpc_exception(9), "InferError");
    }
}
