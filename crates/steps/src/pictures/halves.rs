//! Weights in two halves, which instructions that multiply numbers of 16 bits can take.

use std::arch::x86_64::{__m256i, _mm256_add_epi32, _mm256_slli_epi32, _mm256_srai_epi32};

use super::coefficients::PRECISION_BITS;

/// Bits of a weight's lower half. Both halves fit 16 bits: weights are less than twice one.
const LOW_BITS: u32 = 11;

/// High halves of one or two weights in one word, then the low ones. A missing weight is zero.
pub fn halves(weights: &[i32]) -> [i32; 2] {
    let (one, other) = (weights[0], weights.get(1).copied().unwrap_or(0));
    let word = |low: i32, high: i32| (low & 0xFFFF) | (high << 16);
    let low = |weight: i32| weight & ((1 << LOW_BITS) - 1);
    [word(one >> LOW_BITS, other >> LOW_BITS), word(low(one), low(other))]
}

/// Sums of both halves as pixels, not yet held within a byte. Those of the low half began with
/// [`HALF`](super::coefficients::HALF).
#[target_feature(enable = "avx2")]
#[inline]
pub fn whole(high: __m256i, low: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<{ LOW_BITS as i32 }>(high), low);
    _mm256_srai_epi32::<{ PRECISION_BITS as i32 }>(sum)
}
