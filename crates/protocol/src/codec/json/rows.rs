//! Rows: documents of calls whose arguments are numbers, texts and arrays of numbers, read straight into the columns of
//! a batch.
//!
//! The reader takes only what every reader of JSON takes, and takes the same for it. At anything else, be it wrong or
//! merely unusual, it gives up: whoever knows the function's annotations then finds the arguments or the error.

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn argument(name: &str, datatype: Datatype, shape: Option<&[i64]>) -> Argument {
        Argument { name: name.to_owned(), datatype, shape: shape.map(Shape::from_slice) }
    }

    fn read(datatype: Datatype, shape: Option<&[i64]>, text: &str) -> Option<(Vec<i64>, Vec<u8>)> {
        let reader = RowReader::new(vec![argument("x", datatype, shape)]).unwrap();
        let mut values = [Column { shape: Shape::from_slice(&[9]), bytes: vec![9] }];
        reader.read(format!("{{\"x\": {text}}}").as_bytes(), &mut values)?;
        let [Column { shape, bytes }] = values;
        Some((shape.to_vec(), bytes))
    }

    fn floats(text: &str) -> Option<(Vec<i64>, Vec<f32>)> {
        let (shape, bytes) = read(Datatype::Fp32, None, text)?;
        Some((shape, bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()))
    }

    #[test]
    fn lists_within_lists_have_their_shape() {
        assert_eq!(floats("1.5"), Some((vec![], vec![1.5])));
        assert_eq!(floats("[1, -2.5,3e1]"), Some((vec![3], vec![1.0, -2.5, 30.0])));
        assert_eq!(floats("[[1,2],[3,4], [5,6]]"), Some((vec![3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
        assert_eq!(floats("[ [ [ 1 ] ] , [[2 ]]\n]"), Some((vec![2, 1, 1], vec![1.0, 2.0])));
        let long: Vec<String> = (0..500).map(|value| format!("{value}.25")).collect();
        let (shape, values) = floats(&format!("[[{0}],[{0}]]", long.join(","))).unwrap();
        assert_eq!((shape, values[499], values[999]), (vec![2, 500], 499.25, 499.25));
    }

    #[test]
    fn nothing_irregular_is_read() {
        for text in [
            "[]",
            "[[]]",
            "[1,[2]]",
            "[[1],2]",
            "[[1,2],[3]]",
            "[[1],[2,3]]",
            "[1,]",
            "[1 2]",
            "[1",
            "[[1]",
            "[1]]",
            "[true]",
            "[null]",
            "[\"1\"]",
            "{}",
            "",
            "[01]",
            "[+1]",
            "[1.]",
            "[NaN]",
            "[Infinity]",
            "[1e400]",
            "[-]",
            "[[[1]],[2]]",
            "[9223372036854775808]",
            "[1e30]",
        ] {
            assert_eq!(floats(text), None, "{text}");
        }
        assert_eq!(floats(&format!("{}1{}", "[".repeat(17), "]".repeat(17))), None);
        assert!(floats(&format!("{}1{}", "[".repeat(16), "]".repeat(16))).is_some());
    }

    #[test]
    fn a_declared_shape_has_to_fit() {
        let fits = |shape: &[i64], text: &str| read(Datatype::Int64, Some(shape), text).is_some();
        assert!(fits(&[2], "[1,2]") && fits(&[-1], "[1,2]") && fits(&[-1, 1], "[[1],[2]]") && fits(&[], "7"));
        assert!(!fits(&[3], "[1,2]") && !fits(&[], "[7]") && !fits(&[2], "[[1,2]]") && !fits(&[-1, 2], "[[1],[2]]"));
    }

    #[test]
    fn integers_are_whole_and_in_range() {
        let reads = |datatype, text: &str| read(datatype, None, text).is_some();
        for (datatype, least, most) in [
            (Datatype::Int8, i64::from(i8::MIN), i64::from(i8::MAX)),
            (Datatype::Uint8, 0, i64::from(u8::MAX)),
            (Datatype::Int16, i64::from(i16::MIN), i64::from(i16::MAX)),
            (Datatype::Uint32, 0, i64::from(u32::MAX)),
        ] {
            assert!(reads(datatype, &format!("[{least},{most},{most}]")), "{datatype}");
            assert!(!reads(datatype, &format!("[1,{},1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", most + 1)), "{datatype}");
            assert!(!reads(datatype, &format!("[{}]", least - 1)), "{datatype}");
        }
        for text in ["[1.0]", "[1e2]", "[true]", "1.5", "[9223372036854775808]"] {
            assert!(!reads(Datatype::Int64, text), "{text}");
        }
        assert!(reads(Datatype::Int64, "[9223372036854775807,-9223372036854775808]"));
        assert_eq!(read(Datatype::Bool, None, "[true,false]"), Some((vec![2], vec![1, 0])));
        assert!(!reads(Datatype::Bool, "[1]") && !reads(Datatype::Bool, "[true,0]"));
    }

    #[test]
    fn texts_stand_as_they_are() {
        let text = |text: &str| read(Datatype::Bytes, Some(&[]), text).map(|(_, bytes)| bytes[4..].to_vec());
        assert_eq!(text("\"caf\u{e9}\""), Some("caf\u{e9}".as_bytes().to_vec()));
        for unusual in ["\"a\\n\"", "\"a\nb\"", "\"a", "1", "null", "[\"a\"]"] {
            assert_eq!(text(unusual), None, "{unusual}");
        }
        let reader = RowReader::new(vec![argument("x", Datatype::Bytes, Some(&[]))]).unwrap();
        assert_eq!(reader.read(b"{\"x\":\"\xff\"}", &mut [Column::default()]), None);
    }

    #[test]
    fn a_document_has_each_argument_once_and_no_other() {
        let arguments = vec![argument("a", Datatype::Fp64, None), argument("b", Datatype::Int64, None)];
        let reader = RowReader::new(arguments).unwrap();
        let reads = |text: &str| reader.read(text.as_bytes(), &mut [Column::default(), Column::default()]).is_some();
        assert!(reads(r#"{"a":1,"b":2}"#) && reads(" {\n\"b\" : [2] ,\t\"a\":1.5 } "));
        for text in [
            r#"{"a":1}"#,
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"a":1,"b":2,"a":1}"#,
            r#"{"a":1,"b":2}x"#,
            r#"{"a":1,"b":2,}"#,
            r#"{"\u0061":1,"b":2}"#,
            "{}",
            "",
            "[1,2]",
            r#"{"a":1 "b":2}"#,
            "\u{feff}{\"a\":1,\"b\":2}",
        ] {
            assert!(!reads(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_what_is_read_has_the_size_of_its_shape(
            text in "(\\{ ?\"x\": ?)?[\\[\\]{},:\"0-9eE+. tfrusalén\\\\-]{0,40}(\\])?(\\})?",
            datatype in prop::sample::select(vec![Datatype::Fp32, Datatype::Fp64, Datatype::Int16, Datatype::Bool]),
        ) {
            let reader = RowReader::new(vec![argument("x", datatype, None)]).unwrap();
            let mut values = [Column::default()];
            if reader.read(text.as_bytes(), &mut values).is_some() {
                let [Column { shape, bytes }] = values;
                let count = crate::shape::element_count(&shape).unwrap();
                prop_assert!(count > 0 && bytes.len() == count * datatype.size().unwrap());
            }
        }
    }

    #[test]
    fn what_cannot_be_read_gets_no_reader() {
        for arguments in [
            vec![],
            vec![argument("x", Datatype::Fp16, None)],
            vec![argument("x", Datatype::Bytes, None)],
            vec![argument("x", Datatype::Fp32, None); MAX_ARGUMENTS + 1],
        ] {
            assert!(RowReader::new(arguments).is_none());
        }
    }
}
