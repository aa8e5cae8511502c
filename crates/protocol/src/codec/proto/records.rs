//! The fields of a serialized message, without parsing it: what a parser will find, no more and no less.

use prost::encoding::decode_varint;

/// Groups within groups that are looked into: parsers refuse deeper ones.
const MAX_GROUP_DEPTH: usize = 100;

/// Kinds of fields on the wire.
const VARINT: u64 = 0;
const EIGHT_BYTES: u64 = 1;
const COUNTED: u64 = 2;
const GROUP: u64 = 3;
const END_OF_GROUP: u64 = 4;
const FOUR_BYTES: u64 = 5;

/// The number of a field, and its content where that has a length.
pub(super) type Record<'a> = (u64, &'a [u8]);

/// The fields of a message; `None`, and nothing behind it, where the message cannot be read.
///
/// `map` is the number of the message's map, if it has one. Prost reads an entry of a map whatever kind of field it is
/// said to be, and so would find other fields behind it than this does: of another kind than it should be, it cannot be
/// read.
pub(super) fn records(mut rest: &[u8], map: Option<u64>) -> impl Iterator<Item = Option<Record<'_>>> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let record = record(&mut rest, map);
        if record.is_none() {
            rest = &[];
        }
        Some(record)
    })
}

fn record<'a>(rest: &mut &'a [u8], map: Option<u64>) -> Option<Record<'a>> {
    let key = decode_varint(rest).ok()?;
    let (field, kind) = (key >> 3, key & 7);
    if is_misread(field, kind, map) {
        return None;
    }
    Some((field, content(key, rest, MAX_GROUP_DEPTH)?))
}

/// Whether parsers read a field as something else than its kind says.
pub(super) fn is_misread(field: u64, kind: u64, map: Option<u64>) -> bool {
    map == Some(field) && kind != COUNTED
}

/// Takes what stands behind a key off the message.
fn content<'a>(key: u64, rest: &mut &'a [u8], depth: usize) -> Option<&'a [u8]> {
    let length = match key & 7 {
        VARINT => {
            decode_varint(rest).ok()?;
            0
        }
        EIGHT_BYTES => 8,
        COUNTED => usize::try_from(decode_varint(rest).ok()?).ok()?,
        // No message here has a group, and parsers pass over those of unknown fields.
        GROUP => {
            skip_group(key >> 3, rest, depth.checked_sub(1)?)?;
            0
        }
        FOUR_BYTES => 4,
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(content)
}

fn skip_group(field: u64, rest: &mut &[u8], depth: usize) -> Option<()> {
    loop {
        let key = decode_varint(rest).ok()?;
        if key & 7 == END_OF_GROUP {
            return (key >> 3 == field).then_some(());
        }
        content(key, rest, depth)?;
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::codec::proto::inference::ModelInferRequest;

    fn fields(message: &[u8]) -> Option<Vec<u64>> {
        records(message, Some(4)).map(|record| Some(record?.0)).collect()
    }

    #[test]
    fn fields_of_every_kind_are_found() {
        let message =
            [0x08, 0x96, 1, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1a, 2, 8, 9, 0x7b, 0x08, 1, 0x7c, 0x2d, 1, 2, 3, 4];
        assert_eq!(fields(&message), Some(vec![1, 2, 3, 15, 5]));
        assert_eq!(fields(&[0x22, 0]), Some(vec![4]));
    }

    #[test]
    fn groups_are_passed_over_unless_parsers_refuse_them() {
        let deep = |depth: usize| [[0x7b].repeat(depth), [0x7c].repeat(depth)].concat();
        assert_eq!(fields(&deep(MAX_GROUP_DEPTH)), Some(vec![15]));
        for refused in [&[0x7b, 0x0c][..], &[0x7b], &[0x7c], &[0x7b, 0x0b, 0x7c], &deep(MAX_GROUP_DEPTH + 1)] {
            assert_eq!(fields(refused), None, "{refused:?}");
            assert!(ModelInferRequest::decode(refused).is_err());
        }
    }

    #[test]
    fn an_entry_of_a_map_is_read_by_parsers_whatever_kind_it_names() {
        for kind in [VARINT, EIGHT_BYTES, COUNTED, GROUP, FOUR_BYTES] {
            let message = [4 << 3 | kind as u8, 3, 0x0a, 1, b'k', 0x0a, 1, b'm'];
            let parsed = ModelInferRequest::decode(&message[..]).expect("a map and a name");
            assert_eq!((parsed.model_name.as_str(), parsed.parameters.len()), ("m", 1));
            assert_eq!(fields(&message), (kind == COUNTED).then(|| vec![4, 1]));
        }
    }

    #[test]
    fn nothing_is_found_behind_what_cannot_be_read() {
        for broken in [&[0x08][..], &[0x1a, 3, 1, 2], &[0x0f], &[0xff; 12], &[0x23, 0], &[0x20, 0], &[0x25, 0]] {
            let found: Vec<_> =
                records(&[broken, &[0x08, 1]].concat(), Some(4)).map(|record| record.is_some()).collect();
            assert_eq!(found.last(), Some(&false), "{broken:?}");
        }
    }
}
