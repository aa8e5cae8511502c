//! Decimal numbers of any common form, digit by digit, where 64 bits hold the digits and one rounding gives the value.

/// Powers of ten that a double holds exactly.
pub(super) const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// Integers up to here are exact as doubles.
pub(super) const EXACT: u64 = 1 << 53;

/// Largest mantissa that another digit may follow.
const ROOM: u64 = u64::MAX / 10 - 1;

/// A number whose digits were read: `mantissa * 10^exponent`, with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    pub negative: bool,
    pub mantissa: u64,
    exponent: i32,
    /// There is neither a fraction nor an exponent.
    pub integer: bool,
    /// The offset behind the number.
    pub end: usize,
}

/// The number that begins at `start`; what follows it is for the caller to judge.
pub(super) fn read(text: &[u8], start: usize) -> Option<Decimal> {
    let negative = text.get(start) == Some(&b'-');
    let start = start + usize::from(negative);
    let (mut mantissa, mut end) = digits(text, start, 0)?;
    if text[start] == b'0' && end > start + 1 {
        return None;
    }
    let mut exponent = 0;
    if text.get(end) == Some(&b'.') {
        let fraction = end + 1;
        (mantissa, end) = digits(text, fraction, mantissa)?;
        exponent = -i32::try_from(end - fraction).ok()?;
    }
    let mut integer = exponent == 0;
    if let Some(b'e' | b'E') = text.get(end) {
        let (value, behind) = signed_digits(text, end + 1)?;
        (exponent, end, integer) = (exponent.checked_add(value)?, behind, false);
    }
    Some(Decimal { negative, mantissa, exponent, integer, end })
}

/// Appends the digits from `start` on, of which there is at least one; also gives the offset behind them.
fn digits(text: &[u8], start: usize, mut value: u64) -> Option<(u64, usize)> {
    let mut end = start;
    while let Some(digit @ b'0'..=b'9') = text.get(end) {
        if value > ROOM {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
        end += 1;
    }
    (end > start).then_some((value, end))
}

fn signed_digits(text: &[u8], start: usize) -> Option<(i32, usize)> {
    let negative = text.get(start) == Some(&b'-');
    let (value, end) = digits(text, start + usize::from(negative || text.get(start) == Some(&b'+')), 0)?;
    let value = i32::try_from(value).ok()?;
    Some((if negative { -value } else { value }, end))
}

impl Decimal {
    /// The nearest double, where one rounding yields it.
    ///
    /// Source: W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990.
    pub(super) fn to_f64(self) -> Option<f64> {
        if self.mantissa > EXACT {
            return None;
        }
        let mantissa = self.mantissa as f64;
        let power = *POWERS.get(self.exponent.unsigned_abs() as usize)?;
        let value = if self.exponent < 0 { mantissa / power } else { mantissa * power };
        // Minus zero is an integer, and integers have one zero.
        let minus = self.negative && !(self.integer && self.mantissa == 0);
        Some(if minus { -value } else { value })
    }
}
