//! Numbers of 16 bits, FP16 and BF16, from doubles and back.

use alipes_protocol::Datatype;

/// Bits of the exponent and of the fraction.
#[derive(Clone, Copy)]
struct Layout {
    exponent: u32,
    fraction: u32,
}

impl Layout {
    /// The exponent of infinity and of what is no number.
    fn top(self) -> u64 {
        (1 << self.exponent) - 1
    }

    /// What is added to an exponent.
    fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }
}

const DOUBLE: Layout = Layout { exponent: 11, fraction: 52 };

/// The layout of a datatype of 16 bits; none of any other.
fn layout(datatype: Datatype) -> Option<Layout> {
    match datatype {
        Datatype::Fp16 => Some(Layout { exponent: 5, fraction: 10 }),
        Datatype::Bf16 => Some(Layout { exponent: 8, fraction: 7 }),
        _ => None,
    }
}

/// The nearest number of 16 bits, of two equally near ones the even.
///
/// `None` where a finite number lies beyond the range, and for another datatype.
pub fn narrow(datatype: Datatype, value: f64) -> Option<u16> {
    let Layout { exponent, fraction } = layout(datatype)?;
    let target = Layout { exponent, fraction };
    let bits = value.to_bits();
    let infinite = target.top() << fraction;
    let magnitude = if value.is_nan() {
        infinite | 1 << (fraction - 1)
    } else if value.is_infinite() {
        infinite
    } else {
        let rounded = rounded(bits, target);
        if rounded >= infinite {
            return None;
        }
        rounded
    };
    u16::try_from(bits >> 63 << 15 | magnitude).ok()
}

/// The magnitude of a finite double in another layout. One step above the largest number is infinity.
fn rounded(bits: u64, target: Layout) -> u64 {
    let raised = i64::try_from(bits >> DOUBLE.fraction & DOUBLE.top()).unwrap_or_default();
    if raised == 0 {
        // Far below the smallest number of either datatype.
        return 0;
    }
    let significand = bits & ((1 << DOUBLE.fraction) - 1) | 1 << DOUBLE.fraction;
    let exponent = raised - DOUBLE.bias() + target.bias();
    let below = u64::try_from(1 - exponent).unwrap_or(0);
    let dropped = u64::from(DOUBLE.fraction - target.fraction) + below;
    if dropped > u64::from(DOUBLE.fraction) + 1 {
        return 0;
    }
    let (kept, rest, middle) = (significand >> dropped, significand & ((1 << dropped) - 1), 1_u64 << (dropped - 1));
    let above = u64::try_from(exponent - 1).unwrap_or(0) << target.fraction;
    above + kept + u64::from(rest > middle || rest == middle && kept & 1 == 1)
}

/// The double that a number of 16 bits is; not a number for another datatype.
pub fn widen(datatype: Datatype, bits: u16) -> f64 {
    let Some(layout) = layout(datatype) else { return f64::NAN };
    let raised = u64::from(bits) >> layout.fraction & layout.top();
    let fraction = f64::from(bits & ((1 << layout.fraction) - 1)) / f64::from(1_u32 << layout.fraction);
    let exponent = i64::try_from(raised).unwrap_or_default() - layout.bias();
    let magnitude = match raised {
        0 => fraction * power(1 - layout.bias()),
        top if top == layout.top() => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1.0 + fraction) * power(exponent),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// A power of two, within the exponents of doubles.
fn power(exponent: i64) -> f64 {
    f64::from_bits(u64::try_from(exponent + DOUBLE.bias()).unwrap_or(0) << DOUBLE.fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_16_bits_comes_back() {
        for datatype in [Datatype::Fp16, Datatype::Bf16] {
            for bits in 0..=u16::MAX {
                let value = widen(datatype, bits);
                if value.is_nan() {
                    assert!(widen(datatype, narrow(datatype, value).unwrap()).is_nan());
                } else {
                    assert_eq!(narrow(datatype, value), Some(bits), "{datatype} {bits:#x} {value}");
                }
            }
        }
    }

    #[test]
    fn a_double_between_two_numbers_becomes_the_nearer_and_then_the_even() {
        for datatype in [Datatype::Fp16, Datatype::Bf16] {
            let last = narrow(datatype, f64::INFINITY).unwrap() - 1;
            for bits in 0..last {
                let (low, high) = (widen(datatype, bits), widen(datatype, bits + 1));
                let middle = (low + high) / 2.0;
                assert_eq!(narrow(datatype, middle), Some(bits + (bits & 1)), "{middle}");
                assert_eq!(narrow(datatype, middle.next_down()), Some(bits));
                assert_eq!(narrow(datatype, middle.next_up()), Some(bits + 1));
            }
        }
    }

    #[test]
    fn known_numbers_have_their_bits() {
        assert_eq!(narrow(Datatype::Fp16, 1.0), Some(0x3c00));
        assert_eq!(narrow(Datatype::Fp16, -2.5), Some(0xc100));
        assert_eq!(narrow(Datatype::Fp16, 65504.0), Some(0x7bff));
        assert_eq!(narrow(Datatype::Bf16, 1.0), Some(0x3f80));
        assert_eq!(narrow(Datatype::Bf16, 3.140625), Some(0x4049));
        assert_eq!(narrow(Datatype::Fp16, -0.0), Some(0x8000));
        assert_eq!(narrow(Datatype::Fp16, f64::MIN_POSITIVE / 2.0), Some(0));
        for (datatype, beyond) in [(Datatype::Fp16, 65520.0), (Datatype::Fp16, -1e300), (Datatype::Bf16, 3.4e38 * 1.1)]
        {
            assert_eq!(narrow(datatype, beyond), None, "{beyond}");
        }
        assert_eq!(narrow(Datatype::Fp32, 1.0), None);
    }
}
