//! The protocol: tensors, requests, responses, errors, limits, and the codecs between them and bytes.
//!
//! This crate knows no socket, no thread and no model. Bytes come in, meaning goes out, and back.

#![forbid(unsafe_code)]

pub mod call;
pub mod codec;
pub mod copies;
pub mod datatype;
pub mod error;
pub mod limits;
pub mod region;
pub mod release;
pub mod request;
pub mod response;
pub mod shape;
pub mod tensor;
pub mod trace;

pub use datatype::Datatype;
pub use error::{Code, InferError, Origin};
pub use region::{NoRegions, RegionSlice, Regions};
pub use release::TritonRelease;
pub use request::{CorrelationId, InferRequest, Parameter, RequestedOutput, SequenceInfo};
pub use response::InferResponse;
pub use shape::Shape;
pub use tensor::Tensor;
