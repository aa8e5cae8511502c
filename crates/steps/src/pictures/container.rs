//! Which format bytes are in.

use std::borrow::Cow;

use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, Engine};

/// A format of pictures that is decoded here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JPEG, baseline or progressive.
    Jpeg,
    /// PNG; of an animated one the still picture.
    Png,
    /// WebP; of an animated one the first frame.
    Webp,
}

/// A file, and the format that it begins like.
pub struct File<'a> {
    /// How it is read.
    pub format: Format,
    /// Its bytes.
    pub bytes: Cow<'a, [u8]>,
}

/// Standard base64, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes that an error shows.
const SHOWN_BYTES: usize = 8;

/// The file that a tensor's element holds: as it is, as base64, or as base64 in a data URL. No format begins like
/// base64 of another, so that nobody has to say which it is.
///
/// # Errors
///
/// It is none of them; the text says what it begins with.
pub fn open(element: &[u8]) -> Result<File<'_>, String> {
    if let Some(format) = format_of(element) {
        return Ok(File { format, bytes: Cow::Borrowed(element) });
    }
    let decoded = decode_base64(element);
    match decoded.as_deref().and_then(format_of) {
        Some(format) => Ok(File { format, bytes: Cow::Owned(decoded.unwrap_or_default()) }),
        None => Err(unknown(decoded.as_deref().unwrap_or(element), decoded.is_some())),
    }
}

fn format_of(bytes: &[u8]) -> Option<Format> {
    match bytes {
        [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Format::Png),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::Webp),
        _ => None,
    }
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = match text.strip_prefix(b"data:") {
        Some(url) => &url[url.iter().position(|&byte| byte == b',')? + 1..],
        None => text,
    };
    if text.is_empty() {
        return None;
    }
    if text.iter().any(u8::is_ascii_whitespace) {
        let joined: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        return BASE64.decode(joined).ok();
    }
    BASE64.decode(text).ok()
}

fn unknown(bytes: &[u8], was_base64: bool) -> String {
    let behind = if was_base64 { " behind base64" } else { "" };
    if bytes.is_empty() {
        return format!("it has no bytes{behind}; expected a JPEG, PNG or WebP file, or base64 of one");
    }
    let shown = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii();
    let length = bytes.len();
    format!("{length} bytes{behind} that begin with \"{shown}\"; expected a JPEG, PNG or WebP file, or base64 of one")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    fn opened(element: &[u8]) -> (Format, Vec<u8>) {
        let file = open(element).unwrap_or_else(|error| panic!("{error}"));
        (file.format, file.bytes.into_owned())
    }

    #[test]
    fn files_are_recognised_as_they_are_and_behind_base64() {
        let text = BASE64.encode(PNG);
        for element in [
            PNG.to_vec(),
            text.clone().into_bytes(),
            text.trim_end_matches('=').into(),
            format!("data:image/png;base64,{text}").into(),
            format!("{}\r\n{}\n", &text[..4], &text[4..]).into(),
        ] {
            assert_eq!(opened(&element), (Format::Png, PNG.to_vec()));
        }
        assert_eq!(opened(b"RIFF\0\0\0\0WEBPVP8 ").0, Format::Webp);
        assert_eq!(opened(b"\xff\xd8\xff\xe0").0, Format::Jpeg);
    }

    #[test]
    fn what_is_no_picture_is_named_by_what_it_begins_with() {
        let reason = |element: &[u8]| open(element).err().expect("no picture");
        assert!(reason(b"").starts_with("it has no bytes;"));
        assert!(reason(b"GIF89a....").starts_with("10 bytes that begin with \"GIF89a..\"; expected a JPEG"));
        assert!(reason(b"R0lGODlh").starts_with("6 bytes behind base64 that begin with \"GIF89a\""));
        assert!(reason(b"data:no comma").starts_with("13 bytes that begin with"));
    }
}
