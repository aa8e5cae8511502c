//! JSON as Go reads and writes it: what KServe's router does to bodies, byte for byte.

mod scan;
mod text;
mod tree;

pub use scan::is_valid;
pub(crate) use scan::{elements, members, value_end};
pub use text::{object_text, quoted};
pub(crate) use text::{write_string, write_value};
pub(crate) use tree::{Json, decode_string, parse};
