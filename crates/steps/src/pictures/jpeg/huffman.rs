//! Codes of a scan, each with the bits of a number behind it.
//!
//! A table answers for ten bits at once: mostly they hold a code and its number.

use super::bits::Bits;

/// Bits that a table answers for.
const LOOK: u32 = 10;

/// Bits of the longest code.
const LONGEST: u32 = 16;

/// Numbers that are passed over at the end of a block: beyond those of any block, and of any run.
pub const END: usize = 80;

/// What numbers stand behind the codes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The first number of a block: the code says its bits.
    First,
    /// The others: the code says how many zeros come before, too.
    Others,
}

/// What bits begin with.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// The number, where it is within these bits.
    number: i16,
    /// Zeros before it; where it is not within these bits, what the code says.
    zeros: u8,
    /// Bits of both; 0 where the number is not within these bits.
    bits: u8,
}

/// Codes of a kind of numbers.
pub struct Huffman {
    entries: [Entry; 1 << LOOK],
    /// The first 16 bits behind the codes of each length, in 16 bits and more.
    ends: [u32; LONGEST as usize + 1],
    /// Where the values of each length begin, less the first code of that length.
    offsets: [i32; LONGEST as usize + 1],
    values: [u8; 256],
    role: Role,
}

impl Huffman {
    /// The codes that sixteen counts and their values describe; none where there cannot be such codes.
    pub fn new(described: &[u8], role: Role) -> Option<Huffman> {
        let (counts, listed) = described.split_first_chunk::<16>()?;
        let mut values = [0; 256];
        values.get_mut(..listed.len())?.copy_from_slice(listed);
        let (ends, offsets) = ([0; LONGEST as usize + 1], [0; LONGEST as usize + 1]);
        let mut made = Huffman { entries: [Entry::default(); 1 << LOOK], ends, offsets, values, role };
        let (mut code, mut value) = (0_u32, 0_usize);
        for (length, &count) in (1..).zip(counts) {
            let place = length as usize;
            made.offsets[place] = value as i32 - code as i32;
            for _ in 0..count {
                if length <= LOOK {
                    made.enter(code, length, values[value])?;
                }
                (code, value) = (code + 1, value + 1);
            }
            // A code of ones alone is not allowed, so none reaches the end.
            if code >= 1 << length {
                return None;
            }
            made.ends[place] = code << (LONGEST - length);
            code <<= 1;
        }
        Some(made)
    }

    /// Enters a code wherever bits begin with it.
    fn enter(&mut self, code: u32, length: u32, value: u8) -> Option<()> {
        let first = (code << (LOOK - length)) as usize;
        let rest = LOOK - length;
        for (bits, entry) in (0_u32..).zip(self.entries.get_mut(first..first + (1 << rest))?) {
            let size = size_of(value);
            *entry = match zeros_of(self.role, value) {
                Some(zeros) if size <= rest => {
                    let number = if size == 0 { 0 } else { extended(bits >> (rest - size), size) };
                    Entry { number: number as i16, zeros: zeros as u8, bits: (length + size) as u8 }
                }
                _ => Entry::default(),
            };
        }
        Some(())
    }

    /// The zeros before the next number, and the number; [`END`] zeros where a block ends. None where there is no such
    /// code. The bits must have been filled.
    #[inline(always)]
    pub fn next(&self, bits: &mut Bits<'_>) -> Option<(usize, i32)> {
        let entry = self.entries[bits.peek(LOOK)];
        if entry.bits == 0 {
            let (zeros, number, read) = self.long(*bits)?;
            bits.skip(read);
            return Some((zeros, number));
        }
        bits.skip(u32::from(entry.bits));
        Some((usize::from(entry.zeros), i32::from(entry.number)))
    }

    /// The zeros before the next number, [`END`] where a block ends, the number, and how many bits both have, whatever
    /// their length. None where there is no such code.
    #[inline(never)]
    fn long(&self, mut bits: Bits<'_>) -> Option<(usize, i32, u32)> {
        let ahead = bits.peek(LONGEST) as u32;
        let length = (1..=LONGEST).find(|&length| ahead < self.ends[length as usize])?;
        let place = (ahead >> (LONGEST - length)) as i32 + self.offsets[length as usize];
        let value = *self.values.get(usize::try_from(place).ok()?)?;
        let (zeros, size) = (zeros_of(self.role, value)?, size_of(value));
        bits.skip(length);
        let number = if size == 0 { 0 } else { extended(bits.peek(size) as u32, size) };
        Some((zeros, number, length + size))
    }
}

/// Bits of the number behind a code.
fn size_of(value: u8) -> u32 {
    u32::from(value & 15)
}

/// Zeros before the number; none where no code may say so.
fn zeros_of(role: Role, value: u8) -> Option<usize> {
    match (role, value) {
        (Role::First, 0..=11) => Some(0),
        (Role::Others, 0) => Some(END),
        (Role::Others, 0xF0) => Some(15),
        (Role::Others, _) if (1..=10).contains(&size_of(value)) => Some(usize::from(value >> 4)),
        _ => None,
    }
}

/// A number of some bits: those that begin with 0 are negative.
fn extended(bits: u32, size: u32) -> i32 {
    if bits >> (size - 1) == 0 { bits as i32 - (1 << size) + 1 } else { bits as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes of lengths 1, 2, and 16: 0, 10, and 11 with fourteen zeros.
    fn described(values: [u8; 3]) -> Vec<u8> {
        let mut counts = [0; 16];
        (counts[0], counts[1], counts[15]) = (1, 1, 1);
        [counts.as_slice(), &values].concat()
    }

    fn numbers(huffman: &Huffman, bytes: &[u8], count: usize) -> Option<Vec<(usize, i32)>> {
        let mut bits = Bits::new(bytes);
        (0..count)
            .map(|_| {
                bits.fill();
                huffman.next(&mut bits)
            })
            .collect()
    }

    #[test]
    fn codes_are_followed_by_numbers_of_any_length() {
        let huffman = Huffman::new(&described([0x13, 0x0A, 0xF0]), Role::Others).unwrap();
        // 0 and 101; 10 and 0000000001; sixteen bits; 0 and 011.
        let bytes = [0b0101_1000, 0b0000_0001, 0b1100_0000, 0b0000_0000, 0b0011_0000];
        assert_eq!(numbers(&huffman, &bytes, 4).unwrap(), [(1, 5), (0, -1022), (15, 0), (1, -4)]);
        let ends = Huffman::new(&described([0x00, 0x01, 0x02]), Role::Others).unwrap();
        assert_eq!(numbers(&ends, &[0b0101_0000], 2).unwrap(), [(END, 0), (0, 1)]);
    }

    #[test]
    fn what_is_no_code_is_none() {
        let huffman = Huffman::new(&described([0x00, 0x20, 0x01]), Role::Others).unwrap();
        // A code that nobody has, and one of two zeros that end nothing.
        assert_eq!(numbers(&huffman, &[0xFF, 0xFF], 1), None);
        assert_eq!(numbers(&huffman, &[0b1000_0000], 1), None);
        let first = Huffman::new(&described([0x0B, 0x0C, 0x01]), Role::First).unwrap();
        assert_eq!(numbers(&first, &[0b0100_0000, 0], 1).unwrap(), [(0, 1024)]);
        assert_eq!(numbers(&first, &[0b1010_0000, 0], 1), None);
    }

    #[test]
    fn more_codes_than_bits_allow_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 2;
        assert!(Huffman::new(&[counts.as_slice(), &[1, 2]].concat(), Role::First).is_none());
        counts = [255; 16];
        assert!(Huffman::new(&[counts.as_slice(), &[1; 16 * 255]].concat(), Role::First).is_none());
    }
}
