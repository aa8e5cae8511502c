//! The messages of `proto/`, and their meaning.

mod contents;
mod decode;
mod locate;
pub mod mark;
mod parameters;
mod records;
mod region;
mod reply;
mod request_message;
mod split;
mod weight;
mod write;

pub use decode::{decode_request, read_request};
pub use locate::{first_raw_output, first_raw_tensor, named_model};
pub use reply::{Reply, StreamReply, check_output, is_elsewhere};
pub use request_message::{MessageInput, MessageOutput, RequestMessage};
pub use split::{Skeleton, Splitter, TensorSink};
pub use weight::{check_fields, parsed_bytes, read_bytes};
pub use write::{Pieces, ResponseMessage, StreamMessage};

/// Messages of `proto/inference.proto` and `proto/model_config.proto`.
#[allow(missing_docs, clippy::all, reason = "generated; the documentation stands in the proto files")]
pub mod inference {
    include!(concat!(env!("OUT_DIR"), "/inference.rs"));
}

/// Messages of `proto/health.proto`.
#[allow(missing_docs, clippy::all, reason = "generated; the documentation stands in the proto files")]
pub mod health {
    include!(concat!(env!("OUT_DIR"), "/grpc.health.v1.rs"));
}

/// Messages of `proto/reflection.proto`, which v1alpha shares.
#[allow(missing_docs, clippy::all, reason = "generated; the documentation stands in the proto files")]
pub mod reflection {
    include!(concat!(env!("OUT_DIR"), "/grpc.reflection.v1.rs"));
}

/// The serialized `FileDescriptorSet` of `proto/`, for readers in other languages.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
