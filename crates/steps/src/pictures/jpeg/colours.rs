//! Planes of lightness and of two colours become pixels.

use std::arch::x86_64::{
    __m128i, __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_broadcastsi128_si256, _mm256_cvtepu8_epi16,
    _mm256_madd_epi16, _mm256_mulhi_epi16, _mm256_or_si256, _mm256_packs_epi32, _mm256_packus_epi16,
    _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setr_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srai_epi16, _mm256_srai_epi32, _mm256_sub_epi16, _mm256_unpackhi_epi16,
    _mm256_unpacklo_epi16,
};

use super::head::Head;
use super::scan::Plane;
use crate::pictures::bitmap::READ_BEHIND;

/// Pixels that are made at a time.
const TOGETHER: usize = 16;

/// Fewest samples of a colour across that libjpeg interpolates between; fewer stand for two pixels each.
const FEWEST: usize = 3;

/// The pixels, three bytes each.
#[target_feature(enable = "avx2")]
pub fn pixels([light, blue, red]: &[Plane; 3], head: &Head) -> Vec<u8> {
    let (width, height) = (head.width, head.height);
    let samples = width.div_ceil(head.across);
    let padded = width.next_multiple_of(TOGETHER);
    let mut data = Vec::with_capacity(width * height * 3 + padded * 3 + READ_BEHIND);
    let [mut blues, mut reds] = [(); 2].map(|()| Between::new(samples, head.height.div_ceil(head.down)));
    for row in 0..height {
        let end = data.len() + width * 3;
        let blue = blues.row(blue, row, head);
        let red = reds.row(red, row, head);
        let lights = light.row(row).chunks_exact(TOGETHER);
        let colours = blue.chunks_exact(TOGETHER).zip(red.chunks_exact(TOGETHER));
        for (light, (blue, red)) in lights.zip(colours).take(padded / TOGETHER) {
            data.extend_from_slice(&rgb(light, blue, red));
        }
        data.truncate(end);
    }
    data
}

/// Rows of a colour, as wide as rows of lightness.
struct Between {
    samples: usize,
    rows: usize,
    /// Sums of two rows, with the outermost ones twice.
    sums: Vec<u16>,
    wide: Vec<u8>,
}

impl Between {
    fn new(samples: usize, rows: usize) -> Between {
        let wide = vec![0; (2 * samples).next_multiple_of(TOGETHER) + TOGETHER];
        Between { samples, rows, sums: vec![0; samples + 2], wide }
    }

    /// A row, and bytes of no use behind it: a sample is three parts of the nearest, and one of the next.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn row<'a>(&'a mut self, plane: &'a Plane, row: usize, head: &Head) -> &'a [u8] {
        if head.across == 1 {
            return plane.row(row);
        }
        let samples = self.samples;
        if samples < FEWEST {
            for (two, &sample) in
                self.wide.as_chunks_mut::<2>().0.iter_mut().zip(&plane.row(row / head.down)[..samples])
            {
                *two = [sample; 2];
            }
        } else if head.down == 1 {
            for (sum, &sample) in self.sums[1..].iter_mut().zip(&plane.row(row)[..samples]) {
                *sum = sample.into();
            }
            self.widen::<2>([1, 2]);
        } else {
            let near = row / 2;
            let next = if row.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(self.rows - 1) };
            let (near, next) = (&plane.row(near)[..samples], &plane.row(next)[..samples]);
            for ((sum, &near), &next) in self.sums[1..].iter_mut().zip(near).zip(next) {
                *sum = 3 * u16::from(near) + u16::from(next);
            }
            self.widen::<4>([8, 7]);
        }
        &self.wide
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn widen<const BITS: u32>(&mut self, [before, behind]: [u16; 2]) {
        self.sums[0] = self.sums[1];
        self.sums[self.samples + 1] = self.sums[self.samples];
        let (last, this, next) = (&self.sums[..self.samples], &self.sums[1..], &self.sums[2..]);
        for ((two, &this), (&last, &next)) in
            self.wide.as_chunks_mut::<2>().0.iter_mut().zip(this).zip(last.iter().zip(next))
        {
            let (last, next) = (3 * this + last + before, 3 * this + next + behind);
            *two = [(last >> BITS) as u8, (next >> BITS) as u8];
        }
    }
}

/// Pixels of samples. Source: JFIF 1.02, with 16 bits behind the point, as libjpeg has them.
#[target_feature(enable = "avx2")]
#[inline]
fn rgb(light: &[u8], blue: &[u8], red: &[u8]) -> [u8; 3 * TOGETHER] {
    let (light, middle) = (words(light), _mm256_set1_epi16(128));
    let (blue, red) = (_mm256_sub_epi16(words(blue), middle), _mm256_sub_epi16(words(red), middle));
    let twice = _mm256_add_epi16(blue, blue);
    // 1.772 is 2 - 0.228, and 1.402 is 1 + 0.402.
    let b = _mm256_add_epi16(light, _mm256_add_epi16(twice, part(blue, -14_942)));
    let r = _mm256_add_epi16(light, _mm256_add_epi16(red, part(red, 26_345)));
    // -0.71414 is 0.28586 - 1.
    let weights = _mm256_set1_epi32((-22_554 & 0xFFFF) | 18_734 << 16);
    let low = sixteenth(_mm256_madd_epi16(_mm256_unpacklo_epi16(blue, red), weights));
    let high = sixteenth(_mm256_madd_epi16(_mm256_unpackhi_epi16(blue, red), weights));
    let g = _mm256_add_epi16(light, _mm256_sub_epi16(_mm256_packs_epi32(low, high), red));
    side_by_side(r, g, b)
}

#[target_feature(enable = "avx2")]
#[inline]
fn words(bytes: &[u8]) -> __m256i {
    _mm256_cvtepu8_epi16(bytemuck::pod_read_unaligned::<__m128i>(&bytes[..TOGETHER]))
}

/// Numbers times a constant of 16 bits behind the point, rounded.
#[target_feature(enable = "avx2")]
#[inline]
fn part(numbers: __m256i, constant: i16) -> __m256i {
    let product = _mm256_mulhi_epi16(_mm256_add_epi16(numbers, numbers), _mm256_set1_epi16(constant));
    _mm256_srai_epi16::<1>(_mm256_add_epi16(product, _mm256_set1_epi16(1)))
}

/// Sums without their 16 bits behind the point, rounded.
#[target_feature(enable = "avx2")]
#[inline]
fn sixteenth(sums: __m256i) -> __m256i {
    _mm256_srai_epi32::<16>(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << 15)))
}

/// Sixteen pixels of three bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn side_by_side(r: __m256i, g: __m256i, b: __m256i) -> [u8; 3 * TOGETHER] {
    let zero = _mm256_setzero_si256();
    // Both halves of a register hold all sixteen bytes of a colour.
    let all = |words: __m256i| -> __m256i {
        let bytes: [__m128i; 2] =
            bytemuck::cast(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi16(words, zero)));
        _mm256_broadcastsi128_si256(bytes[0])
    };
    let (r, g, b) = (all(r), all(g), all(b));
    // The first 32 bytes, then the last 16, which stand twice.
    let first = _mm256_or_si256(
        _mm256_shuffle_epi8(
            r,
            _mm256_setr_epi8(
                0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9,
                -1, -1, 10, -1,
            ),
        ),
        _mm256_or_si256(
            _mm256_shuffle_epi8(
                g,
                _mm256_setr_epi8(
                    -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1,
                    -1, 9, -1, -1, 10,
                ),
            ),
            _mm256_shuffle_epi8(
                b,
                _mm256_setr_epi8(
                    -1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8,
                    -1, -1, 9, -1, -1,
                ),
            ),
        ),
    );
    let last = _mm256_or_si256(
        _mm256_shuffle_epi8(
            r,
            _mm256_setr_epi8(
                -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1,
                14, -1, -1, 15, -1, -1,
            ),
        ),
        _mm256_or_si256(
            _mm256_shuffle_epi8(
                g,
                _mm256_setr_epi8(
                    -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1, -1, 11, -1, -1, 12, -1, -1, 13,
                    -1, -1, 14, -1, -1, 15, -1,
                ),
            ),
            _mm256_shuffle_epi8(
                b,
                _mm256_setr_epi8(
                    10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, 10, -1, -1, 11, -1, -1, 12, -1, -1,
                    13, -1, -1, 14, -1, -1, 15,
                ),
            ),
        ),
    );
    let (first, last): ([u8; 32], [u8; 32]) = (bytemuck::cast(first), bytemuck::cast(last));
    let mut made = [0; 3 * TOGETHER];
    made[..32].copy_from_slice(&first);
    made[32..].copy_from_slice(&last[..16]);
    made
}
