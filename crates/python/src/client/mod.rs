//! What asks servers from Python: arrays in, arrays out, typed errors. The work is `alipes_client`'s.

pub mod errors;
mod inputs;
pub mod link;
pub mod mailbox;
mod outputs;
mod parameters;
pub mod plan;
pub mod requests;
pub mod stream;
pub mod target;
pub mod tls;
pub mod waiting;
