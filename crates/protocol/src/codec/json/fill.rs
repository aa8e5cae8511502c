//! `data` of an input in one pass: from the text straight into the tensor's bytes.

use super::digits::{self, Decimal};
use super::number::{self, Number};
use super::parse::{peek, skip_space};
use super::text;
use crate::Datatype;
use crate::codec::elements;
use crate::limits::JSON_MAX_DEPTH;

/// The bytes of a tensor whose `data` begins at `start`, and the offset behind it; `None` where anything is unusual.
///
/// `count` is the number of elements that the shape asks for, `most_bytes` the largest tensor that is wanted.
pub(super) fn read(
    text: &[u8],
    start: usize,
    datatype: Datatype,
    count: usize,
    most_bytes: usize,
) -> Option<(Vec<u8>, usize)> {
    let fixed = |element: ReadElement| {
        let size = datatype.size()?;
        // A shape that lies is found out here: each element takes a byte and a comma.
        let fits = count <= (text.len() - start) / 2 && count.checked_mul(size)? <= most_bytes;
        if fits { element(text, start, count) } else { None }
    };
    match datatype {
        Datatype::Bool => fixed(fill::<bool>),
        Datatype::Uint8 => fixed(fill::<u8>),
        Datatype::Uint16 => fixed(fill::<u16>),
        Datatype::Uint32 => fixed(fill::<u32>),
        Datatype::Uint64 => fixed(fill::<u64>),
        Datatype::Int8 => fixed(fill::<i8>),
        Datatype::Int16 => fixed(fill::<i16>),
        Datatype::Int32 => fixed(fill::<i32>),
        Datatype::Int64 => fixed(fill::<i64>),
        Datatype::Fp32 => fixed(fill::<f32>),
        Datatype::Fp64 => fixed(fill::<f64>),
        Datatype::Bytes => strings(text, start, most_bytes),
        Datatype::Fp16 | Datatype::Bf16 => None,
    }
}

type ReadElement = fn(&[u8], usize, usize) -> Option<(Vec<u8>, usize)>;

/// An element that JSON can carry.
trait Element: Sized {
    const SIZE: usize;

    /// The element that begins at `at`, and the offset behind it.
    fn read(text: &[u8], at: usize) -> Option<(Self, usize)>;

    /// Writes the element, little-endian, into exactly its bytes.
    fn put(self, slot: &mut [u8]);
}

fn fill<E: Element>(text: &[u8], start: usize, count: usize) -> Option<(Vec<u8>, usize)> {
    let mut bytes = vec![0; count * E::SIZE];
    let mut slots = bytes.chunks_exact_mut(E::SIZE);
    let end = walk(text, start, |at| {
        let (element, end) = E::read(text, at)?;
        element.put(slots.next()?);
        Some(end)
    })?;
    if slots.next().is_some() {
        return None;
    }
    Some((bytes, end))
}

fn strings(text: &[u8], start: usize, most_bytes: usize) -> Option<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    let end = walk(text, start, |at| {
        if peek(text, at) != b'"' {
            return None;
        }
        let (quoted, end) = text::lex(text, at).ok()?;
        elements::push(&mut bytes, &quoted.bytes());
        Some(end)
    })?;
    (bytes.len() <= most_bytes).then_some((bytes, end))
}

/// Walks over a list and the lists within it; `leaf` reads the value at an offset and gives the offset behind it.
#[inline]
fn walk(text: &[u8], start: usize, mut leaf: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
    if peek(text, start) != b'[' {
        return None;
    }
    let mut at = start;
    let mut depth = 0;
    loop {
        if peek(text, at) == b'[' {
            depth += 1;
            at = skip_space(text, at + 1);
            if depth > JSON_MAX_DEPTH {
                return None;
            }
            if peek(text, at) != b']' {
                continue;
            }
        } else {
            at = leaf(at)?;
        }
        loop {
            at = skip_space(text, at);
            match peek(text, at) {
                b',' => break,
                b']' if depth == 1 => return Some(at + 1),
                b']' => depth -= 1,
                _ => return None,
            }
            at += 1;
        }
        at = skip_space(text, at + 1);
    }
}

impl Element for bool {
    const SIZE: usize = 1;

    fn read(text: &[u8], at: usize) -> Option<(bool, usize)> {
        match text.get(at..)? {
            [b't', b'r', b'u', b'e', ..] => Some((true, at + 4)),
            [b'f', b'a', b'l', b's', b'e', ..] => Some((false, at + 5)),
            _ => None,
        }
    }

    fn put(self, slot: &mut [u8]) {
        slot.copy_from_slice(&[u8::from(self)]);
    }
}

/// Integers are read as 64 bits and cut to the tensor's width, as Triton does.
macro_rules! integer_element {
    ($($type:ty: $read:ident),*) => {$(
        impl Element for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline]
            fn read(text: &[u8], at: usize) -> Option<($type, usize)> {
                let (value, end) = $read(text, at)?;
                Some((value as $type, end))
            }

            #[inline]
            fn put(self, slot: &mut [u8]) {
                slot.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

integer_element!(u8: unsigned, u16: unsigned, u32: unsigned, u64: unsigned);
integer_element!(i8: signed, i16: signed, i32: signed, i64: signed);

/// The non-negative integer of 64 bits that begins at `at`, and the offset behind it.
#[inline]
pub(super) fn unsigned(text: &[u8], at: usize) -> Option<(u64, usize)> {
    match digits::decimal(text, at) {
        Some(Decimal { integer: true, negative: false, mantissa, length, .. }) => Some((mantissa, at + length)),
        _ => match number::lex(text, at).ok()? {
            (Number::Unsigned(value), end) => Some((value, end)),
            _ => None,
        },
    }
}

#[inline]
fn signed(text: &[u8], at: usize) -> Option<(i64, usize)> {
    match digits::decimal(text, at) {
        Some(Decimal { integer: true, negative, mantissa, length, .. }) if mantissa <= i64::MAX as u64 => {
            let value = mantissa as i64;
            Some((if negative { -value } else { value }, at + length))
        }
        _ => match number::lex(text, at).ok()? {
            (Number::Unsigned(value), end) => Some((i64::try_from(value).ok()?, end)),
            (Number::Negative(value), end) => Some((value, end)),
            (Number::Double(_), _) => None,
        },
    }
}

impl Element for f32 {
    const SIZE: usize = 4;

    #[inline]
    fn read(text: &[u8], at: usize) -> Option<(f32, usize)> {
        if let Some(decimal) = digits::decimal(text, at)
            && let Some(value) = decimal.to_f32()
        {
            return Some((value, at + decimal.length));
        }
        double(text, at).map(|(value, end)| (value as f32, end))
    }

    #[inline]
    fn put(self, slot: &mut [u8]) {
        slot.copy_from_slice(&self.to_le_bytes());
    }
}

impl Element for f64 {
    const SIZE: usize = 8;

    #[inline]
    fn read(text: &[u8], at: usize) -> Option<(f64, usize)> {
        if let Some(decimal) = digits::decimal(text, at) {
            if let Some(value) = decimal.to_f64() {
                return Some((value, at + decimal.length));
            }
            // A zero is left to the grammar, which refuses some exponents whatever they apply to.
            if !decimal.integer && decimal.mantissa > 0 {
                let end = at + decimal.length;
                let value = fast_float2::parse(&text[at..end]).ok().filter(|value: &f64| value.is_finite());
                return value.map(|value| (value, end));
            }
        }
        double(text, at)
    }

    #[inline]
    fn put(self, slot: &mut [u8]) {
        slot.copy_from_slice(&self.to_le_bytes());
    }
}

/// Any number, by the whole grammar.
#[cold]
fn double(text: &[u8], at: usize) -> Option<(f64, usize)> {
    match number::lex(text, at).ok()? {
        (Number::Unsigned(value), end) => Some((value as f64, end)),
        (Number::Negative(value), end) => Some((value as f64, end)),
        (Number::Double(value), end) => Some((value, end)),
    }
}
