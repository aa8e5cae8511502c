//! What an input says beside the bytes to decode.

/// Decisions of a fuzzer that the input makes: its last bytes, so that seeds stay what they are in front of them.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    left: &'a [u8],
}

impl<'a> Choices<'a> {
    /// The input without its last `count` bytes, and these as choices. A shorter input chooses zeros.
    pub fn split(input: &'a [u8], count: usize) -> (&'a [u8], Choices<'a>) {
        let (rest, left) = input.split_at(input.len().saturating_sub(count));
        (rest, Choices { left })
    }

    /// A seed for a fuzzer that makes choices of these bytes.
    pub fn seed(input: &[u8], choices: &[u8]) -> Vec<u8> {
        [input, choices].concat()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.left.split_first() else { return 0 };
        self.left = rest;
        first
    }

    /// A number below `end`, which is not 0 and at most 65,536.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % end
    }

    /// Yes or no.
    pub fn flip(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::from(self.byte()) % from.len()]
    }
}

/// `whole` in pieces: as many bytes as each choice says, at least one, then all that is left.
pub fn pieces<'w>(whole: &'w [u8], choices: &mut Choices<'_>, most: usize) -> Vec<&'w [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), whole);
    while !rest.is_empty() && pieces.len() < most {
        let length = (1 + choices.below(1 << 12)).min(rest.len());
        let (piece, behind) = rest.split_at(length);
        pieces.push(piece);
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(rest);
    }
    pieces
}
