//! Values as JSON text, byte for byte as RapidJSON writes them.

/// Appends a string in quotation marks. Bytes above 127 stand as they are, be they UTF-8 or not.
pub fn string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let mut plain = 0;
    for (at, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[plain..at]);
        escape(out, byte);
        plain = at + 1;
    }
    out.extend_from_slice(&text[plain..]);
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let letter = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0C => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Appends an integer.
pub(super) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends a double: the fewest digits that lead back to it, with a point or an exponent.
pub(super) fn double(out: &mut Vec<u8>, value: f64) {
    /// Within these magnitudes both write a plain decimal.
    const SAME: std::ops::Range<f64> = 1e-5..1e16;
    if !value.is_finite() {
        return out.extend_from_slice(match value {
            f64::INFINITY => b"Infinity",
            f64::NEG_INFINITY => b"-Infinity",
            _ => b"NaN",
        });
    }
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value);
    if SAME.contains(&value.abs()) || value == 0.0 {
        out.extend_from_slice(shortest.as_bytes());
    } else {
        rearrange(out, shortest);
    }
}

/// Appends a decimal text the way RapidJSON lays its digits out: without exponent from 1e-6 to below 1e21.
fn rearrange(out: &mut Vec<u8>, shortest: &str) {
    let (unsigned, negative) = shortest.strip_prefix('-').map_or((shortest, false), |rest| (rest, true));
    let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [integer, fraction].concat();
    // The value is 0.DIGITS times ten to this power, once leading zeros are gone.
    let leading_zeros = digits.len() - digits.trim_start_matches('0').len();
    let point = exponent.parse().unwrap_or(0) + integer.len() as i32 - leading_zeros as i32;
    let digits = digits.trim_matches('0').as_bytes();
    if negative {
        out.push(b'-');
    }
    match point {
        -5..=0 => {
            out.extend_from_slice(b"0.");
            out.extend(std::iter::repeat_n(b'0', point.unsigned_abs() as usize));
            out.extend_from_slice(digits);
        }
        1..=21 => {
            let (before, after) = digits.split_at(digits.len().min(point as usize));
            out.extend_from_slice(before);
            out.extend(std::iter::repeat_n(b'0', point as usize - before.len()));
            out.push(b'.');
            out.extend_from_slice(if after.is_empty() { b"0" } else { after });
        }
        _ => {
            out.extend_from_slice(&digits[..1]);
            if digits.len() > 1 {
                out.push(b'.');
                out.extend_from_slice(&digits[1..]);
            }
            out.push(b'e');
            self::integer(out, point - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: f64) -> String {
        let mut out = Vec::new();
        double(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_look_as_rapidjson_writes_them() {
        assert_eq!(written(0.0), "0.0");
        assert_eq!(written(-0.0), "-0.0");
        assert_eq!(written(1.0), "1.0");
        assert_eq!(written(0.1_f32.into()), "0.10000000149011612");
        assert_eq!(written(1e20_f32.into()), "100000002004087730000.0");
        assert_eq!(written(1e-20_f32.into()), "9.999999682655225e-21");
        assert_eq!(written(f64::NAN), "NaN");
        assert_eq!(written(-f64::NAN), "NaN");
        assert_eq!(written(f64::NEG_INFINITY), "-Infinity");
    }

    #[test]
    fn the_exponent_appears_at_rapidjsons_borders() {
        assert_eq!(written(1e-5), "0.00001");
        assert_eq!(written(-1.5e-6), "-0.0000015");
        assert_eq!(written(9.9e-7), "9.9e-7");
        assert_eq!(written(1e-7), "1e-7");
        assert_eq!(written(1e16), "10000000000000000.0");
        assert_eq!(written(123456789012345680000.0), "123456789012345680000.0");
        assert_eq!(written(1e20), "100000000000000000000.0");
        assert_eq!(written(1e21), "1e21");
        assert_eq!(written(-1.25e21), "-1.25e21");
        assert_eq!(written(5e-324), "5e-324");
        assert_eq!(written(f64::MAX), "1.7976931348623157e308");
    }

    #[test]
    fn every_text_leads_back_to_its_double() {
        let mut bits = 1_u64;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_eq!(written(value).parse::<f64>().unwrap().to_bits(), bits);
            }
        }
    }

    #[test]
    fn strings_are_escaped_as_rapidjson_escapes_them() {
        let mut out = Vec::new();
        string(&mut out, b"\xC5\xBE\"\\\n\t/\x01\x1f\x7f\x08\x0c\r\xff");
        assert_eq!(out, b"\"\xC5\xBE\\\"\\\\\\n\\t/\\u0001\\u001F\x7f\\b\\f\\r\xff\"");
    }
}
