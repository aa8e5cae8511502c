//! Numbers at speed: eight digits at a time, and no more rounding than an answer needs.
//!
//! Only the common forms are read here; every function may answer "not mine", and then [`number`](super::number), which
//! knows the whole grammar, decides.

/// Bytes that one look takes in: more than the longest number that is read here.
const WINDOW: usize = 64;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Powers of ten that up to eight digits more multiply a mantissa with.
const SHIFTS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Integers up to here are exact as doubles.
const EXACT: u64 = 1 << 53;

/// Longest integer part in digits; more would leave too little of the window.
const INTEGER_DIGITS: usize = 19;

/// A number whose digits were read: `mantissa * 10^exponent`, with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub negative: bool,
    /// Below 2^63 where there is a fraction or an exponent.
    pub mantissa: u64,
    exponent: i32,
    /// There is neither a fraction nor an exponent.
    pub integer: bool,
    /// Bytes that the number takes.
    pub length: usize,
}

/// The number that begins at `at`, in one of the common forms. What follows it is for the caller to judge.
#[inline]
pub(super) fn decimal(text: &[u8], at: usize) -> Option<Decimal> {
    let rest = text.get(at..)?;
    match rest.first_chunk() {
        Some(window) => read(window),
        None => {
            // Near the end of the text; zero bytes end a number as anything else does.
            let mut window = [0; WINDOW];
            window[..rest.len()].copy_from_slice(rest);
            read(&window)
        }
    }
}

#[inline]
fn read(window: &[u8; WINDOW]) -> Option<Decimal> {
    let negative = window[0] == b'-';
    let mut at = usize::from(negative);
    let start = at;
    let mut mantissa = u64::from(digit(window, at)?);
    at += 1;
    if mantissa != 0 {
        while let Some(more) = digit(window, at) {
            if at - start == INTEGER_DIGITS {
                return None;
            }
            mantissa = mantissa * 10 + u64::from(more);
            at += 1;
        }
    }
    let mut number = Decimal { negative, mantissa, exponent: 0, integer: true, length: at };
    if window[at] == b'.' {
        read_fraction(window, &mut number)?;
    }
    if window[number.length] | 0x20 == b'e' {
        read_exponent(window, &mut number)?;
    }
    Some(number)
}

#[inline]
fn digit(window: &[u8; WINDOW], at: usize) -> Option<u8> {
    let value = window[at].wrapping_sub(b'0');
    (value < 10).then_some(value)
}

#[inline]
fn read_fraction(window: &[u8; WINDOW], number: &mut Decimal) -> Option<()> {
    number.integer = false;
    number.length += 1;
    let first = number.length;
    // Three words hold the longest fraction that a shortest form of a double has in front of an exponent.
    for _ in 0..3 {
        let word = u64::from_le_bytes(*window[number.length..].first_chunk()?);
        let digits = leading_digits(word);
        if digits > 0 {
            // Below 2^63 even after this, so that the mantissa converts to a double in one instruction.
            if number.mantissa > (i64::MAX as u64 - SHIFTS[digits]) / SHIFTS[digits] {
                return None;
            }
            number.mantissa = number.mantissa * SHIFTS[digits] + first_digits(word, digits);
            number.length += digits;
        }
        if digits < 8 {
            break;
        }
    }
    number.exponent = -((number.length - first) as i32);
    (number.length > first && digit(window, number.length).is_none()).then_some(())
}

/// How many of the eight bytes, from the lowest on, are digits.
#[inline]
fn leading_digits(word: u64) -> usize {
    const HIGH: u64 = u64::from_ne_bytes([0xF0; 8]);
    const THREES: u64 = u64::from_ne_bytes([0x30; 8]);
    // A digit has a high half of 3, and keeps it when 6 is added. A carry out of a byte only reaches bytes behind one
    // that is no digit itself.
    let others = ((word & HIGH) ^ THREES) | ((word.wrapping_add(THREES / 8) & HIGH) ^ THREES);
    others.trailing_zeros() as usize / 8
}

/// The value of the first `digits` bytes of a word, which are 1 to 8 digits.
#[inline]
fn first_digits(word: u64, digits: usize) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x0F; 8]);
    const PAIRS: u64 = 0x0000_00FF_0000_00FF;
    // Digits move to the end and zeros take their place; then neighbours join: two, four, eight digits.
    let word = (word << (64 - 8 * digits)) & LOW;
    let word = word.wrapping_mul(10).wrapping_add(word >> 8);
    let upper = (word & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let lower = ((word >> 16) & PAIRS).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

fn read_exponent(window: &[u8; WINDOW], number: &mut Decimal) -> Option<()> {
    if number.mantissa > i64::MAX as u64 {
        return None;
    }
    number.integer = false;
    let mut at = number.length + 1;
    let negative = window[at] == b'-';
    at += usize::from(negative || window[at] == b'+');
    let mut value = i32::from(digit(window, at)?);
    at += 1;
    while let Some(more) = digit(window, at) {
        if value > 99 {
            return None;
        }
        value = value * 10 + i32::from(more);
        at += 1;
    }
    number.exponent += if negative { -value } else { value };
    number.length = at;
    Some(())
}

impl Decimal {
    /// The nearest double, where at most one rounding yields it.
    ///
    /// Source: W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990.
    #[inline]
    pub(super) fn to_f64(self) -> Option<f64> {
        if self.mantissa > EXACT {
            return None;
        }
        self.scaled()
    }

    /// The FP32 that the nearest double rounds to.
    ///
    /// A mantissa beyond 53 bits takes two roundings more, which put the double off by two units at most. That is
    /// harmless unless it lies so near to the middle between two FP32 that it may be on the wrong side.
    #[inline]
    pub(super) fn to_f32(self) -> Option<f32> {
        const CUT: u64 = (1 << 29) - 1;
        let double = self.scaled()?;
        if self.mantissa > EXACT {
            let from_middle = (double.to_bits() & CUT).abs_diff(1 << 28);
            // Without a positive exponent the value is a normal FP32, whose bits below the cut are the 29 just looked at.
            if from_middle < 8 || self.exponent > 0 {
                return None;
            }
        }
        Some(double as f32)
    }

    /// `mantissa * 10^exponent`, rounded once for each factor that is no double and once for the product.
    #[inline]
    fn scaled(self) -> Option<f64> {
        if self.integer {
            let value = self.mantissa as f64;
            // Minus zero is an integer, and integers have one zero.
            return Some(if self.negative { 0.0 - value } else { value });
        }
        let mantissa = self.mantissa as i64 as f64;
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let value = if self.exponent < 0 { mantissa / power } else { mantissa * power };
        Some(if self.negative { -value } else { value })
    }
}
