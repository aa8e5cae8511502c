//! How rows of different lengths become a rectangle.

use tokenizers::{PaddingDirection, PaddingParams, PaddingStrategy, Tokenizer};

/// Padding of a tokenizer's rows.
#[derive(Clone, Debug)]
pub struct Padding {
    /// Length of all rows; none for that of the longest.
    fixed: Option<usize>,
    /// The length is a multiple of it.
    multiple: usize,
    /// Token that fills up.
    pub token: i64,
    /// Its type.
    pub kind: i64,
    /// Whether rows are filled up in front.
    pub left: bool,
}

/// What tokenizers without padding of their own call the token that fills up.
const USUAL: [&str; 4] = ["[PAD]", "<pad>", "<|pad|>", "<|endoftext|>"];

impl Padding {
    /// Padding as the file says, with a fixed length or a multiple where the settings have one.
    pub fn of(tokenizer: &Tokenizer, fixed: Option<usize>, multiple: Option<usize>) -> Padding {
        let own = tokenizer.get_padding();
        let usual = || USUAL.iter().find_map(|name| tokenizer.token_to_id(name)).unwrap_or_default();
        let of_file = own.and_then(|params: &PaddingParams| match params.strategy {
            PaddingStrategy::Fixed(length) => Some(length),
            PaddingStrategy::BatchLongest => None,
        });
        Padding {
            fixed: fixed.or(of_file),
            multiple: multiple.or(own.and_then(|params| params.pad_to_multiple_of)).unwrap_or(1).max(1),
            token: own.map_or_else(usual, |params| params.pad_id).into(),
            kind: own.map_or(0, |params| params.pad_type_id).into(),
            left: own.is_some_and(|params| matches!(params.direction, PaddingDirection::Left)),
        }
    }

    /// The least length of all rows.
    pub fn least(&self) -> usize {
        self.fixed.unwrap_or(1).max(self.multiple)
    }

    /// The length of all rows.
    pub fn width(&self, lengths: impl Iterator<Item = usize>) -> usize {
        let longest = lengths.max().unwrap_or(0);
        longest.max(self.fixed.unwrap_or(0)).next_multiple_of(self.multiple)
    }
}
