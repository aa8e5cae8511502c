//! Traces of requests, as far as every layer needs them: trace context in headers, and guards that note the end of a
//! request in its record.

pub mod context;
pub mod sent;
pub mod underway;
