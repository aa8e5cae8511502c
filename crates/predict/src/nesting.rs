//! The shape of lists within lists.

use std::fmt::{Display, Write};

use alipes_protocol::codec::json::reading::{peek, skip_space, skip_value};
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::limits::MAX_DIMENSIONS;
use alipes_protocol::{InferError, Shape};
use smallvec::SmallVec;

/// The sizes of a value: of lists whose items have equal sizes, and of nothing else. An object is one item, as a number
/// is.
///
/// # Errors
///
/// `InvalidArgument` where the lists are ragged, and beyond as many dimensions as a tensor has; `name` is the value's
/// in the text.
pub fn shape_of(value: Value<'_>, name: &dyn Display) -> Result<Shape, InferError> {
    let text = value.as_it_stands();
    let mut shape = Shape::new();
    // How many items each open list has so far.
    let mut counts: SmallVec<[i64; 6]> = SmallVec::new();
    // The depth at which values lie, or an empty list closes.
    let mut depth_of_values = None;
    let mut at = 0;
    loop {
        if peek(text, at) == b'[' {
            if depth_of_values.is_some_and(|depth| counts.len() >= depth) {
                return Err(ragged(name, &counts, "is a list where others are values"));
            }
            if counts.len() == MAX_DIMENSIONS {
                return Err(InferError::invalid(format!("'{name}' has more than {MAX_DIMENSIONS} dimensions")));
            }
            counts.push(0);
            if shape.len() < counts.len() {
                shape.push(-1);
            }
            at = skip_space(text, at + 1);
            if peek(text, at) != b']' {
                continue;
            }
            if *depth_of_values.get_or_insert(counts.len()) != counts.len() {
                return Err(ragged(name, &counts[..counts.len() - 1], "is an empty list where others are not"));
            }
        } else {
            let depth = counts.len();
            if *depth_of_values.get_or_insert(depth) != depth {
                return Err(ragged(name, &counts, "is a value where others are lists"));
            }
            at = skip_value(text, at, 0)?;
            match counts.last_mut() {
                Some(count) => *count += 1,
                None => return Ok(shape),
            }
        }
        loop {
            at = skip_space(text, at);
            if peek(text, at) == b',' {
                at = skip_space(text, at + 1);
                break;
            }
            at += 1;
            let count = counts.pop().unwrap_or_default();
            let size = &mut shape[counts.len()];
            if *size == -1 {
                *size = count;
            }
            if *size != count {
                let size = *size;
                return Err(ragged(name, &counts, &format!("has {count} items where others have {size}")));
            }
            match counts.last_mut() {
                Some(outer) => *outer += 1,
                None => return Ok(shape),
            }
        }
    }
}

/// The refusal of lists that are no tensor; `counts` are the items in front of the one that differs.
fn ragged(name: &dyn Display, counts: &[i64], what: &str) -> InferError {
    let mut place = name.to_string();
    counts.iter().for_each(|count| {
        let _ = write!(place, "[{count}]");
    });
    InferError::invalid(format!("'{place}' {what}: all of them must have one shape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Vec<i64>, String> {
        let value = Value::parse(text.as_bytes()).unwrap();
        shape_of(value, &"x").map(|shape| shape.to_vec()).map_err(|error| error.message)
    }

    #[test]
    fn lists_within_lists_have_sizes() {
        assert_eq!(shape("1.5"), Ok(vec![]));
        assert_eq!(shape(r#" {"b64": "[]"} "#), Ok(vec![]));
        assert_eq!(shape("[ ]"), Ok(vec![0]));
        assert_eq!(shape("[ [1 , 2], [3,4] ,[5,6]]"), Ok(vec![3, 2]));
        assert_eq!(shape("[[[\"a,]\"]], [[{\"b64\": \"x\"}]]]"), Ok(vec![2, 1, 1]));
        assert_eq!(shape("[[], []]"), Ok(vec![2, 0]));
    }

    #[test]
    fn ragged_lists_are_refused_with_their_place() {
        for (text, place) in [
            ("[[1,2],[3]]", "'x[1]' has 1 items where others have 2"),
            ("[1,[2]]", "'x[1]' is a list where others are values"),
            ("[[1],2]", "'x[1]' is a value where others are lists"),
            ("[[[1],[2]],[[3],[4,5]]]", "'x[1][1]' has 2 items where others have 1"),
            ("[[1],[]]", "'x[1]' has 0 items where others have 1"),
            ("[[],[1]]", "'x[1]' has 1 items where others have 0"),
            ("[[],[[]]]", "'x[1][0]' is a list where others are values"),
            ("[[[]],[]]", "'x[1]' is an empty list where others are not"),
        ] {
            let error = shape(text).unwrap_err();
            assert!(error.starts_with(place), "{text}: {error}");
        }
        assert!(shape(&("[".repeat(65) + &"]".repeat(65))).unwrap_err().contains("more than 64 dimensions"));
    }
}
