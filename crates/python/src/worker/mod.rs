//! What a Python worker process uses: Triton's classes over shared memory, and the link to the server.
//!
//! [`worker_link::WorkerLink`] claims requests and answers them; [`reply::Reply`] is what a request is owed, held by
//! its object and its response senders; [`lease::Loan`] is the memory of its inputs, held by every tensor and array
//! over it.

mod answers;
mod argument;
pub mod arrays;
mod calls;
mod claim_pace;
pub mod context;
mod dlpack;
pub mod errors;
mod fork;
pub mod iterator;
pub mod joint;
mod lease;
mod lifeline;
mod link;
mod mailbox;
mod missing_response;
mod outputs;
pub mod parameters;
pub mod plain_call;
mod reply;
pub mod request;
pub mod response;
pub mod rows;
pub mod sender;
pub mod strings;
pub mod tensor;
pub mod worker_link;
