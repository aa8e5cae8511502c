//! What encrypted connections are made of, for both ends: certificates and keys out of files, roots to trust, and what
//! a client is configured with.

#![forbid(unsafe_code)]

pub mod client;
pub mod files;
mod pinned;
mod version;

pub use client::Identity;
pub use files::FileError;
pub use version::{IS_OTHER_THAN_VERSION_3, is_other_than_version_3};
