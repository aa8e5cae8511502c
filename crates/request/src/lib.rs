//! One request on its way through the server: its checks, its responder, the memory that it takes. It knows neither
//! models that are loaded nor what executes them.
//!
//! - `check`: whether a request fits a model's declaration.
//! - `responder`: the obligation to answer, and batches of answers by network thread.
//! - `completion`: finished answers on their way to a network thread.
//! - `mailbox`: where any number of responses arrive.
//! - `order`: answers in the order of requests.
//! - `budget`: the bytes of requests and answers in flight.
//! - `inflight`: the number of requests in flight, and the end of admission.
//! - `chain`: the models that wait for a request.
//! - `visit`: requests that read or write the state of a sequence.

#![forbid(unsafe_code)]

pub mod budget;
pub mod chain;
pub mod check;
pub mod completion;
pub mod inflight;
pub mod mailbox;
pub mod order;
pub mod responder;
pub mod visit;
