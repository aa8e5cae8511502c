//! What encrypted connections are made of, for both ends: certificates and keys out of files, roots to trust, and what
//! a client is configured with.

#![forbid(unsafe_code)]

pub mod client;
pub mod files;
mod pinned;

pub use client::Identity;
pub use files::FileError;
