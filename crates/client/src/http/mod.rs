//! HTTP from a client's side: JSON, with binary tensors behind it.
//!
//! With hyper's client and tokio's sockets instead (15 rounds, two shared cores, November 2026), a small call takes
//! 1.31 times the processor time of the calling process (quartiles 1.15 to 1.43, all 0.77 to 3.72), one with an image
//! of 3x224x224 as much as here (quartiles 0.92 to 1.30), and so does a small one with 64 in flight (0.97 to 1.14).

mod body;
pub mod connection;
pub mod head;
pub mod reply;
pub mod request;
mod values;
