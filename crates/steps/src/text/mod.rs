//! Texts become tokens, and tokens texts, by a `tokenizer.json`.
//!
//! The crate `tokenizers` does the work, with the regular expressions that its Python wheel has, so that both give the
//! same tokens.
//!
//! - `file`: reading it, within limits.
//! - `bounds`, `growth`: what it may ask for; how much longer it may make a text.
//! - `effort`: what its regular expressions may cost.
//! - `tokenizer`, `padding`: a text's tokens; rows of one length.
//! - `words`, `frame`, `locality`: texts put together from words whose tokens are known.
//! - `detokenizer`: the way back.
//! - `engines`: both as engines.
//! - `error`: what is refused, and the limits.

mod bounds;
mod detokenizer;
mod effort;
mod engines;
mod error;
mod file;
mod frame;
mod growth;
mod locality;
mod padding;
#[cfg(test)]
mod tests;
mod tokenizer;
mod words;

pub use detokenizer::Detokenizer;
pub use engines::{Texts, Tokens};
pub use tokenizer::Tokenizer;
