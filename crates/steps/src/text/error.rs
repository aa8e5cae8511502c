//! What is refused of texts and their files, and the limits.

use alipes_engine::EngineError;

/// Largest `tokenizer.json`: vocabularies of a million tokens have 60 MB.
pub const MAX_FILE_BYTES: u64 = 256 << 20;

/// Most tokens of a text where nothing truncates it: more than models take.
pub const MAX_TOKENS: usize = 1 << 16;

/// Most added tokens, and their bytes: all of them are searched in each text. Codes of pictures and sounds are some ten
/// thousand.
pub const MAX_ADDED_TOKENS: usize = 1 << 18;
pub const MAX_ADDED_BYTES: usize = 16 << 20;

/// Most special tokens that stand around a text: usually two, in prompts some dozens.
pub const MAX_SPECIAL_TOKENS: usize = 1 << 12;

/// How often a text may stand in the place of one.
pub const MAX_REPEATED: usize = 4;

/// Most normalizers, or other parts of a kind, that work one after the other: usually up to ten.
pub const MAX_PARTS: usize = 64;

/// Most bytes that a part of the file puts in the place of a letter: the longest in use are 33, in tables of Unicode.
pub const MAX_REPLACEMENT_BYTES: usize = 64;

/// Most bytes that a text may become while it is worked on, each with sixteen bytes that say where it was.
pub const MAX_WORKED_BYTES: usize = 32 << 20;

/// Longest word that WordPiece may take apart, which takes time as its square: usually 100.
pub const MAX_WORD_CHARACTERS: usize = 1000;

/// A file that cannot be used, or a row that fails alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The file does not exist, is too large, or is no tokenizer.
    #[error("{file}: {cause}")]
    File {
        /// Name of the file.
        file: String,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// The text is longer than the limit.
    #[error("it has {bytes} bytes, the most is {limit}; send it in parts, or raise the parameter 'max_text_bytes'")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The text is not UTF-8.
    #[error("it is not UTF-8: the byte at {at} fits nothing before it")]
    NotUtf8 {
        /// The first byte that does not belong there, counted from 0.
        at: usize,
    },
    /// The text has more tokens than may be returned.
    #[error("it has {tokens} tokens, the most is {limit}; set the parameter 'max_length' to have it truncated")]
    TooManyTokens {
        /// Its tokens.
        tokens: usize,
        /// The limit.
        limit: usize,
    },
    /// The text becomes too long while it is worked on.
    #[error("what the tokenizer replaces makes it longer than {limit} bytes")]
    Grows {
        /// The limit.
        limit: usize,
    },
    /// Rows would be too long, whatever their texts.
    #[error("rows would be filled up to {tokens} tokens, the most is {limit}")]
    TooWide {
        /// Their tokens.
        tokens: usize,
        /// The limit.
        limit: usize,
    },
    /// A regular expression of the file takes too long on the text.
    #[error("a pattern of the tokenizer takes too many steps on it")]
    Explodes,
    /// The library refuses the row.
    #[error("the tokenizer refuses it: {0}")]
    Refused(String),
    /// A token that cannot be put into text.
    #[error("token {id} at position {at} is none of the vocabulary, which has {size} tokens")]
    UnknownToken {
        /// The number.
        id: i64,
        /// Where it stands.
        at: usize,
        /// Size of the vocabulary.
        size: usize,
    },
}

impl From<TextError> for EngineError {
    fn from(error: TextError) -> EngineError {
        EngineError::invalid(error.to_string())
    }
}
