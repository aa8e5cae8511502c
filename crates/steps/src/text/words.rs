//! The tokens of words that an instance has seen, for tokenizers that treat each word by itself.
//!
//! The crate normalizes a text with the place of each character, several times over, which short texts pay for: the
//! step takes 19.7 µs for one of the 24 questions of `examples/questions`, and 0.45 µs once their words are known (one
//! thread, the least of 21 rounds that alternate; quartiles say nothing on a busy machine, the ratio was 17 to 98,
//! 11/2026). What a word becomes is what the crate makes of it the first time.

use std::collections::HashMap;
use std::ops::Range;

use tokenizers::Tokenizer;

use super::effort;
use super::frame::Frame;
use super::locality::is_local;

/// Longest text that is put together from words: sentences and short pages. What is longer is left to the crate.
pub const MAX_TEXT_BYTES: usize = 4 << 10;

/// Longest word that is remembered: few words of a language are longer, with their punctuation.
const MAX_WORD_BYTES: usize = 32;

/// Most words that are remembered. At the next one all are forgotten, which needs no order of their use: to learn as
/// many again takes a twentieth of a second. They take up to 4 MB for each instance, a tenth of that in usual texts.
const MAX_WORDS: usize = 16 << 10;

/// Most words that are learned from one text: each costs as much as a short text by itself. A text with more new ones
/// is left to the crate.
const MAX_NEW_WORDS: usize = 8;

/// Whether and how a tokenizer's texts can be put together from words: what its instances share.
#[derive(Debug)]
pub struct Assembly {
    /// What stands around the tokens of a text.
    pub frame: Frame,
    /// A word with as many tokens may have been cut.
    max_length: usize,
}

impl Assembly {
    /// The assembly of a tokenizer; none where a text's tokens are not those of its words.
    pub fn of(tokenizer: &Tokenizer, special_tokens: bool) -> Option<Assembly> {
        if !is_local(tokenizer) {
            return None;
        }
        let frame = Frame::of(tokenizer, special_tokens, MAX_TEXT_BYTES)?;
        let max_length = tokenizer.get_truncation().map_or(usize::MAX, |truncation| truncation.max_length);
        Some(Assembly { frame, max_length })
    }
}

/// The words that an instance remembers.
#[derive(Debug, Default)]
pub struct Words {
    known: HashMap<Box<str>, Range<u32>>,
    /// The tokens of all words, one word behind the other.
    tokens: Vec<u32>,
    /// The tokens of the text that is being put together.
    text: Vec<u32>,
}

impl Words {
    /// The tokens of a text, without what stands around them and before truncation; none where the crate has to look
    /// at the whole text.
    pub fn tokens(&mut self, tokenizer: &Tokenizer, assembly: &Assembly, text: &str) -> Option<&[u32]> {
        if text.len() > MAX_TEXT_BYTES || !text.is_ascii() {
            return None;
        }
        self.text.clear();
        let mut new = 0;
        for word in text.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()) {
            let range = match self.known.get(word) {
                Some(range) => range.clone(),
                None if new == MAX_NEW_WORDS => return None,
                None => {
                    new += 1;
                    self.learn(tokenizer, assembly, word)?
                }
            };
            self.text.extend_from_slice(&self.tokens[range.start as usize..range.end as usize]);
        }
        Some(&self.text)
    }

    /// Has the crate tokenize a word, and remembers its tokens.
    fn learn(&mut self, tokenizer: &Tokenizer, assembly: &Assembly, word: &str) -> Option<Range<u32>> {
        if word.len() > MAX_WORD_BYTES {
            return None;
        }
        let encoding = effort::bounded(|| tokenizer.encode_fast(word, false).ok())??;
        if encoding.len() >= assembly.max_length {
            return None;
        }
        if self.known.len() == MAX_WORDS {
            self.known.clear();
            self.tokens.clear();
        }
        let begin = u32::try_from(self.tokens.len()).ok()?;
        self.tokens.extend_from_slice(encoding.get_ids());
        let range = begin..u32::try_from(self.tokens.len()).ok()?;
        self.known.insert(word.into(), range.clone());
        Some(range)
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
