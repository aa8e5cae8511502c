//! Rows: documents of calls whose arguments are numbers, texts and arrays of numbers, read straight into the columns of
//! a batch.
//!
//! The reader takes only what every reader of JSON takes, and takes the same for it. At anything else, be it wrong or
//! merely unusual, it gives up: the caller, who knows the function's annotations, finds the arguments or the error.

use smallvec::SmallVec;

use super::cursor::Cursor;
use super::digits::{self, Window};
use super::fill::Wide;
use super::number::{self, Number};
use super::parse::{peek, skip_space};
pub use super::rows_text::write_row;
use super::text;
use crate::codec::elements;
use crate::{Datatype, Shape};

/// Most arguments: more are left to others.
pub const MAX_ARGUMENTS: usize = 64;

/// Most axes of a row: more are left to others.
const MAX_AXES: usize = 16;

/// Integers up to here are exact as doubles, so that an FP32 is rounded once, whichever way it goes.
const EXACT: u64 = 1 << 53;

/// From here on, readers of JSON disagree about what an integer becomes.
const LARGE: f64 = (1_u64 << 63) as f64;

/// An argument: a member of the document.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name, as it stands in the document without escapes.
    pub name: String,
    /// Of its elements. `BYTES` is one text.
    pub datatype: Datatype,
    /// Sizes of a row, `-1` for one that varies; none where any shape will do.
    pub shape: Option<Shape>,
}

/// What a document has for an argument.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// Sizes; empty for a number or a text.
    pub shape: Shape,
    /// The elements, little-endian; a text has its length in front.
    pub bytes: Vec<u8>,
}

/// Reads the documents of one function.
#[derive(Debug)]
pub struct RowReader {
    arguments: Vec<Argument>,
}

impl RowReader {
    /// A reader of documents that have all of these arguments and no others; none where it cannot read one of them.
    pub fn new(arguments: Vec<Argument>) -> Option<RowReader> {
        let reads = |argument: &Argument| match argument.datatype {
            Datatype::Fp16 | Datatype::Bf16 => false,
            Datatype::Bytes => argument.shape.as_ref().is_some_and(|shape| shape.is_empty()),
            _ => true,
        };
        let takes = (1..=MAX_ARGUMENTS).contains(&arguments.len()) && arguments.iter().all(reads);
        takes.then_some(RowReader { arguments })
    }

    /// The arguments, in the order of the columns.
    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    /// Reads a document into as many columns as there are arguments, whose memory is used again.
    ///
    /// `None`: something about it is unusual, and the columns mean nothing.
    pub fn read(&self, document: &[u8], columns: &mut [Column]) -> Option<()> {
        let mut cursor = Cursor { text: document, at: skip_space(document, 0) };
        let mut seen = 0_u64;
        let mut members = cursor.open(b'{')?;
        while let Some(name) = cursor.next_name(&mut members)? {
            let index = self.arguments.iter().position(|argument| argument.name.as_bytes() == name)?;
            let bit = 1 << index;
            if seen & bit != 0 {
                return None;
            }
            seen |= bit;
            cursor.at = read_value(document, cursor.at, &self.arguments[index], &mut columns[index])?;
        }
        let all = seen.count_ones() as usize == self.arguments.len();
        (all && skip_space(document, cursor.at) == document.len()).then_some(())
    }
}

/// Reads the value at an offset; gives the offset behind it.
fn read_value(text: &[u8], at: usize, argument: &Argument, value: &mut Column) -> Option<usize> {
    value.shape.clear();
    value.bytes.clear();
    let read = match argument.datatype {
        Datatype::Bool => array::<bool>,
        Datatype::Uint8 => array::<u8>,
        Datatype::Uint16 => array::<u16>,
        Datatype::Uint32 => array::<u32>,
        Datatype::Uint64 => array::<u64>,
        Datatype::Int8 => array::<i8>,
        Datatype::Int16 => array::<i16>,
        Datatype::Int32 => array::<i32>,
        Datatype::Int64 => array::<i64>,
        Datatype::Fp32 => array::<f32>,
        Datatype::Fp64 => array::<f64>,
        Datatype::Bytes => string,
        Datatype::Fp16 | Datatype::Bf16 => return None,
    };
    let end = read(text, at, value)?;
    let fits = argument.shape.as_ref().is_none_or(|wanted| {
        wanted.len() == value.shape.len()
            && wanted.iter().zip(&value.shape).all(|(&wanted, &size)| wanted == -1 || wanted == size)
    });
    fits.then_some(end)
}

/// A text without escapes.
fn string(text: &[u8], at: usize, value: &mut Column) -> Option<usize> {
    if peek(text, at) != b'"' {
        return None;
    }
    let (quoted, end) = text::lex(text, at).ok()?;
    if quoted.escaped || quoted.raw.iter().any(|&byte| byte < 0x20) || str::from_utf8(quoted.raw).is_err() {
        return None;
    }
    elements::push(&mut value.bytes, quoted.raw);
    Some(end)
}

/// A number, or lists of them that lie regularly within each other; none of them is empty.
fn array<E: RowElement>(text: &[u8], start: usize, value: &mut Column) -> Option<usize> {
    let Column { shape, bytes } = value;
    if peek(text, start) != b'[' {
        let (element, end) = E::any(text, start)?;
        element.put(bytes);
        return Some(end);
    }
    let mut at = start;
    // Of each open list, how many items it has so far; `shape` has the sizes of those that were closed.
    let mut counts: SmallVec<[i64; 6]> = SmallVec::new();
    let mut numbers_lie_at = None;
    loop {
        if peek(text, at) == b'[' {
            if numbers_lie_at.is_some_and(|depth| counts.len() >= depth) || counts.len() == MAX_AXES {
                return None;
            }
            counts.push(0);
            if shape.len() < counts.len() {
                shape.push(-1);
            }
            at = skip_space(text, at + 1);
            continue;
        }
        let depth = counts.len();
        if *numbers_lie_at.get_or_insert(depth) != depth {
            return None;
        }
        let count = counts.last_mut()?;
        // A run of common elements with commas behind them, which is nearly all of an array.
        while let Some((element, behind)) = quick::<E>(text, at) {
            element.put(bytes);
            *count += 1;
            at = skip_space(text, behind);
        }
        let (element, end) = E::any(text, at)?;
        element.put(bytes);
        *count += 1;
        at = close(text, end, &mut counts, shape)?;
        if counts.is_empty() {
            return Some(at);
        }
    }
}

/// Closes the lists that end behind an item; gives the offset of the next item, or that behind the outermost list.
fn close(text: &[u8], mut at: usize, counts: &mut SmallVec<[i64; 6]>, shape: &mut Shape) -> Option<usize> {
    loop {
        at = skip_space(text, at);
        match peek(text, at) {
            b',' => return Some(skip_space(text, at + 1)),
            b']' => {}
            _ => return None,
        }
        at += 1;
        let count = counts.pop()?;
        let size = &mut shape[counts.len()];
        if *size == -1 {
            *size = count;
        }
        if *size != count {
            return None;
        }
        match counts.last_mut() {
            Some(outer) => *outer += 1,
            None => return Some(at),
        }
    }
}

/// The element that begins at `at`, where it is common and followed by a comma, and the offset behind that.
#[inline(always)]
fn quick<E: RowElement>(text: &[u8], at: usize) -> Option<(E, usize)> {
    let (window, negative) = digits::window(text, at)?;
    let (element, length) = E::quick(window, negative)?;
    (window.get(length) == Some(&b',')).then_some((element, at + usize::from(negative) + length + 1))
}

/// An element about which all readers of JSON agree.
trait RowElement: Sized {
    /// The element whose digits begin the window, where it has one of the most common forms, and its length there.
    fn quick(window: &Window, negative: bool) -> Option<(Self, usize)>;

    /// The element that begins at `at`, and the offset behind it.
    fn any(text: &[u8], at: usize) -> Option<(Self, usize)>;

    /// Appends the element, little-endian.
    fn put(self, bytes: &mut Vec<u8>);
}

impl RowElement for bool {
    #[inline(always)]
    fn quick(_: &Window, _: bool) -> Option<(bool, usize)> {
        None
    }

    fn any(text: &[u8], at: usize) -> Option<(bool, usize)> {
        match text.get(at..)? {
            [b't', b'r', b'u', b'e', ..] => Some((true, at + 4)),
            [b'f', b'a', b'l', b's', b'e', ..] => Some((false, at + 5)),
            _ => None,
        }
    }

    fn put(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl RowElement for $type {
            #[inline(always)]
            fn quick(window: &Window, negative: bool) -> Option<($type, usize)> {
                let (value, length) = <i64 as Wide>::quick(window, negative)?;
                Some((value.try_into().ok()?, length))
            }

            fn any(text: &[u8], at: usize) -> Option<($type, usize)> {
                let (value, end) = <i64 as Wide>::any(text, at)?;
                Some((value.try_into().ok()?, end))
            }

            #[inline(always)]
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

integers!(u8, u16, u32, u64, i8, i16, i32, i64);

impl RowElement for f64 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(f64, usize)> {
        <f64 as Wide>::quick(window, negative)
    }

    fn any(text: &[u8], at: usize) -> Option<(f64, usize)> {
        let (number, end) = number::lex(text, at).ok()?;
        let value = match number {
            Number::Unsigned(value) => i64::try_from(value).ok()? as f64,
            Number::Negative(value) => value as f64,
            Number::Double(value) => value,
        };
        (value.abs() < LARGE).then_some((value, end))
    }

    #[inline(always)]
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}

impl RowElement for f32 {
    #[inline(always)]
    fn quick(window: &Window, negative: bool) -> Option<(f32, usize)> {
        <f32 as Wide>::quick(window, negative)
    }

    fn any(text: &[u8], at: usize) -> Option<(f32, usize)> {
        let (number, end) = number::lex(text, at).ok()?;
        let value = match number {
            Number::Unsigned(value) if value <= EXACT => value as f64,
            Number::Negative(value) if value.unsigned_abs() <= EXACT => value as f64,
            Number::Double(value) if value.abs() < LARGE => value,
            _ => return None,
        };
        Some((value as f32, end))
    }

    #[inline(always)]
    fn put(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }
}
