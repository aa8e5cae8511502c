//! What encrypted connections are made of, for both ends: certificates and keys out of files, roots to trust, and what
//! a client is configured with.

#![forbid(unsafe_code)]

pub mod client;
mod fault;
pub mod files;
mod pinned;
mod version;

pub use client::Identity;
pub use fault::{CertificateWords, certificate_fault, refusal};
pub use files::FileError;
