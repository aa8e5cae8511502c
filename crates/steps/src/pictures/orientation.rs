//! How a file says that its picture is to be turned: in EXIF, or else in XMP, wherever its format has them.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::ZlibDecoder;
use image::metadata::Orientation;

use super::container::{File, Format};
use super::segments::segments;
use super::{png, webp};

/// Most bytes of a text of a PNG file that are looked at, as they are once they are expanded. EXIF in a JPEG file has
/// 64 KiB at most, and twice as many digits.
const MAX_TEXT_BYTES: u64 = 256 << 10;

/// What stands in front of XMP in a JPEG file.
const XMP_NAME: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// How a picture is to be turned. Source: `ImageOps.exif_transpose` of Pillow, which looks in the same places.
pub fn of(file: &File<'_>) -> Orientation {
    let (exif, xmp) = match file.format {
        Format::Jpeg => in_jpeg(&file.bytes),
        Format::Png => in_png(&file.bytes),
        Format::Webp => in_webp(&file.bytes),
    };
    let exif = exif.as_deref().map(|exif| exif.strip_prefix(b"Exif\0\0").unwrap_or(exif));
    exif.and_then(Orientation::from_exif_chunk)
        .or_else(|| xmp.as_deref().and_then(in_xmp))
        .unwrap_or(Orientation::NoTransforms)
}

/// A block of EXIF and one of XMP, as far as a file has them.
type Blocks<'a> = (Option<Cow<'a, [u8]>>, Option<Cow<'a, [u8]>>);

fn in_jpeg(file: &[u8]) -> Blocks<'_> {
    let (segments, _) = segments(file);
    let named = |name: &[u8]| {
        let mut bodies = segments.iter().filter(|segment| segment.marker == 0xE1).map(|segment| segment.body);
        bodies.find_map(|body| body.strip_prefix(name)).map(Cow::Borrowed)
    };
    (named(b"Exif\0\0"), named(XMP_NAME))
}

fn in_webp(file: &[u8]) -> Blocks<'_> {
    (webp::chunk(file, b"EXIF").map(Cow::Borrowed), webp::chunk(file, b"XMP ").map(Cow::Borrowed))
}

fn in_png(file: &[u8]) -> Blocks<'_> {
    let (mut exif, mut profile, mut xmp) = (None, None, None);
    for (name, body, _) in png::chunks(file) {
        match name {
            b"eXIf" => exif = exif.or(Some(Cow::Borrowed(body))),
            // Of each kind the first alone is looked at, and expanded: a file may have thousands.
            b"tEXt" | b"zTXt" | b"iTXt" => match text(name, body) {
                Some((b"Raw profile type exif", text)) if profile.is_none() => profile = Some(text.read()),
                Some((b"XML:com.adobe.xmp", text)) if xmp.is_none() => xmp = Some(text.read()),
                _ => {}
            },
            _ => {}
        }
    }
    (exif.or_else(|| profile.and_then(|text| from_digits(&text)).map(Cow::Owned)), xmp)
}

/// A text as it stands in a chunk.
struct Text<'a> {
    is_compressed: bool,
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    fn read(&self) -> Cow<'a, [u8]> {
        if self.is_compressed { Cow::Owned(expanded(self.bytes)) } else { Cow::Borrowed(self.bytes) }
    }
}

/// Keyword and text of a chunk. Source: the specification of PNG, section 11.3.3.
fn text<'a>(kind: &[u8; 4], body: &'a [u8]) -> Option<(&'a [u8], Text<'a>)> {
    let (keyword, rest) = split(body)?;
    let (is_compressed, bytes) = match kind {
        b"tEXt" => (false, rest),
        b"zTXt" => (true, rest.get(1..)?),
        _ => {
            let (_language, behind) = split(rest.get(2..)?)?;
            (*rest.first()? == 1, split(behind)?.1)
        }
    };
    Some((keyword, Text { is_compressed, bytes }))
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// As much of a compressed text as is looked at; what is damaged ends it.
fn expanded(compressed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let _damaged = ZlibDecoder::new(compressed).take(MAX_TEXT_BYTES).read_to_end(&mut text);
    text
}

/// The bytes of a raw profile, which a text has in hexadecimal digits behind its name and its length. Source: Pillow.
fn from_digits(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.splitn(4, |&byte| byte == b'\n').nth(3)?;
    let digits: Vec<u8> = digits.iter().filter(|byte| !byte.is_ascii_whitespace()).copied().collect();
    let value = |digit: u8| char::from(digit).to_digit(16);
    digits.as_chunks::<2>().0.iter().map(|&[high, low]| Some((value(high)? << 4 | value(low)?) as u8)).collect()
}

/// The number behind `tiff:Orientation`, as an attribute or as an element.
fn in_xmp(xmp: &[u8]) -> Option<Orientation> {
    const NAME: &[u8] = b"tiff:Orientation";
    let mut rest = xmp;
    while let Some(at) = rest.windows(NAME.len()).position(|bytes| bytes == NAME) {
        rest = &rest[at + NAME.len()..];
        let number = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">")).and_then(<[u8]>::first);
        if let Some(digit) = number.filter(|digit| digit.is_ascii_digit()) {
            return Orientation::from_exif(digit - b'0');
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::super::container::open;
    use super::*;

    /// EXIF that says nothing but an orientation of 6.
    const EXIF: &[u8] = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    const XMP: &[u8] = b"<x:xmpmeta><rdf:Description tiff:Orientation=\"8\"/></x:xmpmeta>";

    fn found(file: &[u8]) -> Orientation {
        of(&open(file).unwrap_or_else(|error| panic!("{error}")))
    }

    fn png(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, body) in chunks {
            let length = u32::try_from(body.len()).unwrap().to_be_bytes();
            file.extend([&length, &name[..], body, &[0; 4]].concat());
        }
        file
    }

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn profile() -> Vec<u8> {
        let digits: String = [b"Exif\0\0", EXIF].concat().iter().map(|byte| format!("{byte:02x}")).collect();
        let (one, other) = digits.split_at(20);
        format!("\nexif\n      32\n{one}\n{other}\n").into_bytes()
    }

    #[test]
    fn png_files_say_it_in_three_places() {
        let named = |name: &[u8], text: &[u8]| [name, b"\0", text].concat();
        let zipped = compressed(&profile());
        let international = named(b"XML:com.adobe.xmp", &[b"\0\0\0\0", XMP].concat());
        for (chunk, expected) in [
            ((b"eXIf", EXIF.to_vec()), Orientation::Rotate90),
            ((b"zTXt", named(b"Raw profile type exif", &[b"\0", &zipped[..]].concat())), Orientation::Rotate90),
            ((b"tEXt", named(b"Raw profile type exif", &profile())), Orientation::Rotate90),
            ((b"iTXt", international.clone()), Orientation::Rotate270),
            ((b"tEXt", named(b"Comment", XMP)), Orientation::NoTransforms),
            ((b"zTXt", named(b"Raw profile type exif", b"\0damaged")), Orientation::NoTransforms),
        ] {
            assert_eq!(found(&png(&[chunk])), expected);
        }
        // EXIF is asked first, as Pillow asks.
        assert_eq!(found(&png(&[(b"iTXt", international), (b"eXIf", EXIF.to_vec())])), Orientation::Rotate90);
    }

    #[test]
    fn no_text_is_expanded_beyond_what_is_looked_at() {
        let bomb = compressed(&vec![b'0'; 64 << 20]);
        assert_eq!(expanded(&bomb).len() as u64, MAX_TEXT_BYTES);
    }

    #[test]
    fn jpeg_and_webp_files_say_it_in_exif_or_xmp() {
        let segment = |name: &[u8], body: &[u8]| {
            let length = u16::try_from(2 + name.len() + body.len()).unwrap().to_be_bytes();
            [b"\xff\xd8\xff\xe1", &length[..], name, body, b"\xff\xda"].concat()
        };
        assert_eq!(found(&segment(b"Exif\0\0", EXIF)), Orientation::Rotate90);
        assert_eq!(found(&segment(XMP_NAME, XMP)), Orientation::Rotate270);
        let webp = |name: &[u8], body: &[u8]| {
            let length = u32::try_from(body.len()).unwrap().to_le_bytes();
            [b"RIFF\0\0\0\0WEBP", name, &length, body].concat()
        };
        assert_eq!(found(&webp(b"EXIF", EXIF)), Orientation::Rotate90);
        assert_eq!(found(&webp(b"XMP ", XMP)), Orientation::Rotate270);
    }

    #[test]
    fn xmp_says_it_as_an_attribute_or_an_element() {
        assert_eq!(in_xmp(b"<tiff:Orientation>3</tiff:Orientation>"), Some(Orientation::Rotate180));
        assert_eq!(in_xmp(b"tiff:Orientation tiff:Orientation=\"6\""), Some(Orientation::Rotate90));
        for text in [&b"tiff:Orientation=\"9\""[..], b"tiff:Orientation=\"x\"", b"tiff:Orientation", b""] {
            assert_eq!(in_xmp(text), None);
        }
    }
}
