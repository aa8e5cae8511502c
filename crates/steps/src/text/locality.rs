//! Whether the tokens of a text are the tokens of its words, one after the other.
//!
//! Words are what blanks, tabs and line ends separate in ASCII. Each part of a tokenizer has to treat a word as it
//! would without its neighbours: the added tokens, the normalizer, the pre-tokenizer and the model.

use tokenizers::{AddedToken, ModelWrapper, NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

/// Whether words are tokenized independently of each other.
pub fn is_local(tokenizer: &Tokenizer) -> bool {
    tokenizer.get_added_tokens_decoder().values().all(stays_within_a_word)
        && tokenizer.get_normalizer().is_none_or(looks_at_single_characters)
        && tokenizer.get_pre_tokenizer().is_some_and(splits_at_blanks)
        && looks_at_a_word(tokenizer.get_model())
}

/// Most bytes of texts that take about as long as others of their length, where the tokenizer is even: a word of
/// [`EVEN_WORD_CHARACTERS`] takes up to half a millisecond, so twenty of them take ten.
pub const MAX_EVEN_BYTES: usize = 2 << 10;

/// Longest word that an even tokenizer takes apart: each of its ends is looked up for each of its beginnings. The usual
/// bound.
const EVEN_WORD_CHARACTERS: usize = 100;

/// Whether no text takes much longer than others of its length: its words are tokenized independently of each other,
/// are not made longer, and are taken apart only where they are short. No pattern of the file is searched.
pub fn is_even(tokenizer: &Tokenizer) -> bool {
    let keeps_length = |normalizer: &NormalizerWrapper| {
        matches!(normalizer, NormalizerWrapper::BertNormalizer(_) | NormalizerWrapper::Lowercase(_))
    };
    let takes_short_words_apart = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => model.max_input_chars_per_word <= EVEN_WORD_CHARACTERS,
        model => looks_at_a_word(model),
    };
    is_local(tokenizer) && tokenizer.get_normalizer().is_none_or(keeps_length) && takes_short_words_apart
}

/// Whether an added token is found within a word or not at all: it has no blank itself, and what is searched in the
/// normalized text is of ASCII, which normalizers give no blanks.
fn stays_within_a_word(token: &AddedToken) -> bool {
    !token.content.contains(char::is_whitespace) && (!token.normalized || token.content.is_ascii())
}

/// Whether a character of ASCII becomes what it becomes alone, and a blank, tab or line end is not lost.
fn looks_at_single_characters(normalizer: &NormalizerWrapper) -> bool {
    match normalizer {
        NormalizerWrapper::BertNormalizer(_)
        | NormalizerWrapper::Lowercase(_)
        | NormalizerWrapper::StripAccents(_)
        | NormalizerWrapper::NFC(_)
        | NormalizerWrapper::NFD(_)
        | NormalizerWrapper::NFKC(_)
        | NormalizerWrapper::NFKD(_) => true,
        NormalizerWrapper::Sequence(parts) => parts.as_ref().iter().all(looks_at_single_characters),
        _ => false,
    }
}

/// Whether blanks, tabs and line ends separate, and are no part of what they separate.
fn splits_at_blanks(pre_tokenizer: &PreTokenizerWrapper) -> bool {
    matches!(
        pre_tokenizer,
        PreTokenizerWrapper::BertPreTokenizer(_)
            | PreTokenizerWrapper::Whitespace(_)
            | PreTokenizerWrapper::WhitespaceSplit(_)
    )
}

/// Whether the model makes of a word always the same.
fn looks_at_a_word(model: &ModelWrapper) -> bool {
    matches!(model, ModelWrapper::WordPiece(_) | ModelWrapper::WordLevel(_))
}
