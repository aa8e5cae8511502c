//! Between bytes and meaning: one module per form.

pub mod binary;
pub mod elements;
pub mod json;
pub mod proto;
mod requested;
