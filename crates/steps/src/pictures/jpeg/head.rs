//! What stands before the scan: sizes, tables, and which tables a colour uses.

use super::block::{BLOCK, Cells, cells};
use super::huffman::{Huffman, Role};

/// A file of the usual kind.
pub struct Head {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Samples of lightness across for each sample of colour: 1 or 2, and not 1 where there are 2 down.
    pub across: usize,
    /// Samples of lightness down for each sample of colour: 1 or 2.
    pub down: usize,
    /// Lightness, and two colours.
    pub components: [Component; 3],
}

/// How a component is stored.
pub struct Component {
    /// Where the numbers of a block stand, and their factors.
    pub cells: Cells,
    /// Codes of the first number of a block.
    pub first: Huffman,
    /// Codes of the others.
    pub others: Huffman,
}

/// What was read up to now.
#[derive(Default)]
struct Parts<'a> {
    frame: Option<&'a [u8]>,
    factors: [Option<&'a [u8; BLOCK]>; 4],
    first: [Option<&'a [u8]>; 4],
    others: [Option<&'a [u8]>; 4],
}

/// Bytes of a frame of three components, and of its scan.
const FRAME: usize = 15;
const SCAN: usize = 10;

impl Head {
    /// The head of a file, and what follows it; none where the file is of another kind.
    pub fn read(file: &[u8]) -> Option<(Head, &[u8])> {
        let mut rest = file.strip_prefix(&[0xFF, 0xD8])?;
        let mut parts = Parts::default();
        loop {
            let (marker, segment);
            (marker, segment, rest) = segment_of(rest)?;
            match marker {
                0xC0 if parts.frame.is_none() => parts.frame = Some(segment),
                0xC4 => parts.add_codes(segment)?,
                0xDB => parts.add_factors(segment)?,
                0xDA => return Some((parts.head(segment)?, rest)),
                // Of Adobe, whose last byte says that the colours are the usual ones.
                0xEE if segment.starts_with(b"Adobe") && segment.get(11) != Some(&1) => return None,
                // Texts, and what programs have to say.
                0xE0..=0xEF | 0xFE => {}
                _ => return None,
            }
        }
    }
}

/// The marker that a file goes on with, its segment, and what follows.
fn segment_of(file: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [0xFF, marker, high, low, ..] = *file else { return None };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let segment = file.get(4..2 + length)?;
    Some((marker, segment, &file[2 + length..]))
}

impl<'a> Parts<'a> {
    fn add_factors(&mut self, mut segment: &'a [u8]) -> Option<()> {
        while let Some((&number, rest)) = segment.split_first() {
            let factors = rest.first_chunk::<BLOCK>()?;
            // Those of 16 bits have another number.
            *self.factors.get_mut(usize::from(number))? = Some(factors);
            segment = &rest[BLOCK..];
        }
        Some(())
    }

    fn add_codes(&mut self, mut segment: &'a [u8]) -> Option<()> {
        while let Some((&number, rest)) = segment.split_first() {
            let length = 16 + rest.get(..16)?.iter().map(|&count| usize::from(count)).sum::<usize>();
            let tables = if number >> 4 == 0 { &mut self.first } else { &mut self.others };
            if number >> 4 > 1 {
                return None;
            }
            *tables.get_mut(usize::from(number & 15))? = Some(rest.get(..length)?);
            segment = &rest[length..];
        }
        Some(())
    }

    fn head(&self, scan: &[u8]) -> Option<Head> {
        let frame: &[u8; FRAME] = self.frame?.try_into().ok()?;
        let scan: &[u8; SCAN] = scan.try_into().ok()?;
        // Samples of 8 bits, three components by these names, and all numbers of a block in the one scan.
        let [8, high, low, wide, narrow, 3, 1, ratio, _, 2, 0x11, _, 3, 0x11, _] = *frame else { return None };
        let [3, 1, _, 2, _, 3, _, 0, 63, 0] = *scan else { return None };
        let (across, down) = match ratio {
            0x11 => (1, 1),
            0x21 => (2, 1),
            0x22 => (2, 2),
            _ => return None,
        };
        Some(Head {
            width: usize::from(u16::from_be_bytes([wide, narrow])),
            height: usize::from(u16::from_be_bytes([high, low])),
            across,
            down,
            components: [
                self.component(frame[8], scan[2])?,
                self.component(frame[11], scan[4])?,
                self.component(frame[14], scan[6])?,
            ],
        })
    }

    fn component(&self, factors: u8, codes: u8) -> Option<Component> {
        let of = |tables: &[Option<&'a [u8]>; 4], number: u8| *tables.get(usize::from(number))?;
        Some(Component {
            cells: cells((*self.factors.get(usize::from(factors))?)?),
            first: Huffman::new(of(&self.first, codes >> 4)?, Role::First)?,
            others: Huffman::new(of(&self.others, codes & 15)?, Role::Others)?,
        })
    }
}
