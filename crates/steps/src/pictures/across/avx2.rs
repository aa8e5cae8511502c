//! Rows of another width for pixels of three channels, with instructions that multiply sixteen numbers at once.
//!
//! Four pixels of two rows are made at a time. A window of up to eight pixels, as that of a picture shrunk bilinearly
//! to a third and of a larger one, is read in at most two pieces, and its loop is unrolled.
//!
//! From 512 to 224 pixels, 384 rows take about 105 µs; with one pixel of four rows at a time, and loops of any length,
//! they took 200 (by the profile, one thread, busy machine, 11/2026).

use std::arch::x86_64::{
    __m128i, __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set_m128i,
    _mm256_set1_epi32, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
};
use std::ops::Range;

use crate::pictures::bitmap::{Bitmap, READ_BEHIND};
use crate::pictures::coefficients::{HALF, Window};
use crate::pictures::halves::{halves, whole};

/// Pixels that are made at a time in each of two rows.
const TOGETHER: usize = 4;

/// Bytes that are read at once: of four pixels, and four more.
const READ: usize = 16;

/// Bytes of the four pixels.
const STEP: usize = 12;

/// The pixels that make each pixel, two by two, and the halves of their weights.
struct Pairs {
    firsts: Vec<usize>,
    /// As many for each pixel: behind a window stand weights of zero.
    weights: Vec<[i32; 2]>,
    /// How many for each pixel.
    each: usize,
}

impl Pairs {
    fn of(columns: &[Window]) -> Pairs {
        let each = columns.iter().map(|window| window.weights.len().div_ceil(2)).max().unwrap_or(0);
        let mut weights = Vec::with_capacity(columns.len() * each);
        for window in columns {
            let end = weights.len() + each;
            weights.extend(window.weights.chunks(2).map(halves));
            weights.resize(end, [0; 2]);
        }
        Pairs { firsts: columns.iter().map(|window| window.first).collect(), weights, each }
    }
}

/// As [`across`](super::across), of a picture with three channels.
#[target_feature(enable = "avx2")]
pub fn across(mut picture: Bitmap, columns: &[Window], needed: Range<usize>) -> Bitmap {
    if columns.len() < TOGETHER {
        return super::across(&picture, columns, needed);
    }
    let pairs = Pairs::of(columns);
    let (from, to) = (picture.width * 3, columns.len() * 3);
    let mut data = vec![0; picture.height * to];
    // Behind the last row, since windows are filled up, and more is read than they have.
    let behind = READ_BEHIND.max(pairs.each.div_ceil(2) * STEP + READ);
    picture.data.resize(picture.data.len() + behind, 0);
    let made = data[needed.start * to..needed.end * to].chunks_mut(2 * to);
    for (made, start) in made.zip(needed.clone().step_by(2)) {
        let (one, other) = made.split_at_mut(to);
        // The last row is made by itself where rows do not come out even.
        let [a, b] = [start, (start + 1).min(needed.end - 1)].map(|row| &picture.data[row * from..]);
        let rows = Rows { from: [a, b], to: [one, other] };
        match pairs.each {
            1 => rows.make(&pairs, pairs.weights.as_chunks::<1>().0),
            2 => rows.make(&pairs, pairs.weights.as_chunks::<2>().0),
            3 => rows.make(&pairs, pairs.weights.as_chunks::<3>().0),
            4 => rows.make(&pairs, pairs.weights.as_chunks::<4>().0),
            each => rows.make(&pairs, &pairs.weights.chunks_exact(each).collect::<Vec<_>>()),
        }
    }
    picture.data.truncate(picture.height * from);
    Bitmap { width: columns.len(), data, ..picture }
}

/// Two rows that are made of two.
struct Rows<'a> {
    from: [&'a [u8]; 2],
    to: [&'a mut [u8]; 2],
}

impl Rows<'_> {
    /// Makes all pixels.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn make<W: AsRef<[[i32; 2]]>>(self, pairs: &Pairs, weights: &[W]) {
        let [one, other] = self.to;
        let last = pairs.firsts.len() - TOGETHER;
        let mut column = 0;
        loop {
            // The last ones are made twice where they do not come out even.
            let at = column.min(last);
            let (firsts, weights) = (&pairs.firsts[at..at + TOGETHER], &weights[at..at + TOGETHER]);
            let mut sums = [_mm256_setzero_si256(); TOGETHER];
            for ((sum, &first), weights) in sums.iter_mut().zip(firsts).zip(weights) {
                *sum = weighed(self.from, first * 3, weights.as_ref());
            }
            let bytes: [u8; 32] = bytemuck::cast(packed(sums));
            let place = at * 3..at * 3 + STEP;
            one[place.clone()].copy_from_slice(&bytes[..STEP]);
            if let Some(other) = other.get_mut(place) {
                other.copy_from_slice(&bytes[READ..READ + STEP]);
            }
            column += TOGETHER;
            if column >= pairs.firsts.len() {
                return;
            }
        }
    }
}

/// A pixel of each row: three sums, and one of no use, for the first row, and then for the other.
#[target_feature(enable = "avx2")]
#[inline]
fn weighed([a, b]: [&[u8]; 2], at: usize, weights: &[[i32; 2]]) -> __m256i {
    let length = (weights.len().div_ceil(2) - 1) * STEP + READ;
    let (a, b) = (&a[at..at + length], &b[at..at + length]);
    let (mut high, mut low) = (_mm256_setzero_si256(), _mm256_set1_epi32(HALF));
    for (number, weights) in weights.chunks(2).enumerate() {
        let pixels = _mm256_set_m128i(read(b, number * STEP), read(a, number * STEP));
        for (pixels, &[high_weights, low_weights]) in [first_two(pixels), last_two(pixels)].into_iter().zip(weights) {
            high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, _mm256_set1_epi32(high_weights)));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, _mm256_set1_epi32(low_weights)));
        }
    }
    whole(high, low)
}

#[inline(always)]
fn read(row: &[u8], at: usize) -> __m128i {
    bytemuck::pod_read_unaligned(&row[at..at + READ])
}

/// The first two of four pixels: numbers of 16 bits, those of a channel beside each other.
#[target_feature(enable = "avx2")]
#[inline]
fn first_two(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1,
        -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Likewise the last two.
#[target_feature(enable = "avx2")]
#[inline]
fn last_two(pixels: __m256i) -> __m256i {
    let order = _mm256_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1,
        -1, -1,
    );
    _mm256_shuffle_epi8(pixels, order)
}

/// Pixels of a row side by side, twelve bytes in each half; what is beyond a byte becomes the nearest that one holds.
#[target_feature(enable = "avx2")]
#[inline]
fn packed([a, b, c, d]: [__m256i; TOGETHER]) -> __m256i {
    let bytes = _mm256_packus_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    let order = _mm256_setr_epi8(
        0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,
    );
    _mm256_shuffle_epi8(bytes, order)
}
