//! Tokens to text.

use std::path::Path;

use alipes_engine::EngineError;
use alipes_protocol::Datatype;
use alipes_spec::{DetokenizerSpec, ModelSpec};

use super::error::TextError;
use super::growth::Growth;
use super::{effort, file};

/// A tokenizer that makes text of tokens.
pub struct Detokenizer {
    tokenizer: tokenizers::Tokenizer,
    growth: Growth,
    size: usize,
    skip_special: bool,
}

impl Detokenizer {
    /// Reads the tokenizer of a model.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where the file cannot be used, or the model has other tensors.
    pub fn open(model: &ModelSpec, spec: &DetokenizerSpec) -> Result<Detokenizer, EngineError> {
        if model.inputs.len() != 1 || model.outputs.iter().any(|port| port.datatype != Datatype::Bytes) {
            return Err(EngineError::invalid(format!("'{}' needs one input, and an output of strings", model.name)));
        }
        Ok(Detokenizer::of(spec)?)
    }

    /// Reads a tokenizer.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub(super) fn of(spec: &DetokenizerSpec) -> Result<Detokenizer, TextError> {
        let (tokenizer, growth) = file::open(Path::new(&spec.file))?;
        let size = tokenizer.get_vocab_size(true);
        Ok(Detokenizer { tokenizer, growth, size, skip_special: !spec.special_tokens })
    }

    /// The text of one row of tokens.
    ///
    /// # Errors
    ///
    /// A number is no token of the vocabulary, or the text would be too long.
    pub fn text(&self, row: impl Iterator<Item = i64>) -> Result<String, TextError> {
        let mut bytes = 0;
        let mut token = |(at, id)| self.token(at, id).inspect(|(_, token)| bytes += token).map(|(number, _)| number);
        let ids: Vec<u32> = row.enumerate().map(&mut token).collect::<Result<_, _>>()?;
        self.growth.check_decoded(bytes)?;
        let text = effort::bounded(|| self.tokenizer.decode(&ids, self.skip_special)).ok_or(TextError::Explodes)?;
        text.map_err(|error| TextError::Refused(error.to_string()))
    }

    /// A token, and its bytes.
    fn token(&self, at: usize, id: i64) -> Result<(u32, usize), TextError> {
        let unknown = TextError::UnknownToken { id, at, size: self.size };
        let number = u32::try_from(id).map_err(|_| unknown.clone())?;
        self.tokenizer.id_to_token(number).map(|token| (number, token.len())).ok_or(unknown)
    }
}
