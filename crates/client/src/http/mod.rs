//! HTTP from a client's side: JSON, with binary tensors behind it.

mod body;
pub mod connection;
mod head;
pub mod reply;
pub mod request;
mod values;
