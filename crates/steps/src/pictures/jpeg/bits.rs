//! A scan bit by bit.

/// The bits of a scan, with zeros behind them. Copied where a function takes them, so that they stay in registers.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// What is read next.
    at: usize,
    /// The next bits, from the top.
    buffer: u64,
    /// How many of them were read; others are zeros.
    count: u32,
}

/// Bits that are there after [`Bits::fill`].
pub const FILLED: u32 = 56;

/// The scan that a file goes on with, up to its end, without the zeros that follow each byte of ones; none where it
/// ends otherwise.
pub fn scan_of(mut file: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(file.len());
    loop {
        let ones = file.iter().position(|&byte| byte == 0xFF)?;
        bytes.extend_from_slice(&file[..ones]);
        match file.get(ones + 1)? {
            0x00 => bytes.push(0xFF),
            0xD9 => return Some(bytes),
            _ => return None,
        }
        file = &file[ones + 2..];
    }
}

impl<'a> Bits<'a> {
    /// The bits of these bytes.
    pub fn new(bytes: &'a [u8]) -> Bits<'a> {
        Bits { bytes, at: 0, buffer: 0, count: 0 }
    }

    /// Reads on until there are [`FILLED`] bits or more.
    #[inline(always)]
    pub fn fill(&mut self) {
        let next = match self.bytes.get(self.at..self.at + 8) {
            Some(&[a, b, c, d, e, f, g, h]) => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => last(self.bytes, self.at),
        };
        self.buffer |= next >> self.count;
        self.at += (63 - self.count as usize) / 8;
        self.count |= FILLED;
    }

    /// The next bits, 1 to 32.
    #[inline(always)]
    pub fn peek(&self, count: u32) -> usize {
        (self.buffer >> (64 - count)) as usize
    }

    /// Passes over bits, 1 to 32.
    #[inline(always)]
    pub fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count;
    }

    /// Whether more was read than there is.
    pub fn are_short(&self) -> bool {
        self.at > self.bytes.len() + 8
    }

    /// Whether all was read, but for the bits that fill up the last byte, and no more.
    pub fn ended(&self) -> bool {
        let read = self.at * 8 - self.count as usize;
        (0..8).contains(&((self.bytes.len() * 8) as i64 - read as i64))
    }
}

/// The last bytes, with zeros behind them.
#[cold]
fn last(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    (0..8).fold(0, |bits, place| bits << 8 | u64::from(rest.get(place).copied().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_in_their_order_and_zeros_behind_them() {
        let bytes: Vec<u8> = (1..=20).collect();
        let mut bits = Bits::new(&bytes);
        for &byte in &bytes {
            bits.fill();
            assert!(!bits.ended());
            assert_eq!(bits.peek(8), usize::from(byte));
            bits.skip(3);
            assert_eq!(bits.peek(5), usize::from(byte & 31));
            bits.skip(5);
        }
        assert!(bits.ended());
        bits.fill();
        assert_eq!(bits.peek(32), 0);
        bits.skip(1);
        assert!(!bits.ended());
    }

    #[test]
    fn the_last_byte_may_be_filled_up() {
        let mut bits = Bits::new(&[0xA0, 0x7F]);
        bits.fill();
        bits.skip(8);
        assert!(!bits.ended());
        bits.skip(1);
        assert!(bits.ended());
        assert!(!bits.are_short());
        (0..9).for_each(|_| {
            bits.skip(32);
            bits.fill();
        });
        assert!(bits.are_short());
    }

    #[test]
    fn a_scan_ends_with_its_file() {
        assert_eq!(scan_of(&[1, 0xFF, 0, 2, 0xFF, 0xD9, 3]), Some(vec![1, 0xFF, 2]));
        assert_eq!(scan_of(&[1, 0xFF, 0xD0, 2, 0xFF, 0xD9]), None);
        assert_eq!(scan_of(&[1, 2, 0xFF]), None);
        assert_eq!(scan_of(&[1, 2]), None);
    }
}
