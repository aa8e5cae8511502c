//! The sizes of frames in a WebP file. Its head tells the size of the canvas, which its frames need not keep to.

use std::iter;

/// Bytes in front of the chunks: `RIFF`, a length, `WEBP`.
const HEAD_BYTES: usize = 12;

/// Bytes in front of a frame's chunks in an animation.
const FRAME_BYTES: usize = 16;

/// Width and height of each frame that a decoder may meet, up to where the file is cut off.
pub fn frames(file: &[u8]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    collect(file.get(HEAD_BYTES..).unwrap_or_default(), &mut found);
    found
}

/// What the first chunk of a name holds; none where there is none.
pub fn chunk<'a>(file: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    let mut chunks = chunks(file.get(HEAD_BYTES..).unwrap_or_default());
    chunks.find_map(|(name, body)| (name == *wanted).then_some(body))
}

/// The name and the body of each chunk; of one that is cut off what there is, for a decoder may read that, too.
fn chunks(mut bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let [a, b, c, d, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        // Chunks of odd lengths are followed by a byte.
        bytes = rest.get(length.saturating_add(length % 2)..).unwrap_or_default();
        Some(([a, b, c, d], &rest[..length.min(rest.len())]))
    })
}

fn collect(bytes: &[u8], found: &mut Vec<(u32, u32)>) {
    for (name, body) in chunks(bytes) {
        match &name {
            b"VP8 " => found.extend(lossy(body)),
            b"VP8L" => found.extend(lossless(body)),
            b"ANMF" => collect(body.get(FRAME_BYTES..).unwrap_or_default(), found),
            _ => {}
        }
    }
}

/// Source: RFC 6386, section 9.1: three bytes, a start code, and two sizes of 14 bits.
fn lossy(body: &[u8]) -> Option<(u32, u32)> {
    let [_, _, _, 0x9D, 0x01, 0x2A, wide, wider, high, higher, ..] = *body else { return None };
    let size = |low, upper| u32::from(u16::from_le_bytes([low, upper]) & 0x3FFF);
    Some((size(wide, wider), size(high, higher)))
}

/// Source: the specification of WebP's lossless bitstream: a signature, and two sizes of 14 bits, less one.
fn lossless(body: &[u8]) -> Option<(u32, u32)> {
    let [0x2F, a, b, c, d, ..] = *body else { return None };
    let bits = u32::from_le_bytes([a, b, c, d]);
    Some(((bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_wherever_they_lie() {
        assert_eq!(frames(include_bytes!("fixtures/alpha.webp")), [(16, 8)]);
        let lossy = b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x90\x01\x20\x00";
        let frame = [b"ANMF\x22\0\0\0".as_slice(), &[0; FRAME_BYTES], lossy].concat();
        let lossless = b"VP8L\x05\0\0\0\x2f\x01\x80\0\0\0";
        let file =
            [b"RIFF\0\0\0\0WEBPJUNK\x01\0\0\0xx".as_slice(), &frame, lossless, b"VP8L\xff\xff\xff\xff\x2f"].concat();
        assert_eq!(frames(&file), [(400, 32), (2, 3)]);
        assert_eq!(frames(b"RIFF"), []);
    }
}
