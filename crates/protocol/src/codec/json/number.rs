//! Number tokens: their grammar with RapidJSON's faults, and the three kinds of numbers that it tells apart.

use super::error::{Fault, SyntaxError};

/// A number as accessors see it: `1` is no double, `1.0` is no integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Unsigned(u64),
    /// Below zero.
    Negative(i64),
    /// With a fraction or an exponent, too large for 64 bits, or not finite.
    Double(f64),
}

/// A number token that was found; the text lies before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub end: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Integer,
    Decimal,
    NotANumber,
    Infinity,
}

/// Finds the number that begins at `start`.
pub(super) fn scan(text: &[u8], start: usize) -> Result<Token, SyntaxError> {
    let integer = start + usize::from(text.get(start) == Some(&b'-'));
    let mut end = match text.get(integer) {
        Some(b'0') => integer + 1,
        Some(b'1'..=b'9') => skip_digits(text, integer),
        Some(b'N' | b'I') => return scan_word(text, integer),
        _ => return Err(SyntaxError::new(Fault::InvalidValue, integer)),
    };
    let integer_digits = end - integer;
    let mut fraction_digits = 0;
    if text.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = skip_digits(text, fraction);
        fraction_digits = end - fraction;
        if fraction_digits == 0 {
            return Err(SyntaxError::new(Fault::NoFraction, end));
        }
    }
    let mut exponent = None;
    if let Some(b'e' | b'E') = text.get(end) {
        let (value, behind) = scan_exponent(text, end + 1)?;
        (exponent, end) = (Some(value), behind);
    }
    let grows = exponent.unwrap_or(0).saturating_add(integer_digits as i64) > f64::MAX_10_EXP as i64;
    if grows && overflows(&text[start..end], exponent.unwrap_or(0), fraction_digits) {
        return Err(SyntaxError::new(Fault::NumberTooBig, start));
    }
    let kind = if fraction_digits == 0 && exponent.is_none() { Kind::Integer } else { Kind::Decimal };
    Ok(Token { end, kind })
}

/// Reads the number that begins at `start`; also gives the offset behind it.
pub(super) fn lex(text: &[u8], start: usize) -> Result<(Number, usize), SyntaxError> {
    let token = scan(text, start)?;
    Ok((value(&text[start..token.end], token.kind), token.end))
}

fn value(token: &[u8], kind: Kind) -> Number {
    let negative = token[0] == b'-';
    match kind {
        Kind::Integer => integer(token, negative).unwrap_or_else(|| Number::Double(double(token))),
        Kind::Decimal => Number::Double(double(token)),
        Kind::NotANumber => Number::Double(f64::NAN),
        Kind::Infinity => Number::Double(if negative { f64::NEG_INFINITY } else { f64::INFINITY }),
    }
}

/// `None` where 64 bits are not enough. Minus zero is the integer zero.
fn integer(token: &[u8], negative: bool) -> Option<Number> {
    let magnitude = token[usize::from(negative)..]
        .iter()
        .try_fold(0_u64, |value, &digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    if !negative || magnitude == 0 {
        return Some(Number::Unsigned(magnitude));
    }
    0_i64.checked_sub_unsigned(magnitude).map(Number::Negative)
}

/// The nearest double; infinity where the token lies beyond the largest.
fn double(token: &[u8]) -> f64 {
    // A token that the grammar accepted always parses.
    fast_float2::parse(token).unwrap_or(f64::NAN)
}

/// RapidJSON also refuses exponents that only a zero mantissa keeps in range, such as `0e309`.
fn overflows(token: &[u8], exponent: i64, fraction_digits: usize) -> bool {
    exponent > f64::MAX_10_EXP as i64 + fraction_digits as i64 || double(token).is_infinite()
}

/// `NaN`, `Inf` and `Infinity`, which RapidJSON takes beyond the grammar of JSON.
fn scan_word(text: &[u8], start: usize) -> Result<Token, SyntaxError> {
    let (short, kind): (&[u8], Kind) =
        if text[start] == b'N' { (b"NaN", Kind::NotANumber) } else { (b"Inf", Kind::Infinity) };
    let end = expect(text, start, short)?;
    if kind == Kind::Infinity && text.get(end) == Some(&b'i') {
        return Ok(Token { end: expect(text, end, b"inity")?, kind });
    }
    Ok(Token { end, kind })
}

/// The offset behind `word`, which must begin at `start`. The fault is told at the first byte that differs.
pub(super) fn expect(text: &[u8], start: usize, word: &[u8]) -> Result<usize, SyntaxError> {
    let same = text[start..].iter().zip(word).take_while(|(seen, wanted)| seen == wanted).count();
    if same == word.len() { Ok(start + same) } else { Err(SyntaxError::new(Fault::InvalidValue, start + same)) }
}

fn scan_exponent(text: &[u8], start: usize) -> Result<(i64, usize), SyntaxError> {
    let digits = start + usize::from(matches!(text.get(start), Some(b'+' | b'-')));
    let end = skip_digits(text, digits);
    if end == digits {
        return Err(SyntaxError::new(Fault::NoExponent, end));
    }
    let value = text[digits..end]
        .iter()
        .fold(0_i64, |value, &digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Ok((if text[start] == b'-' { -value } else { value }, end))
}

fn skip_digits(text: &[u8], start: usize) -> usize {
    start + text[start..].iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        let (number, end) = lex(text.as_bytes(), 0).unwrap();
        assert_eq!(end, text.len());
        number
    }

    fn fault(text: &str) -> (Fault, usize) {
        let error = lex(text.as_bytes(), 0).unwrap_err();
        (error.fault, error.offset)
    }

    #[test]
    fn integers_keep_their_64_bits() {
        assert_eq!(number("0"), Number::Unsigned(0));
        assert_eq!(number("-0"), Number::Unsigned(0));
        assert_eq!(number("18446744073709551615"), Number::Unsigned(u64::MAX));
        assert_eq!(number("-9223372036854775808"), Number::Negative(i64::MIN));
        assert_eq!(number("18446744073709551616"), Number::Double(18446744073709551616.0));
        assert_eq!(number("-9223372036854775809"), Number::Double(-9223372036854775809.0));
    }

    #[test]
    fn a_fraction_or_an_exponent_makes_a_double() {
        assert_eq!(number("1.0"), Number::Double(1.0));
        assert_eq!(number("-12.5e-1"), Number::Double(-1.25));
        assert_eq!(number("1E+2"), Number::Double(100.0));
        assert_eq!(number("1e-400"), Number::Double(0.0));
        assert_eq!(number("0.0e309"), Number::Double(0.0));
        assert_eq!(number("0.8444218515250481"), Number::Double(0.8444218515250481));
    }

    #[test]
    fn words_beyond_json_are_numbers() {
        assert!(matches!(number("NaN"), Number::Double(value) if value.is_nan()));
        assert_eq!(number("Inf"), Number::Double(f64::INFINITY));
        assert_eq!(number("-Infinity"), Number::Double(f64::NEG_INFINITY));
        assert_eq!(fault("Nan"), (Fault::InvalidValue, 2));
        assert_eq!(fault("Infinit"), (Fault::InvalidValue, 7));
        assert_eq!(fault("-I"), (Fault::InvalidValue, 2));
    }

    #[test]
    fn faults_point_where_rapidjson_points() {
        assert_eq!(fault("-"), (Fault::InvalidValue, 1));
        assert_eq!(fault("+1"), (Fault::InvalidValue, 0));
        assert_eq!(fault("1."), (Fault::NoFraction, 2));
        assert_eq!(fault("1.5e"), (Fault::NoExponent, 4));
        assert_eq!(fault("1e+"), (Fault::NoExponent, 3));
        assert_eq!(fault("1e400"), (Fault::NumberTooBig, 0));
        assert_eq!(fault("0e309"), (Fault::NumberTooBig, 0));
        assert_eq!(fault("-1.8e308"), (Fault::NumberTooBig, 0));
        assert_eq!(fault(&"9".repeat(400)), (Fault::NumberTooBig, 0));
    }

    #[test]
    fn a_leading_zero_ends_the_number() {
        assert_eq!(lex(b"01", 0).unwrap(), (Number::Unsigned(0), 1));
    }
}
