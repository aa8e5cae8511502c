//! Between bytes and meaning: one module per form.

pub mod proto;
