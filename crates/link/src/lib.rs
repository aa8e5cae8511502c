//! Shared memory between the server and a worker process: both ends of it.
//!
//! Per model version there is one *request arena* ([`RequestArena`]), written by the server and mapped by all workers
//! of the version. Per worker there is one *link*: a header, rings, a slot table and the response arena, with a
//! [`ServerEnd`] on one side and a [`WorkerEnd`] on the other. No tensor ever crosses a socket or a pipe.
//!
//! ```text
//!            request ring, mail ring, free ring ►            (woken by futexes)
//!  ServerEnd                                     WorkerEnd
//!            ◄ answer ring                                   (woken by an eventfd, where the server armed it)
//! ```
//!
//! A request waits in a *slot* until the worker claims it, late, with as many others as it may take at once; until then
//! the server can revoke it. What the worker writes is untrusted: the server copies a message before it reads it, and
//! whatever does not fit is a [`Violation`], never a panic and never a read beside the mapping.

mod arena;
mod batch;
mod descriptors;
mod doorbell;
mod entry;
mod frame;
mod futex;
#[cfg(test)]
mod hostile;
mod layout;
mod lender;
mod link_handle;
mod mail;
mod memory;
mod message;
mod outgoing;
mod request;
mod request_arena;
mod request_slot;
mod request_slots;
mod rings;
mod sender;
mod server_end;
mod tensor;
mod worker_end;

pub use descriptors::{DESCRIPTORS, Descriptors};
pub use entry::Entry;
pub use layout::Geometry;
pub use link_handle::LinkHandle;
pub use mail::{Mail, MailOutcome, ReceivedMail, ReceivedOutcome};
pub use memory::{SharedMemory, sealed_file};
pub use message::{
    Answer, Call, CallKind, InferCall, LogLine, Message, Outcome, Output, OutputData, Times, Violation, monotonic_ns,
};
pub use outgoing::{
    OutAnswer, OutCall, OutCallKind, OutData, OutInferCall, OutMessage, OutOutcome, OutTensor, SendError,
};
pub use request::{Request, RequestHead};
pub use request_arena::{ArenaBuffer, Placed, RequestArena};
pub use server_end::ServerEnd;
pub use tensor::{OwnedTensorName, TensorName, TensorRef, ViewedTensor};
pub use worker_end::{Claimed, Credit, WorkerEnd};
