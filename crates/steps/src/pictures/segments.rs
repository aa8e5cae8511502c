//! The segments in front of a JPEG file's first scan, read as leniently as libjpeg reads them.

/// A segment: its marker, what it holds, and all of its bytes.
pub struct Segment<'a> {
    /// The byte behind `0xFF`.
    pub marker: u8,
    /// What follows its length.
    pub body: &'a [u8],
    whole: &'a [u8],
}

/// Start of the first scan: what follows is no segment.
const SCAN: u8 = 0xDA;

/// Bytes of Adobe's segment that say how colours are stored. A shorter one is nobody's.
const ADOBE_BYTES: usize = 12;

/// The segments up to the first scan, and the file from there on, its marker included.
///
/// Bytes between two segments are passed over, and a text may have a length that does not count itself. Both are
/// damage by the standard, and both are in files that cameras and programs write.
pub fn segments(file: &[u8]) -> (Vec<Segment<'_>>, &[u8]) {
    let (mut found, mut rest) = (Vec::new(), file.get(2..).unwrap_or_default());
    while let Some(at) = marker_at(rest) {
        rest = &rest[at..];
        if rest[1] == SCAN {
            return (found, rest);
        }
        let Some(segment) = segment(rest) else { break };
        rest = &rest[segment.whole.len()..];
        found.push(segment);
    }
    (found, &[])
}

/// Where the next marker begins: `0xFF` and what is neither that nor 0.
fn marker_at(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF))
}

fn segment(bytes: &[u8]) -> Option<Segment<'_>> {
    let [_, marker, high, low, ..] = *bytes else { return None };
    let length = usize::from(u16::from_be_bytes([high, low])).max(2);
    let whole = bytes.get(..2 + length)?;
    Some(Segment { marker, body: &whole[4..], whole })
}

/// A file with the pixels of this one, and without what only some readers pass over: bytes between segments, texts,
/// and what programs have to say. None where that changes nothing, or where there is no scan.
pub fn plain(file: &[u8]) -> Option<Vec<u8>> {
    let (segments, scans) = segments(file);
    if scans.is_empty() {
        return None;
    }
    let needed = segments.iter().filter(|segment| is_needed(segment)).flat_map(|segment| segment.whole);
    let plain: Vec<u8> = file[..2].iter().chain(needed).chain(scans).copied().collect();
    (plain != file).then_some(plain)
}

/// Whether pixels depend on a segment: frames, codes and factors, restarts, and how colours are stored.
fn is_needed(segment: &Segment<'_>) -> bool {
    match segment.marker {
        0xC0..=0xCF | 0xDB | 0xDD => true,
        0xE0 => segment.body.starts_with(b"JFIF\0"),
        0xEE => segment.body.starts_with(b"Adobe") && segment.body.len() >= ADOBE_BYTES,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"\xff\xd8\xff\xe1\0\x06Exif\xff\xdb\0\x03a\xff\xda\0\x02data\xff\xd9";

    fn changed(at: usize, what: &[u8]) -> Vec<u8> {
        [&FILE[..at], what, &FILE[at..]].concat()
    }

    #[test]
    fn segments_end_at_the_first_scan() {
        let (found, scans) = segments(FILE);
        let found: Vec<_> = found.iter().map(|segment| (segment.marker, segment.body)).collect();
        assert_eq!(found, [(0xE1, &b"Exif"[..]), (0xDB, &b"a"[..])]);
        assert_eq!(scans, b"\xff\xda\0\x02data\xff\xd9");
        assert_eq!(segments(&FILE[..12]).0.len(), 1);
        assert_eq!(segments(b"\xff").0.len(), 0);
    }

    #[test]
    fn a_plain_file_has_what_pixels_depend_on() {
        let expected = b"\xff\xd8\xff\xdb\0\x03a\xff\xda\0\x02data\xff\xd9";
        // Fill bytes, other bytes, a text of length 0, Adobe's segment cut short.
        for what in [&b""[..], b"\xff\xff", b"noise\0", b"\xff\xfe\0\0", b"\xff\xee\0\x07Adobe"] {
            assert_eq!(plain(&changed(10, what)).as_deref(), Some(&expected[..]), "{}", what.escape_ascii());
        }
        assert_eq!(plain(expected), None);
        assert_eq!(plain(&FILE[..14]), None);
        let adobe = b"\xff\xee\0\x0eAdobe1234567";
        assert!(plain(&changed(10, adobe)).is_some_and(|plain| plain.windows(16).any(|bytes| bytes == adobe)));
    }
}
