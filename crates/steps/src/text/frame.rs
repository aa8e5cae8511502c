//! What a tokenizer puts around the tokens of a single text, and how many of these it leaves.
//!
//! Both are seen from outside: the tokenizer finishes made-up tokens of several lengths, and a rule that explains all
//! of the results is the frame. Where none does, there is no frame.

use tokenizers::{Encoding, Tokenizer};

use super::effort;

/// The special tokens around a text, and its truncation.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// In front: tokens with their types.
    pub before: Vec<(u32, u32)>,
    /// Behind.
    pub after: Vec<(u32, u32)>,
    /// The type of the text's own tokens.
    pub kind: u32,
    /// Most tokens of the text that are left.
    most: usize,
    /// Whether the last tokens are left rather than the first.
    last: bool,
}

impl Frame {
    /// The frame of texts with up to so many tokens; none where no such rule holds.
    pub fn of(tokenizer: &Tokenizer, special_tokens: bool, longest: usize) -> Option<Frame> {
        let finished = |length| finished(tokenizer, special_tokens, length);
        let one = finished(1)?;
        let at = one.get_ids().iter().position(|&id| id == made_up(0))?;
        let all: Vec<(u32, u32)> = one.get_ids().iter().copied().zip(one.get_type_ids().iter().copied()).collect();
        let (before, after, kind) = (all[..at].to_vec(), all[at + 1..].to_vec(), all[at].1);
        let limit = tokenizer.get_truncation().map_or(longest, |truncation| truncation.max_length.min(longest));
        let beyond = limit.saturating_add(2);
        let whole = finished(beyond)?;
        let most = whole.len().checked_sub(before.len() + after.len())?;
        let last = most < beyond && whole.get_ids().get(before.len()) != Some(&made_up(0));
        let frame = Frame { before, after, kind, most: if most < beyond { most } else { usize::MAX }, last };
        let holds = |length: usize| finished(length).is_some_and(|found| frame.explains(length, &found));
        let lengths = [0, 1, 2, 3, most.saturating_sub(1), most.min(beyond), (most + 1).min(beyond), beyond];
        lengths.into_iter().all(holds).then_some(frame)
    }

    /// The tokens of a text that are left.
    pub fn cut<'a>(&self, tokens: &'a [u32]) -> &'a [u32] {
        let count = tokens.len().min(self.most);
        if self.last { &tokens[tokens.len() - count..] } else { &tokens[..count] }
    }

    fn explains(&self, length: usize, found: &Encoding) -> bool {
        let tokens: Vec<u32> = (0..length).map(made_up).collect();
        let own = self.cut(&tokens).iter().map(|&id| (id, self.kind));
        let expected = self.before.iter().copied().chain(own).chain(self.after.iter().copied());
        let found_all = found.get_ids().iter().copied().zip(found.get_type_ids().iter().copied());
        expected.eq(found_all) && found.get_attention_mask().iter().all(|&one| one == 1)
    }
}

/// Made-up tokens as the tokenizer gives them back; none where it refuses them.
fn finished(tokenizer: &Tokenizer, special_tokens: bool, length: usize) -> Option<Encoding> {
    let tokens = (0..length).map(|number| (made_up(number), String::new(), (0, 0), None, 0));
    let tokens: Encoding = tokens.collect();
    effort::bounded(|| tokenizer.post_process(tokens, None, special_tokens).ok()).flatten()
}

/// A token that no vocabulary has: they are numbered from 0, and no file is large enough for so many.
fn made_up(number: usize) -> u32 {
    u32::MAX - u32::try_from(number).unwrap_or(u32::MAX)
}
