//! `data` of an input in one pass: from the text straight into the tensor's bytes.

use super::DecodeContext;
use super::digits::{self, Window};
use super::number::{self, Number};
use super::parse::{peek, skip_space};
use super::text;
use crate::Datatype;
use crate::codec::elements;
use crate::datatype::fits_fp32;
use crate::limits::JSON_MAX_DEPTH;

/// The bytes of a tensor whose `data` begins at `start`, and the offset behind it; `None` where anything is unusual.
///
/// `count` is the number of elements that the shape asks for.
pub fn read(
    text: &[u8],
    start: usize,
    datatype: Datatype,
    count: usize,
    context: DecodeContext<'_>,
) -> Option<(Vec<u8>, usize)> {
    let most_bytes = context.options.max_input_bytes;
    let fixed = |element: ReadElement| {
        let size = datatype.size()?;
        // A shape that lies is found out here: each element takes a byte and a comma.
        let fits = count <= (text.len() - start) / 2 && count.checked_mul(size)? <= most_bytes;
        if !fits {
            return None;
        }
        context.reserve(count * size).ok()?;
        element(text, start, count)
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
        Datatype::Bytes => strings(text, start, context),
        Datatype::Fp16 | Datatype::Bf16 => None,
    }
}

type ReadElement = fn(&[u8], usize, usize) -> Option<(Vec<u8>, usize)>;

/// An element that JSON can carry.
trait Element: Sized {
    const SIZE: usize;

    /// The element whose digits begin the window, where it has one of the most common forms, and its length there.
    fn quick(window: &Window, negative: bool) -> Option<(Self, usize)>;

    /// The element that begins at `at`, of any form, and the offset behind it.
    fn any(text: &[u8], at: usize) -> Option<(Self, usize)>;

    /// Writes the element, little-endian, into exactly its bytes.
    fn put(self, slot: &mut [u8]);
}

fn fill<E: Element>(text: &[u8], start: usize, count: usize) -> Option<(Vec<u8>, usize)> {
    let mut bytes = vec![0; count * E::SIZE];
    let mut slots = bytes.chunks_exact_mut(E::SIZE);
    let end = walk(text, start, |mut at| {
        // A run of common elements with commas behind them, which is nearly all of a tensor.
        while let Some((element, behind)) = quick::<E>(text, at) {
            element.put(slots.next()?);
            at = skip_space(text, behind);
        }
        let (element, end) = E::any(text, at)?;
        element.put(slots.next()?);
        Some(end)
    })?;
    if slots.next().is_some() {
        return None;
    }
    Some((bytes, end))
}

/// The element that begins at `at`, where it is common and followed by a comma, and the offset behind that.
#[inline(always)]
fn quick<E: Element>(text: &[u8], at: usize) -> Option<(E, usize)> {
    let (window, negative) = digits::window(text, at)?;
    let (element, length) = E::quick(window, negative)?;
    (window.get(length) == Some(&b',')).then_some((element, at + usize::from(negative) + length + 1))
}

fn strings(text: &[u8], start: usize, context: DecodeContext<'_>) -> Option<(Vec<u8>, usize)> {
    let mut bytes = Vec::new();
    if context.asks_for_memory() {
        let mut most = 0;
        walk_strings(text, start, |quoted| most += elements::PREFIX_BYTES + quoted.raw.len())?;
        context.reserve(most).ok()?;
        bytes.reserve_exact(most);
    }
    let end = walk_strings(text, start, |quoted| elements::push(&mut bytes, &quoted.bytes()))?;
    (bytes.len() <= context.options.max_input_bytes).then_some((bytes, end))
}

/// Walks over a list of strings and the lists within it.
fn walk_strings<'a>(text: &'a [u8], start: usize, mut each: impl FnMut(text::Quoted<'a>)) -> Option<usize> {
    walk(text, start, |at| {
        if peek(text, at) != b'"' {
            return None;
        }
        let (quoted, end) = text::lex(text, at).ok()?;
        each(quoted);
        Some(end)
    })
}

/// Walks over a list and the lists within it; `leaf` reads the value at an offset and gives the offset behind it.
#[inline(always)]
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

    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(bool, usize)> {
        match window {
            [b't', b'r', b'u', b'e', ..] if !negative => Some((true, 4)),
            [b'f', b'a', b'l', b's', b'e', ..] if !negative => Some((false, 5)),
            _ => None,
        }
    }

    fn any(text: &[u8], at: usize) -> Option<(bool, usize)> {
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

/// Numbers that are read as a wider type; one that does not fit the tensor's is left to the exact way.
macro_rules! number_elements {
    ($($type:ty: $wide:ty),*) => {$(
        impl Element for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn quick(window: &Window, negative: bool) -> Option<($type, usize)> {
                let (value, length) = <$wide as Wide>::quick(window, negative)?;
                Some((<$type>::try_from(value).ok()?, length))
            }

            #[inline(never)]
            fn any(text: &[u8], at: usize) -> Option<($type, usize)> {
                let (value, end) = <$wide as Wide>::any(text, at)?;
                Some((<$type>::try_from(value).ok()?, end))
            }

            #[inline(always)]
            fn put(self, slot: &mut [u8]) {
                slot.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

number_elements!(u8: u64, u16: u64, u32: u64, u64: u64, i8: i64, i16: i64, i32: i64, i64: i64, f32: f32, f64: f64);

/// What numbers are read as; the functions are those of [`Element`].
pub(super) trait Wide: Sized {
    fn quick(window: &Window, negative: bool) -> Option<(Self, usize)>;

    fn any(text: &[u8], at: usize) -> Option<(Self, usize)>;
}

impl Wide for u64 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(u64, usize)> {
        if negative { None } else { digits::integer(window) }
    }

    fn any(text: &[u8], at: usize) -> Option<(u64, usize)> {
        match number::lex(text, at).ok()? {
            (Number::Unsigned(value), end) => Some((value, end)),
            _ => None,
        }
    }
}

impl Wide for i64 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(i64, usize)> {
        let (value, length) = digits::integer(window)?;
        // Up to 15 digits fit either way.
        Some((if negative { -(value as i64) } else { value as i64 }, length))
    }

    fn any(text: &[u8], at: usize) -> Option<(i64, usize)> {
        match number::lex(text, at).ok()? {
            (Number::Unsigned(value), end) => Some((i64::try_from(value).ok()?, end)),
            (Number::Negative(value), end) => Some((value, end)),
            (Number::Double(_), _) => None,
        }
    }
}

impl Wide for f64 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(f64, usize)> {
        let (value, length) = digits::real::<f64>(window, negative)?;
        Some((f64::from_bits(value.to_bits() | u64::from(negative) << 63), length))
    }

    fn any(text: &[u8], at: usize) -> Option<(f64, usize)> {
        match number::lex(text, at).ok()? {
            (Number::Unsigned(value), end) => Some((value as f64, end)),
            (Number::Negative(value), end) => Some((value as f64, end)),
            (Number::Double(value), end) => Some((value, end)),
        }
    }
}

impl Wide for f32 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(f32, usize)> {
        let (value, length) = digits::real::<f32>(window, negative)?;
        Some((f32::from_bits(value.to_bits() | u32::from(negative) << 31), length))
    }

    fn any(text: &[u8], at: usize) -> Option<(f32, usize)> {
        <f64 as Wide>::any(text, at).filter(|&(value, _)| fits_fp32(value)).map(|(value, end)| (value as f32, end))
    }
}
