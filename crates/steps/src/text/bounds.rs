//! Bounds on what a `tokenizer.json` asks for: a few bytes of it may ask for any amount of memory, or of time.

use serde::Deserialize;
use serde_json::Value;
use tokenizers::{ModelWrapper, PostProcessorWrapper, Tokenizer};

use super::error::{
    MAX_ADDED_BYTES, MAX_ADDED_TOKENS, MAX_PARTS, MAX_REPEATED, MAX_SPECIAL_TOKENS, MAX_WORD_CHARACTERS,
};

/// Where a sequence of parts has them.
const SEQUENCES: [&str; 4] = ["normalizers", "pretokenizers", "processors", "decoders"];

/// What of a file is looked at before it is read.
#[derive(Deserialize)]
struct AddedTokens {
    #[serde(default)]
    added_tokens: Vec<AddedHead>,
}

#[derive(Deserialize)]
struct AddedHead {
    #[serde(default)]
    content: String,
}

/// Checks a file before it is read. What is no tokenizer passes, since reading it says why.
///
/// # Errors
///
/// What it has more of than the limit.
pub fn check_file(bytes: &[u8]) -> Result<(), String> {
    let Ok(AddedTokens { added_tokens }) = serde_json::from_slice(bytes) else { return Ok(()) };
    at_most("added tokens", added_tokens.len(), MAX_ADDED_TOKENS)?;
    at_most("bytes of added tokens", added_tokens.iter().map(|token| token.content.len()).sum(), MAX_ADDED_BYTES)
}

/// Checks a tokenizer that was read.
///
/// # Errors
///
/// What it has more of than the limit.
pub fn check(tokenizer: &Tokenizer) -> Result<(), String> {
    if let ModelWrapper::WordPiece(model) = tokenizer.get_model() {
        at_most("letters in 'max_input_chars_per_word'", model.max_input_chars_per_word, MAX_WORD_CHARACTERS)?;
    }
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        parts_of(pre_tokenizer)?;
    }
    tokenizer.get_post_processor().map_or(Ok(()), check_frame)
}

/// The parts of something that may be a sequence of parts, which may be sequences, too: each as its document.
///
/// # Errors
///
/// They are more than the limit.
pub fn parts_of(whole: &impl serde::Serialize) -> Result<Vec<Value>, String> {
    let mut parts = Vec::new();
    flatten(serde_json::to_value(whole).unwrap_or_default(), &mut parts);
    at_most("parts that work one after the other", parts.len(), MAX_PARTS)?;
    Ok(parts)
}

fn flatten(mut part: Value, parts: &mut Vec<Value>) {
    let inner = SEQUENCES.iter().find(|name| part[**name].is_array()).map(|name| part[*name].take());
    match inner {
        Some(Value::Array(inner)) => inner.into_iter().for_each(|part| flatten(part, parts)),
        _ => parts.push(part),
    }
}

/// What stands around a text: special tokens, each of which may stand for many, and the text itself, any number of
/// times.
fn check_frame(processor: &PostProcessorWrapper) -> Result<(), String> {
    let (mut special, mut repeated) = (0_usize, 1_usize);
    for part in parts_of(processor)? {
        let (mut most_special, mut most_repeated) = (0, 1);
        for pieces in ["single", "pair"].iter().filter_map(|name| part[name].as_array()) {
            let names: Vec<&str> = pieces.iter().filter_map(|piece| piece["SpecialToken"]["id"].as_str()).collect();
            let ids = |name: &&str| part["special_tokens"][*name]["ids"].as_array().map_or(1, Vec::len);
            most_special = most_special.max(names.iter().map(ids).sum());
            most_repeated = most_repeated.max(pieces.len() - names.len());
        }
        special = special.saturating_add(most_special);
        repeated = repeated.saturating_mul(most_repeated);
    }
    at_most("special tokens around a text", special, MAX_SPECIAL_TOKENS)?;
    at_most("texts in the place of one", repeated, MAX_REPEATED)
}

/// # Errors
///
/// There is more of something than the limit.
pub fn at_most(what: &str, count: usize, limit: usize) -> Result<(), String> {
    if count > limit {
        return Err(format!("it has {count} {what}, the most is {limit}"));
    }
    Ok(())
}
