//! What asks servers from Python: arrays in, arrays out, typed errors. The work is `alipes_client`'s.

mod errors;
mod inputs;
mod outputs;
mod parameters;
pub mod stream;
mod waiting;
