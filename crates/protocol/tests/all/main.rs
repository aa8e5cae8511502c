//! The integration tests of this crate, as one program: it links once.

mod every_tensor;
mod support;

mod damaged_grpc;
mod damaged_json;
mod fuzz;
mod grpc_roundtrip;
mod grpc_vectors;
mod json_properties;
mod json_rows;
mod json_value;
mod json_vectors;
mod regions;
