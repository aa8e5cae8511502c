//! Inference requests and responses as JSON, with binary tensors behind it where a header says so.
//!
//! A request is read by one of two ways that agree wherever both answer. `fast` walks the document once and parses
//! numbers straight into the tensor; at anything unusual it gives up. `exact` then checks the grammar, reads the
//! document field by field in Triton's order, and so finds the answer or the very error that Triton gives.

mod cursor;
mod data;
mod digits;
mod error;
mod exact;
mod explain;
mod fast;
mod fill;
mod generate;
mod generated;
mod number;
mod options;
mod parameters;
mod parse;
pub mod payload;
mod response;
pub mod rows;
mod rows_text;
mod text;
pub mod value;
mod write;

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod fuzz;

use std::cell::Cell;

use bytes::Bytes;

/// The pieces of the decoders, for readers of other bodies.
pub mod reading {
    pub use super::check_text_size;
    pub use super::data::read_leaves as read_values;
    pub use super::explain::{not_an_input, parse, show, values_fault};
    pub use super::fill::read as read_list;
    pub use super::options::DecodeContext;
    pub use super::parse::{peek, skip_space, skip_value};
}

/// The pieces of the encoders, for writers of other bodies.
pub mod writing {
    pub use super::response::element_bytes;
    pub use super::rows_text::{real, write_row};
    pub use super::write::string;
}

pub use generate::{DeclaredInput, decode_generate};
pub use generated::{encode_generated, generated_text_bytes};
use options::DecodeContext;
pub use options::{DecodeOptions, Memory};
pub use response::{EncodedResponse, encode_response, text_bytes};

use crate::codec::binary::{self, Tail};
use crate::{Code, InferError, InferRequest, Regions};

/// The request that a body carries: all of it is JSON, or `header_length` bytes of JSON are followed by tensors.
///
/// Tensors behind the JSON stay slices of `body`; those in shared memory come from `regions`. What can only be judged
/// against the model is left to the one who knows it. A raw body, whose header length is 0, is no JSON and not for this
/// function.
///
/// # Errors
///
/// Triton's code and text for the first thing that is wrong, in Triton's order; most of them are `Internal`.
pub fn decode_request<'a>(
    body: &Bytes,
    header_length: Option<usize>,
    model_name: &'a str,
    options: impl Into<DecodeOptions<'a>>,
    regions: &mut impl Regions,
) -> Result<InferRequest, InferError> {
    let length = header_length.unwrap_or(body.len());
    let Some(text) = body.get(..length) else {
        return Err(binary::out_of_range(length.to_string().as_bytes(), body.len() as u64));
    };
    decode_parts(text, body.slice(length..), model_name, options, regions)
}

/// The request that a body carries, whose JSON and tensors were received apart.
///
/// # Errors
///
/// As for [`decode_request`].
pub fn decode_parts<'a>(
    text: &[u8],
    tensors: Bytes,
    model_name: &'a str,
    options: impl Into<DecodeOptions<'a>>,
    regions: &mut impl Regions,
) -> Result<InferRequest, InferError> {
    let options = options.into();
    check_text_size(text.len(), options.max_input_bytes)?;
    let reserved = Cell::new(0);
    let context = DecodeContext { model: model_name, options, reserved: &reserved };
    if let Some(request) = fast::decode(text, Tail::new(tensors.clone()), context) {
        return Ok(request);
    }
    // What the first way took is free again.
    reserved.set(0);
    exact::decode(text, Tail::new(tensors), context, regions)
}

/// Refuses a text that is longer than it may be.
///
/// # Errors
///
/// `TooLarge`.
pub fn check_text_size(length: usize, max_input_bytes: usize) -> Result<(), InferError> {
    if length <= max_input_bytes {
        return Ok(());
    }
    Err(InferError::new(
        Code::TooLarge,
        format!(
            "request JSON size of {length} bytes exceeds the maximum allowed input size of {max_input_bytes} bytes. \
             Use --http-max-input-size to increase the limit."
        ),
    ))
}
