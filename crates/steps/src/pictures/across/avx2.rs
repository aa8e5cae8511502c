//! Rows of another width for pixels of three channels, with instructions that multiply sixteen numbers at once.

use std::arch::x86_64::{
    __m256i, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_extracti128_si256,
    _mm256_madd_epi16, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set_m128i, _mm256_set1_epi32, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srai_epi32,
};
use std::ops::Range;

use crate::pictures::bitmap::{Bitmap, READ_BEHIND};
use crate::pictures::coefficients::{HALF, PRECISION_BITS, Window};

/// Rows that are made at a time: a weight that is loaded serves all of them.
const TOGETHER: usize = 4;

/// Bits of a weight's lower half. Both halves fit 16 bits: weights are less than twice one.
const LOW_BITS: u32 = 11;

/// Bytes of two pixels, and what is read with them.
const READ: usize = READ_BEHIND;

/// The pixels that make one pixel, two by two, and the halves of their weights.
struct Pairs {
    first: usize,
    /// High halves of two weights in one word, then the low ones.
    weights: Vec<[i32; 2]>,
}

impl Pairs {
    fn of(window: &Window) -> Pairs {
        let pair = |weights: &[i32]| {
            let (one, other) = (weights[0], weights.get(1).copied().unwrap_or(0));
            let word = |low: i32, high: i32| (low & 0xFFFF) | (high << 16);
            let low = |weight: i32| weight & ((1 << LOW_BITS) - 1);
            [word(one >> LOW_BITS, other >> LOW_BITS), word(low(one), low(other))]
        };
        Pairs { first: window.first, weights: window.weights.chunks(2).map(pair).collect() }
    }
}

/// As [`across`](super::across), of a picture with three channels.
#[target_feature(enable = "avx2")]
pub fn across(mut picture: Bitmap, columns: &[Window], needed: Range<usize>) -> Bitmap {
    let columns: Vec<Pairs> = columns.iter().map(Pairs::of).collect();
    let (from, to) = (picture.width * 3, columns.len() * 3);
    let mut data = vec![0; picture.height * to];
    // Behind the last row, since more is read than two pixels, and two where there is one.
    picture.data.extend([0; READ]);
    let strip = to + 1;
    let mut strips = vec![0; TOGETHER * strip];
    let mut starts = needed.clone().step_by(TOGETHER);
    let made = data[needed.start * to..needed.end * to].chunks_mut(TOGETHER * to);
    for made in made {
        let start = starts.next().unwrap_or(needed.start);
        // The last ones are made several times where rows do not come out even.
        let rows: [&[u8]; TOGETHER] =
            std::array::from_fn(|row| &picture.data[(start + row).min(needed.end - 1) * from..]);
        for (column, pairs) in columns.iter().enumerate() {
            let pixels = weighed(rows, pairs);
            for (row, pixel) in strips.chunks_exact_mut(strip).zip(pixels) {
                // With a fourth byte, which the next pixel replaces.
                if let Some(made) = row[column * 3..].first_chunk_mut::<4>() {
                    *made = pixel.to_le_bytes();
                }
            }
        }
        for (row, made) in strips.chunks_exact(strip).zip(made.chunks_exact_mut(to)) {
            made.copy_from_slice(&row[..to]);
        }
    }
    Bitmap { width: columns.len(), data, ..picture }
}

/// A pixel of each row: three bytes of a word. Without closures, which are not compiled for the same processor.
#[target_feature(enable = "avx2")]
fn weighed(rows: [&[u8]; TOGETHER], pairs: &Pairs) -> [u32; TOGETHER] {
    let zero = _mm256_setzero_si256();
    let (mut high, mut low) = ([zero; 2], [zero; 2]);
    let at = pairs.first * 3;
    let length = pairs.weights.len() * 6 + READ - 6;
    let [a, b, c, d] = rows;
    let (a, b, c, d) = (&a[at..at + length], &b[at..at + length], &c[at..at + length], &d[at..at + length]);
    for (number, weights) in pairs.weights.iter().enumerate() {
        let (high_weights, low_weights) = (_mm256_set1_epi32(weights[0]), _mm256_set1_epi32(weights[1]));
        let at = number * 6;
        let upper = side_by_side(read(a, at), read(b, at));
        high[0] = _mm256_add_epi32(high[0], _mm256_madd_epi16(upper, high_weights));
        low[0] = _mm256_add_epi32(low[0], _mm256_madd_epi16(upper, low_weights));
        let lower = side_by_side(read(c, at), read(d, at));
        high[1] = _mm256_add_epi32(high[1], _mm256_madd_epi16(lower, high_weights));
        low[1] = _mm256_add_epi32(low[1], _mm256_madd_epi16(lower, low_weights));
    }
    // What is beyond a byte becomes the nearest that a byte holds.
    let words = _mm256_packs_epi32(whole(high[0], low[0]), whole(high[1], low[1]));
    let bytes = _mm256_packus_epi16(words, zero);
    let even = _mm_cvtsi128_si64(_mm256_castsi256_si128(bytes)) as u64;
    let odd = _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(bytes)) as u64;
    [even as u32, odd as u32, (even >> 32) as u32, (odd >> 32) as u32]
}

/// Sums as pixels, not yet held within a byte.
#[target_feature(enable = "avx2")]
fn whole(high: __m256i, low: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm256_srai_epi32::<{ PRECISION_BITS as i32 }>(_mm256_add_epi32(sum, _mm256_set1_epi32(HALF)))
}

#[inline(always)]
fn read(row: &[u8], at: usize) -> i64 {
    match row[at..].first_chunk() {
        Some(bytes) => i64::from_le_bytes(*bytes),
        None => 0,
    }
}

/// Two pixels of two rows: numbers of 16 bits, those of a channel beside each other.
#[target_feature(enable = "avx2")]
fn side_by_side(one: i64, other: i64) -> __m256i {
    let order = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1,
        -1,
    );
    _mm256_shuffle_epi8(_mm256_set_m128i(_mm_cvtsi64_si128(other), _mm_cvtsi64_si128(one)), order)
}
