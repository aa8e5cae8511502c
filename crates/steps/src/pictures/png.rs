//! A PNG file without what no pixel depends on: profiles and texts, which are compressed, so that megabytes of them may
//! hold gigabytes.

use std::borrow::Cow;
use std::iter;

const SIGNATURE_BYTES: usize = 8;

/// Bytes of a chunk beside its data: a length, a name, and a check sum.
const HEAD_BYTES: usize = 8;
const SUM_BYTES: usize = 4;

/// The chunks that are read beside those that every reader has to know: transparent colours, and the orientation.
const READ: [&[u8; 4]; 2] = [b"tRNS", b"eXIf"];

/// The file with the chunks alone that are read; what is no chunk, or cut off, is left to the decoder.
pub fn pruned(file: &[u8]) -> Cow<'_, [u8]> {
    let Some((signature, mut rest)) = file.split_at_checked(SIGNATURE_BYTES) else { return Cow::Borrowed(file) };
    let mut found = signature.to_vec();
    let mut is_whole = true;
    for (name, _, chunk) in chunks(file) {
        if is_read(name) {
            found.extend_from_slice(chunk);
        } else {
            is_whole = false;
        }
        rest = &rest[chunk.len()..];
        if name == b"IEND" {
            break;
        }
    }
    if is_whole {
        return Cow::Borrowed(file);
    }
    found.extend_from_slice(rest);
    Cow::Owned(found)
}

/// The name, the data and all bytes of each chunk, up to where the file is cut off.
pub fn chunks(file: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8], &[u8])> {
    let mut rest = file.get(SIGNATURE_BYTES..).unwrap_or_default();
    iter::from_fn(move || {
        let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
        let (chunk, behind) = rest.split_at_checked(length.checked_add(HEAD_BYTES + SUM_BYTES)?)?;
        rest = behind;
        Some((chunk[4..].first_chunk()?, &chunk[HEAD_BYTES..HEAD_BYTES + length], chunk))
    })
}

/// Whether a chunk is read, by its name: a capital says that every reader has to know it.
fn is_read(name: &[u8; 4]) -> bool {
    name[0].is_ascii_uppercase() || READ.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes(), &name[..], data, b"sum!"].concat()
    }

    #[test]
    fn profiles_texts_and_animations_are_left_out() {
        let read = |name| chunk(name, b"read");
        let left_out = [b"iCCP", b"zTXt", b"iTXt", b"tEXt", b"acTL", b"fdAT", b"sPLT"].map(|name| chunk(name, b"no"));
        let (front, back) =
            ([b"\x89PNG\r\n\x1a\n".to_vec(), read(b"IHDR"), read(b"tRNS")], [read(b"IDAT"), read(b"IEND")]);
        let (front, back) = (front.concat(), [back.concat(), chunk(b"zTXt", b"behind the end")].concat());
        let wanted = [&front[..], &back].concat();
        assert_eq!(pruned(&[&front[..], &left_out.concat(), &back].concat())[..], wanted);
        assert!(matches!(pruned(&wanted), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_cut_off_is_left_to_the_decoder() {
        let file = [b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", b"1"), chunk(b"IDAT", b"22")].concat();
        for length in 0..file.len() {
            assert_eq!(pruned(&file[..length])[..], file[..length]);
        }
        let longer = [&file[..], &chunk(b"zTXt", b"3"), b"\xff\xff\xff\xffIDAT"].concat();
        assert_eq!(pruned(&longer)[..], [&file[..], b"\xff\xff\xff\xffIDAT"].concat());
    }
}
