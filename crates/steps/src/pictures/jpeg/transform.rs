//! A block from frequencies to samples, with the bits of libjpeg's accurate transform in whole numbers.
//!
//! Source: C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical fast 1-D DCT algorithms with 11 multiplications", 1989;
//! constants have 13 bits behind the point, and 2 more are kept between columns and rows, as libjpeg keeps them.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi16, _mm256_add_epi32, _mm256_adds_epi16, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
    _mm256_srai_epi32, _mm256_sub_epi16, _mm256_sub_epi32, _mm256_unpackhi_epi16, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi16, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::block::{BLOCK, Block, SIDE};

/// Bits behind the point of constants, and more of them between columns and rows.
const POINT: i32 = 13;
const MORE: i32 = 2;

/// Eight numbers of one block, and eight of the other.
type Row = __m256i;

/// Sums of 32 bits: those of the first four numbers of each block, and those of the last four.
type Products = [__m256i; 2];

/// Both blocks as samples: a row of the first, a row of the second, and so on.
#[target_feature(enable = "avx2")]
#[inline]
pub fn pair(blocks: &[Block; 2]) -> [u8; 2 * BLOCK] {
    if blocks[0].flat && blocks[1].flat {
        return flat(blocks);
    }
    let mut rows = [_mm256_setzero_si256(); SIDE];
    for (number, row) in rows.iter_mut().enumerate() {
        let of = |block: &Block| -> [i16; SIDE] { *block.numbers[number * SIDE..].first_chunk().unwrap_or(&[0; SIDE]) };
        *row = bytemuck::cast([of(&blocks[0]), of(&blocks[1])]);
    }
    let columns = transposed(along::<{ POINT - MORE }>(rows));
    let [a, b, c, d, e, f, g, h] = transposed(along::<{ POINT + MORE + 3 }>(columns));
    bytemuck::cast([bytes(a, b), bytes(c, d), bytes(e, f), bytes(g, h)])
}

/// Blocks of one sample each.
fn flat(blocks: &[Block; 2]) -> [u8; 2 * BLOCK] {
    let sample = |block: &Block| (((i32::from(block.numbers[0]) + 4) >> 3) + 128).clamp(0, 255) as u8;
    let (one, other) = ([sample(&blocks[0]); SIDE], [sample(&blocks[1]); SIDE]);
    bytemuck::cast([[one, other]; SIDE])
}

/// Two rows as bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn bytes(one: Row, other: Row) -> __m256i {
    let middle = _mm256_set1_epi16(128);
    let packed = _mm256_packus_epi16(_mm256_adds_epi16(one, middle), _mm256_adds_epi16(other, middle));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
}

/// The transform of each column, less so many bits.
#[target_feature(enable = "avx2")]
#[inline]
fn along<const BITS: i32>([r0, r1, r2, r3, r4, r5, r6, r7]: [Row; SIDE]) -> [Row; SIDE] {
    // Even rows.
    let (low, high) = (both(r2, r6), [shifted(_mm256_add_epi16(r0, r4)), shifted(_mm256_sub_epi16(r0, r4))]);
    let turned = [
        times(low, fix(0.541_196_100) + fix(0.765_366_865), fix(0.541_196_100)),
        times(low, fix(0.541_196_100), fix(0.541_196_100) - fix(1.847_759_065)),
    ];
    let even =
        [plus(high[0], turned[0]), plus(high[1], turned[1]), minus(high[1], turned[1]), minus(high[0], turned[0])];
    // Odd rows.
    let sums = both(_mm256_add_epi16(r7, r3), _mm256_add_epi16(r5, r1));
    let three = times(sums, fix(1.175_875_602) - fix(1.961_570_560), fix(1.175_875_602));
    let four = times(sums, fix(1.175_875_602), fix(1.175_875_602) - fix(0.390_180_644));
    let (outer, inner) = (both(r7, r1), both(r5, r3));
    let seven = times(outer, fix(0.298_631_336) - fix(0.899_976_223), -fix(0.899_976_223));
    let one = times(outer, -fix(0.899_976_223), fix(1.501_321_110) - fix(0.899_976_223));
    let five = times(inner, fix(2.053_119_869) - fix(2.562_915_447), -fix(2.562_915_447));
    let third = times(inner, -fix(2.562_915_447), fix(3.072_711_026) - fix(2.562_915_447));
    let odd = [plus(one, four), plus(third, three), plus(five, four), plus(seven, three)];
    [
        row::<BITS>(plus(even[0], odd[0])),
        row::<BITS>(plus(even[1], odd[1])),
        row::<BITS>(plus(even[2], odd[2])),
        row::<BITS>(plus(even[3], odd[3])),
        row::<BITS>(minus(even[3], odd[3])),
        row::<BITS>(minus(even[2], odd[2])),
        row::<BITS>(minus(even[1], odd[1])),
        row::<BITS>(minus(even[0], odd[0])),
    ]
}

/// A constant in whole numbers.
const fn fix(constant: f64) -> i32 {
    (constant * (1 << POINT) as f64 + 0.5) as i32
}

/// The numbers of two rows, beside each other.
#[target_feature(enable = "avx2")]
#[inline]
fn both(one: Row, other: Row) -> Products {
    [_mm256_unpacklo_epi16(one, other), _mm256_unpackhi_epi16(one, other)]
}

/// The sum of two rows, each times a constant.
#[target_feature(enable = "avx2")]
#[inline]
fn times([low, high]: Products, one: i32, other: i32) -> Products {
    let constants = _mm256_set1_epi32((one & 0xFFFF) | (other << 16));
    [_mm256_madd_epi16(low, constants), _mm256_madd_epi16(high, constants)]
}

/// A row with the bits behind the point that products have.
#[target_feature(enable = "avx2")]
#[inline]
fn shifted(row: Row) -> Products {
    let zero = _mm256_setzero_si256();
    let [low, high] = both(zero, row);
    [_mm256_srai_epi32::<{ 16 - POINT }>(low), _mm256_srai_epi32::<{ 16 - POINT }>(high)]
}

#[target_feature(enable = "avx2")]
#[inline]
fn plus(one: Products, other: Products) -> Products {
    [_mm256_add_epi32(one[0], other[0]), _mm256_add_epi32(one[1], other[1])]
}

#[target_feature(enable = "avx2")]
#[inline]
fn minus(one: Products, other: Products) -> Products {
    [_mm256_sub_epi32(one[0], other[0]), _mm256_sub_epi32(one[1], other[1])]
}

/// Products as numbers of 16 bits, rounded to so many bits less.
#[target_feature(enable = "avx2")]
#[inline]
fn row<const BITS: i32>([low, high]: Products) -> Row {
    let half = _mm256_set1_epi32(1 << (BITS - 1));
    let (low, high) = (_mm256_add_epi32(low, half), _mm256_add_epi32(high, half));
    _mm256_packs_epi32(_mm256_srai_epi32::<BITS>(low), _mm256_srai_epi32::<BITS>(high))
}

/// Columns as rows, of each block by itself.
#[target_feature(enable = "avx2")]
#[inline]
fn transposed([a, b, c, d, e, f, g, h]: [Row; SIDE]) -> [Row; SIDE] {
    let ([ab, ab_high], [cd, cd_high]) = (both(a, b), both(c, d));
    let ([ef, ef_high], [gh, gh_high]) = (both(e, f), both(g, h));
    let (left, right) = (_mm256_unpacklo_epi32(ab, cd), _mm256_unpacklo_epi32(ef, gh));
    let (left_1, right_1) = (_mm256_unpackhi_epi32(ab, cd), _mm256_unpackhi_epi32(ef, gh));
    let (left_2, right_2) = (_mm256_unpacklo_epi32(ab_high, cd_high), _mm256_unpacklo_epi32(ef_high, gh_high));
    let (left_3, right_3) = (_mm256_unpackhi_epi32(ab_high, cd_high), _mm256_unpackhi_epi32(ef_high, gh_high));
    [
        _mm256_unpacklo_epi64(left, right),
        _mm256_unpackhi_epi64(left, right),
        _mm256_unpacklo_epi64(left_1, right_1),
        _mm256_unpackhi_epi64(left_1, right_1),
        _mm256_unpacklo_epi64(left_2, right_2),
        _mm256_unpackhi_epi64(left_2, right_2),
        _mm256_unpacklo_epi64(left_3, right_3),
        _mm256_unpackhi_epi64(left_3, right_3),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flat_block_is_what_it_is_among_others() {
        if !is_x86_feature_detected!("avx2") {
            return;
        }
        for first in (-1200..1200).step_by(7) {
            let mut block = Block::EMPTY;
            block.numbers[0] = first;
            // SAFETY: the processor has what the functions are compiled for, as was just asked.
            let (quickly, wholly) = unsafe { (pair(&[block; 2]), pair(&[block, Block { flat: false, ..block }])) };
            assert_eq!(quickly, wholly, "{first}");
        }
    }
}
