//! Text to tokens.

use std::iter;
use std::path::Path;
use std::str;

use alipes_engine::EngineError;
use alipes_protocol::Datatype;
use alipes_spec::{ModelSpec, TokenOutput, TokenizerSpec};
use tokenizers::{EncodeInput, Encoding, TruncationParams};

use super::error::{MAX_TOKENS, TextError};
use super::frame::Frame;
use super::growth::Growth;
use super::locality::is_even;
use super::padding::Padding;
use super::words::{Assembly, Words};
use super::{effort, file};

/// A loaded tokenizer, and the outputs of the model that it is.
pub struct Tokenizer {
    tokenizer: tokenizers::Tokenizer,
    padding: Padding,
    special_tokens: bool,
    max_text_bytes: usize,
    outputs: Vec<(TokenOutput, Datatype)>,
    /// None where texts cannot be put together from words.
    assembly: Option<Assembly>,
    /// No text takes much longer than others of its length.
    is_even: bool,
    growth: Growth,
}

/// The tokens of several texts, row after row; each row has `width` of them.
#[derive(Debug, Default)]
pub struct TokenRows {
    /// Tokens of a row.
    pub width: usize,
    /// Numbers of the tokens.
    pub ids: Vec<i64>,
    /// 1 for a token of the text, 0 for one that fills up.
    pub mask: Vec<i64>,
    /// 0 for a token of the first text of a pair, 1 for one of the second.
    pub types: Vec<i64>,
    /// Rows that failed, which are filled up from the first to the last token.
    pub failed: Vec<(usize, TextError)>,
}

impl Tokenizer {
    /// Reads the tokenizer of a model.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the file cannot be used, or the outputs are not those of the model.
    pub fn open(model: &ModelSpec, spec: &TokenizerSpec) -> Result<Tokenizer, EngineError> {
        if model.outputs.len() != spec.outputs.len() {
            let (declared, described) = (model.outputs.len(), spec.outputs.len());
            let text = format!("{declared} outputs of '{}', of which {described} are described", model.name);
            return Err(EngineError::invalid(text));
        }
        let types = model.outputs.iter().map(|port| port.datatype);
        Ok(Tokenizer::of(spec, spec.outputs.iter().copied().zip(types).collect())?)
    }

    /// Reads a tokenizer.
    ///
    /// # Errors
    ///
    /// The file cannot be used, or contradicts the settings.
    pub(super) fn of(spec: &TokenizerSpec, outputs: Vec<(TokenOutput, Datatype)>) -> Result<Tokenizer, TextError> {
        let (mut tokenizer, growth) = file::open(Path::new(&spec.file))?;
        let fixed = if spec.pad_to_max_length { spec.max_length } else { None };
        let padding = Padding::of(&tokenizer, fixed, spec.pad_to_multiple_of);
        let tokens = padding.least();
        if tokens > MAX_TOKENS {
            return Err(TextError::TooWide { tokens, limit: MAX_TOKENS });
        }
        let own = tokenizer.get_truncation().cloned();
        if let Some(max_length) = spec.max_length.or(own.as_ref().map(|own| own.max_length)) {
            let own = own.unwrap_or_default();
            // Only the first piece is given: with a stride, each letter of a text may begin another.
            let wanted = TruncationParams { max_length, stride: 0, ..own };
            let refused = |error: tokenizers::Error| TextError::Refused(error.to_string());
            tokenizer.with_truncation(Some(wanted)).map_err(refused)?;
        }
        tokenizer.with_padding(None);
        let (special_tokens, max_text_bytes) = (spec.special_tokens, spec.max_text_bytes);
        let assembly = Assembly::of(&tokenizer, special_tokens);
        let is_even = is_even(&tokenizer);
        Ok(Tokenizer { tokenizer, padding, special_tokens, max_text_bytes, outputs, assembly, is_even, growth })
    }

    /// What each output of the model holds, and in which type.
    pub fn outputs(&self) -> &[(TokenOutput, Datatype)] {
        &self.outputs
    }

    /// Whether no text takes much longer than others of its length.
    pub fn is_even(&self) -> bool {
        self.is_even
    }

    /// The tokens of each text, or of each pair of texts, with the help of words that were seen before.
    pub fn rows<'a>(&self, words: &mut Words, texts: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>) -> TokenRows {
        let found: Vec<_> = texts.map(|(text, pair)| self.row(words, text, pair)).collect();
        let width = self.padding.width(found.iter().map(|row| row.as_ref().map_or(0, Row::len)));
        let mut rows = TokenRows { width, ..TokenRows::default() };
        let capacity = width * found.len();
        for column in [&mut rows.ids, &mut rows.mask, &mut rows.types] {
            column.reserve_exact(capacity);
        }
        for (at, row) in found.into_iter().enumerate() {
            let row = row.unwrap_or_else(|error| {
                rows.failed.push((at, error));
                Row::default()
            });
            self.add(&mut rows, &row);
        }
        rows
    }

    fn add(&self, rows: &mut TokenRows, row: &Row) {
        let padding = &self.padding;
        let missing = rows.width - row.len();
        let (before, after) = if padding.left { (missing, 0) } else { (0, missing) };
        let fill = |column: &mut Vec<i64>, values: &[u32], with: i64| {
            column.extend(iter::repeat_n(with, before));
            column.extend(values.iter().map(|&value| i64::from(value)));
            column.extend(iter::repeat_n(with, after));
        };
        fill(&mut rows.ids, &row.ids, padding.token);
        fill(&mut rows.mask, &row.mask, 0);
        fill(&mut rows.types, &row.types, padding.kind);
    }

    fn row(&self, words: &mut Words, text: &[u8], pair: Option<&[u8]>) -> Result<Row, TextError> {
        let text = self.checked(text)?;
        if let (Some(assembly), None) = (&self.assembly, pair)
            && let Some(tokens) = words.tokens(&self.tokenizer, assembly, text)
        {
            return Ok(Row::framed(&assembly.frame, tokens));
        }
        self.encode(text, pair)
    }

    fn encode(&self, text: &str, pair: Option<&[u8]>) -> Result<Row, TextError> {
        self.growth.check(text)?;
        let input = match pair {
            None => EncodeInput::Single(text.into()),
            Some(pair) => {
                let pair = self.checked(pair)?;
                self.growth.check(pair)?;
                EncodeInput::Dual(text.into(), pair.into())
            }
        };
        // The fast way keeps no types of tokens, which pairs have.
        let encode = || match pair {
            None => self.tokenizer.encode_fast(input, self.special_tokens),
            Some(_) => self.tokenizer.encode(input, self.special_tokens),
        };
        let encoded = effort::bounded(encode).ok_or(TextError::Explodes)?;
        let encoding = encoded.map_err(|error| TextError::Refused(error.to_string()))?;
        match encoding.len() {
            tokens if tokens > MAX_TOKENS => Err(TextError::TooManyTokens { tokens, limit: MAX_TOKENS }),
            _ => Ok(Row::from(&encoding)),
        }
    }

    fn checked<'a>(&self, text: &'a [u8]) -> Result<&'a str, TextError> {
        let (bytes, limit) = (text.len(), self.max_text_bytes);
        if bytes > limit {
            return Err(TextError::TooLong { bytes, limit });
        }
        str::from_utf8(text).map_err(|error| TextError::NotUtf8 { at: error.valid_up_to() })
    }
}

/// The tokens of one text or pair, not yet filled up.
#[derive(Default)]
struct Row {
    ids: Vec<u32>,
    mask: Vec<u32>,
    types: Vec<u32>,
}

impl Row {
    /// The tokens of a text with what stands around them.
    fn framed(frame: &Frame, tokens: &[u32]) -> Row {
        let own = frame.cut(tokens).iter().map(|&id| (id, frame.kind));
        let all = frame.before.iter().copied().chain(own).chain(frame.after.iter().copied());
        let (ids, types): (Vec<u32>, Vec<u32>) = all.unzip();
        Row { mask: vec![1; ids.len()], ids, types }
    }

    fn len(&self) -> usize {
        self.ids.len()
    }
}

impl From<&Encoding> for Row {
    fn from(encoding: &Encoding) -> Row {
        let [ids, mask, types] =
            [encoding.get_ids(), encoding.get_attention_mask(), encoding.get_type_ids()].map(<[u32]>::to_vec);
        Row { ids, mask, types }
    }
}
