//! Tokenizers and detokenizers as engines.

use std::sync::Arc;

use alipes_engine::{Engine, EngineError, InputView, OutputTensor, RefusedRow};
use alipes_protocol::codec::elements;
use alipes_protocol::{Datatype, Shape};
use alipes_spec::TokenOutput;
use bytes::Bytes;

use super::detokenizer::Detokenizer;
use super::error::TextError;
use super::locality::MAX_EVEN_BYTES;
use super::tokenizer::Tokenizer;
use super::words::Words;
use crate::numbers::{input, last_axis};

/// Texts, or pairs of texts, become rows of tokens.
pub struct Texts {
    tokenizer: Arc<Tokenizer>,
    words: Words,
    refused: Vec<RefusedRow>,
}

impl Texts {
    /// An instance, which remembers words of its own.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Texts {
        Texts { tokenizer, words: Words::default(), refused: Vec::new() }
    }
}

impl Engine for Texts {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        self.refused.clear();
        let first = input(inputs, 0)?;
        let texts = elements::iter(first.data);
        let mut rows = match inputs.iter().find(|input| input.index == 1) {
            None => self.tokenizer.rows(&mut self.words, texts.map(|text| (text, None))),
            Some(second) => {
                let pairs = texts.zip(elements::iter(second.data));
                self.tokenizer.rows(&mut self.words, pairs.map(|(text, pair)| (text, Some(pair))))
            }
        };
        self.refused.extend(rows.failed.drain(..).map(|(row, error)| refused(row, "text", &error)));
        let shape: Shape = leading(first.shape).chain([rows.width as i64]).collect();
        for &index in wanted {
            let (holds, datatype) = self.tokenizer.outputs()[index];
            let numbers = match holds {
                TokenOutput::Ids => &rows.ids,
                TokenOutput::Mask => &rows.mask,
                TokenOutput::Types => &rows.types,
            };
            outputs.push(OutputTensor { index, datatype, shape: shape.clone(), data: integers(numbers, datatype) });
        }
        Ok(())
    }

    /// Few short texts of words take no longer than others; what patterns and long words take, their length does not
    /// tell.
    fn sizes_tell(&self, bytes: usize) -> bool {
        bytes <= MAX_EVEN_BYTES && self.tokenizer.is_even()
    }

    fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.refused)
    }
}

/// Rows of tokens become texts.
pub struct Tokens {
    detokenizer: Arc<Detokenizer>,
    refused: Vec<RefusedRow>,
}

impl Tokens {
    /// An instance.
    pub fn new(detokenizer: Arc<Detokenizer>) -> Tokens {
        Tokens { detokenizer, refused: Vec::new() }
    }
}

impl Engine for Tokens {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        self.refused.clear();
        let tokens = input(inputs, 0)?;
        let ids = read_integers(tokens);
        let mut texts = Vec::new();
        let rows = tokens.shape[..tokens.shape.len().saturating_sub(1)].iter().product::<i64>();
        let width = last_axis(tokens.shape);
        for row in 0..usize::try_from(rows).unwrap_or(0) {
            let text = self.detokenizer.text(ids[row * width..][..width].iter().copied());
            let text = text.unwrap_or_else(|error| {
                self.refused.push(refused(row, "row of tokens", &error));
                String::new()
            });
            elements::push(&mut texts, text.as_bytes());
        }
        let data = Bytes::from(texts);
        let shape: Shape = leading(tokens.shape).chain([1]).collect();
        let output = |&index: &usize| OutputTensor {
            index,
            datatype: Datatype::Bytes,
            shape: shape.clone(),
            data: data.clone(),
        };
        outputs.extend(wanted.iter().map(output));
        Ok(())
    }

    /// A token may stand for any text, and patterns are searched in it.
    fn sizes_tell(&self, _bytes: usize) -> bool {
        false
    }

    fn refused(&mut self) -> Vec<RefusedRow> {
        std::mem::take(&mut self.refused)
    }
}

fn refused(row: usize, what: &str, error: &TextError) -> RefusedRow {
    RefusedRow { row, error: EngineError::invalid(format!("the {what} cannot be taken: {error}")) }
}

/// All sizes but the last.
fn leading(shape: &[i64]) -> impl Iterator<Item = i64> {
    shape[..shape.len().saturating_sub(1)].iter().copied()
}

/// Numbers as a tensor of one of the two types that tokens have. Tokens are counted in 32 bits.
fn integers(numbers: &[i64], datatype: Datatype) -> Bytes {
    if datatype == Datatype::Int32 {
        numbers.iter().flat_map(|&number| (number as i32).to_le_bytes()).collect()
    } else {
        Bytes::copy_from_slice(bytemuck::cast_slice(numbers))
    }
}

fn read_integers(input: &InputView<'_>) -> Vec<i64> {
    if input.datatype == Datatype::Int32 {
        input.data.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes).into()).collect()
    } else {
        input.data.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
    }
}
