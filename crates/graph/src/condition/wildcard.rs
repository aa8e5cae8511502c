//! Names with `*` and `?`.

/// Most attempts at a pattern. Source: gjson.
const MAX_STEPS: usize = 10_000;

/// Whether a text is what a pattern says: `*` any characters, `?` any one, `\` in front of one that stands for itself.
pub fn matches(text: &[u8], pattern: &[u8]) -> bool {
    if pattern == b"*" {
        return true;
    }
    let (mut at, mut part) = (0, 0);
    // Where the last star stands, and how much of the text it stands for.
    let mut star: Option<(usize, usize)> = None;
    for _ in 0..MAX_STEPS {
        match pattern.get(part) {
            Some(b'*') => {
                star = Some((part, at));
                part += 1;
                continue;
            }
            Some(b'?') if at < text.len() => {
                at += character(&text[at..]);
                part += 1;
                continue;
            }
            Some(b'\\') if pattern.get(part + 1).is_some_and(|wanted| text.get(at) == Some(wanted)) => {
                at += 1;
                part += 2;
                continue;
            }
            Some(wanted) if *wanted != b'?' && *wanted != b'\\' && text.get(at) == Some(wanted) => {
                at += 1;
                part += 1;
                continue;
            }
            None if at == text.len() => return true,
            _ => {}
        }
        match star {
            Some((place, end)) if end < text.len() => {
                let end = end + character(&text[end..]);
                star = Some((place, end));
                (at, part) = (end, place + 1);
            }
            _ => return false,
        }
    }
    false
}

/// The length of the first character.
fn character(text: &[u8]) -> usize {
    let length = match text.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    length.min(text.len())
}
