//! How many times as long a text becomes by what replaces its letters, one replacement after the other.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokenizers::{NormalizedString, Normalizer, NormalizerWrapper, Tokenizer};

use super::bounds::{at_most, parts_of};
use super::effort;
use super::error::{MAX_REPLACEMENT_BYTES, MAX_WORKED_BYTES, TextError};

/// The parts of a tokenizer that may make a text longer.
pub struct Growth {
    /// The normalizers, and how many times as long each makes a text at the most.
    normalizers: Vec<(NormalizerWrapper, usize)>,
    /// How many times as long what comes behind them does.
    behind: usize,
    /// How many times as long as its tokens a text of tokens is at the most.
    decoded: usize,
}

impl Growth {
    /// The growth of a tokenizer's texts.
    ///
    /// # Errors
    ///
    /// A replacement is longer than the limit, or there are more parts.
    pub fn of(tokenizer: &Tokenizer) -> Result<Growth, String> {
        let mut normalizers = Vec::new();
        if let Some(normalizer) = tokenizer.get_normalizer() {
            // Counted, with those that are sequences themselves.
            parts_of(normalizer)?;
            collect(normalizer, &mut normalizers)?;
        }
        let behind = tokenizer.get_pre_tokenizer().map(product).transpose()?.unwrap_or(1);
        let decoded = tokenizer.get_decoder().map(product).transpose()?.unwrap_or(1);
        Ok(Growth { normalizers, behind, decoded })
    }

    /// Checks that a text does not become too long while it is worked on.
    ///
    /// # Errors
    ///
    /// It does.
    pub fn check(&self, text: &str) -> Result<(), TextError> {
        let most = self.normalizers.iter().fold(self.behind, |all, (_, times)| all.saturating_mul(*times));
        if within(text.len(), most).is_ok() {
            return Ok(());
        }
        // Only long texts of tokenizers with many replacements come here, most of which replace little.
        effort::bounded(|| {
            let mut text = NormalizedString::from(text);
            for (normalizer, times) in &self.normalizers {
                within(text.get().len(), *times)?;
                if normalizer.normalize(&mut text).is_err() {
                    // The tokenizer will say so.
                    return Ok(());
                }
            }
            within(text.get().len(), self.behind)
        })
        .unwrap_or(Err(TextError::Explodes))
    }

    /// Checks that the text that tokens of so many bytes become is not too long.
    ///
    /// # Errors
    ///
    /// It may become too long.
    pub fn check_decoded(&self, bytes: usize) -> Result<(), TextError> {
        within(bytes, self.decoded)
    }
}

fn within(bytes: usize, times: usize) -> Result<(), TextError> {
    match bytes.saturating_mul(times) {
        bytes if bytes > MAX_WORKED_BYTES => Err(TextError::Grows { limit: MAX_WORKED_BYTES }),
        _ => Ok(()),
    }
}

fn collect(normalizer: &NormalizerWrapper, all: &mut Vec<(NormalizerWrapper, usize)>) -> Result<(), String> {
    if let NormalizerWrapper::Sequence(parts) = normalizer {
        return parts.as_ref().iter().try_for_each(|part| collect(part, all));
    }
    let document = serde_json::to_value(normalizer).unwrap_or_default();
    all.push((normalizer.clone(), times(&document)?));
    Ok(())
}

fn product(whole: &impl serde::Serialize) -> Result<usize, String> {
    parts_of(whole)?.iter().try_fold(1_usize, |all, part| Ok(all.saturating_mul(times(part)?)))
}

/// How many times as many bytes a part makes of a text at the most.
///
/// # Errors
///
/// It replaces something by more than the limit.
fn times(part: &Value) -> Result<usize, String> {
    let replacement = match part["type"].as_str().unwrap_or_default() {
        // A pattern may also match where nothing is, in front of each letter.
        "Replace" => part["content"].as_str().unwrap_or_default().len(),
        "Prepend" => part["prepend"].as_str().unwrap_or_default().len(),
        "WordPiece" => part["prefix"].as_str().unwrap_or_default().len(),
        "Precompiled" => longest(part["precompiled_charsmap"].as_str().unwrap_or_default()),
        // One sign becomes eighteen, of eleven times as many bytes.
        "NFKC" | "NFKD" => 11,
        // What is Chinese gets a blank on both sides, and a syllable of Korean three letters.
        "BertNormalizer" => 5,
        // A bad byte becomes a sign of three.
        "NFC" | "NFD" | "Metaspace" | "ByteLevel" | "ByteFallback" => 2,
        "Lowercase" | "BPEDecoder" | "CTC" => 1,
        _ => return Ok(1),
    };
    at_most("bytes in the place of what it replaces", replacement, MAX_REPLACEMENT_BYTES)?;
    Ok(replacement + 1)
}

/// The longest text in a table of replacements, all of which stand behind the tree that finds them, with zeros between.
fn longest(table: &str) -> usize {
    let table = STANDARD.decode(table).unwrap_or_default();
    let Some((tree_bytes, rest)) = table.split_first_chunk::<4>() else { return 0 };
    let texts = rest.get(u32::from_le_bytes(*tree_bytes) as usize..).unwrap_or_default();
    texts.split(|&byte| byte == 0).map(<[u8]>::len).max().unwrap_or(0)
}
