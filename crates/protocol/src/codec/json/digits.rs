//! The numbers that tensors mostly hold, at speed: eight digits at a time, and no more rounding than an answer needs.
//!
//! Only the most common forms are read here, those with a comma behind them and enough text to look at without minding
//! its end. Every function may answer "not mine"; then the grammar reads the number ([`number`](super::number)).
//!
//! Without this module (13 rounds, two shared cores, November 2026), a JSON request of 3x224x224 FP32 takes 1.65 times
//! the processor time (1.55 to 1.79) if the grammar finds each number and `fast_float2` reads it, 2.05 times (1.92 to
//! 2.19) with `str::parse`, 1.55 times (1.39 to 1.97) with `serde_json` for the whole array; with the digits of FP64,
//! 1.92, 2.24 and 1.76 times. For 64 numbers it is 1.05 (0.99 to 1.12), 1.07 and 1.05 times. A second reader of our
//! own, for the numbers that this one leaves, brought 1.00 times (0.97 to 1.04) and is gone.

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Integers up to here are exact as doubles.
const EXACT: u64 = 1 << 53;

/// Bytes from the first digit on: more than the longest number that is read here and its comma.
const WINDOW: usize = 32;

/// The digits of a number and what follows them.
pub(super) type Window = [u8; WINDOW];

/// Reciprocals of powers of ten, each rounded once.
const RECIPROCALS: [f64; 17] =
    [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16];

/// Powers of ten that up to eight more digits multiply a mantissa with.
const SHIFTS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits of the number at `at`, and whether a minus sign stands in front of them; `None` near the end of the text.
#[inline(always)]
pub(super) fn window(text: &[u8], at: usize) -> Option<(&Window, bool)> {
    let look: &[u8; WINDOW + 1] = text.get(at..)?.first_chunk()?;
    // Behind the sign, so that all that follows stands at the same places whether there is one or not.
    let negative = look[0] == b'-';
    Some((if negative { look.last_chunk() } else { look.first_chunk() }?, negative))
}

/// An integer of up to 15 digits, and its length.
#[inline(always)]
pub(super) fn integer(window: &Window) -> Option<(u64, usize)> {
    let first = word(window, 0);
    let count = leading_digits(first);
    if count < 8 {
        // A zero in front of other digits is no number.
        let plain = count == 1 || (count > 1 && window[0] != b'0');
        return plain.then(|| (first_digits(first, count), count));
    }
    let second = word(window, 8);
    let more = leading_digits(second);
    let value = first_digits(first, 8) * SHIFTS[more] + first_digits(second, more);
    (more < 8 && window[0] != b'0').then_some((value, 8 + more))
}

/// What a number with a point is read as.
pub(super) trait Real: Copy {
    /// `mantissa / 10^places` for a mantissa up to [`EXACT`].
    fn exact(mantissa: u64, places: usize) -> Self;

    /// `mantissa / 10^places` for a mantissa of up to 18 digits; `token` is the number.
    fn long(mantissa: u64, places: usize, token: &[u8]) -> Option<Self>;

    /// A number of which `mantissa / 10^16` is the beginning; `token` is the number.
    fn cut(mantissa: u64, token: &[u8]) -> Option<Self>;
}

/// A number without its sign, and its length.
#[inline(always)]
pub(super) fn real<R: Real>(window: &Window, negative: bool) -> Option<(R, usize)> {
    if window[1] == b'.' { one_digit(window) } else { several_digits(window, negative) }
}

/// A number with one digit in front of the point and up to 23 behind it: all offsets are constant.
///
/// Whether a word of eight digits is full decides a branch, so that the next word is loaded, and the number behind
/// looked for, before the digits of this one are counted.
#[inline(always)]
fn one_digit<R: Real>(window: &Window) -> Option<(R, usize)> {
    let integer = window[0].wrapping_sub(b'0');
    if integer > 9 {
        return None;
    }
    let first = word(window, 2);
    let count = leading_digits(first);
    if count < 8 {
        let mantissa = u64::from(integer) * SHIFTS[count] + first_digits(first, count);
        return (count > 0).then(|| (R::exact(mantissa, count), 2 + count));
    }
    let mantissa = u64::from(integer) * SHIFTS[8] + first_digits(first, 8);
    let second = word(window, 10);
    let count = leading_digits(second);
    if count < 8 {
        let mantissa = mantissa * SHIFTS[count] + first_digits(second, count);
        let length = 10 + count;
        return Some((R::long(mantissa, 8 + count, &window[..length])?, length));
    }
    let mantissa = mantissa * SHIFTS[8] + first_digits(second, 8);
    let count = leading_digits(word(window, 18));
    let length = 18 + count;
    if count == 0 {
        return Some((R::long(mantissa, 16, &window[..length])?, length));
    }
    (count < 8).then(|| R::cut(mantissa, &window[..length]))?.map(|value| (value, length))
}

/// A number with up to seven digits in front of the point, or without a point; how many they are decides no branch.
#[inline(always)]
fn several_digits<R: Real>(window: &Window, negative: bool) -> Option<(R, usize)> {
    let first = word(window, 0);
    let count = leading_digits(first);
    let integer = first_digits(first, count);
    // A zero in front of other digits is no number.
    if !(1..8).contains(&count) || (count > 1 && window[0] == b'0') {
        return None;
    }
    if window[count] != b'.' {
        // Minus zero is an integer, and integers have one zero: not read here, because the sign is set afterwards.
        return (integer > 0 || !negative).then(|| (R::exact(integer, 0), count));
    }
    let start = count + 1;
    let second = word(window, start);
    let places = leading_digits(second);
    let mantissa = integer * SHIFTS[places] + first_digits(second, places);
    if places < 8 {
        return (places > 0).then(|| (R::exact(mantissa, places), start + places));
    }
    let third = word(window, start + 8);
    let more = leading_digits(third);
    if integer > 999 || more == 8 {
        return None;
    }
    let length = start + 8 + more;
    let mantissa = mantissa * SHIFTS[more] + first_digits(third, more);
    Some((R::long(mantissa, 8 + more, &window[..length])?, length))
}

impl Real for f64 {
    #[inline(always)]
    fn exact(mantissa: u64, places: usize) -> f64 {
        mantissa as f64 / POWERS[places]
    }

    #[inline(always)]
    fn long(mantissa: u64, places: usize, token: &[u8]) -> Option<f64> {
        if mantissa <= EXACT { Some(f64::exact(mantissa, places)) } else { f64::cut(mantissa, token) }
    }

    #[inline(never)]
    fn cut(_: u64, token: &[u8]) -> Option<f64> {
        fast_float2::parse(token).ok()
    }
}

/// FP32 is what the nearest double rounds to.
///
/// A double that is off by a few units rounds to the same FP32, unless it lies so near to the middle between two FP32
/// that it may be on the wrong side. What is read here is zero or lies between 1e-23 and 1e7, so the bits that FP32
/// does not have are the lowest 29 of the double's.
impl Real for f32 {
    #[inline(always)]
    fn exact(mantissa: u64, places: usize) -> f32 {
        f64::exact(mantissa, places) as f32
    }

    #[inline(always)]
    fn long(mantissa: u64, places: usize, _: &[u8]) -> Option<f32> {
        // Mantissa, reciprocal and product are rounded: two units off at most.
        round_unless_near_middle(mantissa as f64 * RECIPROCALS[places], 8)
    }

    #[inline(always)]
    fn cut(mantissa: u64, _: &[u8]) -> Option<f32> {
        // What was cut off changes a mantissa of 2^40 or more by less than 2^-40 of it, which is 2^13 units of a
        // double.
        if mantissa < 1 << 40 {
            return None;
        }
        round_unless_near_middle(mantissa as f64 * RECIPROCALS[16], 1 << 14)
    }
}

#[inline(always)]
fn round_unless_near_middle(double: f64, units: u64) -> Option<f32> {
    const CUT: u64 = (1 << 29) - 1;
    let from_middle = (double.to_bits() & CUT).abs_diff(1 << 28);
    (from_middle > units).then_some(double as f32)
}

#[inline(always)]
fn word(window: &Window, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&window[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// How many of the eight bytes, from the lowest on, are digits.
#[inline(always)]
fn leading_digits(word: u64) -> usize {
    const HIGH: u64 = u64::from_ne_bytes([0xF0; 8]);
    const THREES: u64 = u64::from_ne_bytes([0x30; 8]);
    // A digit has a high half of 3, and keeps it when 6 is added. A carry out of a byte only reaches bytes behind one
    // that is no digit itself.
    let others = ((word & HIGH) ^ THREES) | ((word.wrapping_add(THREES / 8) & HIGH) ^ THREES);
    others.trailing_zeros() as usize / 8
}

/// The value of the first `digits` bytes of a word, which are up to 8 digits.
#[inline(always)]
fn first_digits(word: u64, digits: usize) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x0F; 8]);
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    // Digits move to the end and zeros take their place; then neighbours join: two, four, eight digits.
    let word = word.unbounded_shl(64 - 8 * digits as u32) & LOW;
    let word = word.wrapping_mul(10).wrapping_add(word >> 8);
    let upper = (word & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let lower = ((word >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_up_to_the_first_other_byte() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut bytes = *b"12345678";
                bytes[place] = byte;
                let count = if byte.is_ascii_digit() { 8 } else { place };
                assert_eq!(leading_digits(u64::from_le_bytes(bytes)), count);
                let value = bytes[..count].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
                assert_eq!(first_digits(u64::from_le_bytes(bytes), count), value);
            }
        }
    }
}
