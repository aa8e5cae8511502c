//! Blocks of a scan become planes of samples.

use super::bits::{Bits, scan_of};
use super::block::{BLOCK, Block, SIDE};
use super::head::{Component, Head};
use super::huffman::END;
use super::transform;

/// Samples of a component, in whole blocks.
pub struct Plane {
    /// Samples of a row.
    pub stride: usize,
    /// All of them, and more behind: what is read at once may reach beyond the last row.
    pub samples: Vec<u8>,
}

/// Samples behind those of a plane.
const BEHIND: usize = 64;

impl Plane {
    fn new(stride: usize, rows: usize) -> Plane {
        Plane { stride, samples: vec![0; stride * rows + BEHIND] }
    }

    /// Puts a block, or two side by side, in their place: so many samples of each row, from the first or from the
    /// ninth on.
    #[inline(always)]
    fn put<const SAMPLES: usize>(&mut self, (across, down): (usize, usize), made: &[u8; 2 * BLOCK], first: usize) {
        let places = self.samples[down * self.stride + across..].chunks_mut(self.stride);
        for (place, row) in places.zip(made.as_chunks::<{ 2 * SIDE }>().0) {
            place[..SAMPLES].copy_from_slice(&row[first..first + SAMPLES]);
        }
    }

    /// A row, and samples behind it.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.samples[row * self.stride..]
    }
}

/// The planes of lightness and of both colours; none where the scan is damaged, or ends too early or late.
#[target_feature(enable = "avx2,bmi2")]
pub fn planes(head: &Head, scan: &[u8]) -> Option<[Plane; 3]> {
    let scan = scan_of(scan)?;
    let mut bits = Bits::new(&scan);
    let (across, down) = (head.width.div_ceil(head.across * SIDE), head.height.div_ceil(head.down * SIDE));
    let mut light = Plane::new(across * head.across * SIDE, down * head.down * SIDE);
    let [mut blue, mut red] = [(); 2].map(|()| Plane::new(across * SIDE, down * SIDE));
    let [of_light, of_blue, of_red] = &head.components;
    let [mut last_light, mut last_blue, mut last_red] = [0; 3];
    for row in 0..down {
        if bits.are_short() {
            return None;
        }
        for column in 0..across {
            for part in 0..head.down {
                let mut pair = [Block::EMPTY; 2];
                for block in &mut pair[..head.across] {
                    read(&mut bits, of_light, &mut last_light, block)?;
                }
                let made = transform::pair(&pair);
                let place = (column * head.across * SIDE, (row * head.down + part) * SIDE);
                match head.across {
                    1 => light.put::<SIDE>(place, &made, 0),
                    _ => light.put::<{ 2 * SIDE }>(place, &made, 0),
                }
            }
            let mut pair = [Block::EMPTY; 2];
            read(&mut bits, of_blue, &mut last_blue, &mut pair[0])?;
            read(&mut bits, of_red, &mut last_red, &mut pair[1])?;
            let made = transform::pair(&pair);
            blue.put::<SIDE>((column * SIDE, row * SIDE), &made, 0);
            red.put::<SIDE>((column * SIDE, row * SIDE), &made, SIDE);
        }
    }
    bits.ended().then_some([light, blue, red])
}

/// Reads a block, and multiplies its numbers by their factors.
#[inline(always)]
fn read(bits: &mut Bits<'_>, component: &Component, last: &mut i32, block: &mut Block) -> Option<()> {
    bits.fill();
    let (_, difference) = component.first.next(bits)?;
    *last = last.wrapping_add(difference);
    block.numbers[0] = last.wrapping_mul(component.cells[0].factor.into()) as i16;
    let mut place = 1;
    let mut next = |bits: &mut Bits<'_>, place: &mut usize| {
        let (zeros, number) = component.others.next(bits)?;
        *place += zeros;
        // At the end of a block this is the last number, which is still zero.
        let cell = component.cells[*place & 255];
        block.numbers[usize::from(cell.place) & (BLOCK - 1)] = number.wrapping_mul(cell.factor.into()) as i16;
        *place += 1;
        Some(())
    };
    while place < BLOCK {
        // Enough for two.
        bits.fill();
        next(bits, &mut place)?;
        if place < BLOCK {
            next(bits, &mut place)?;
        }
    }
    block.flat = place == 1 + END + 1;
    // Neither all numbers nor an end: zeros beyond the block.
    (place == BLOCK || place > END).then_some(())
}
