//! Strings in the code that HTTP/2 shortens headers with. Only what servers send is read; what is sent is written
//! plainly.

/// Bits of each byte's code. Source: RFC 7541, appendix B; codes of one length follow each other in the order of the
/// bytes, which is all that has to be known to tell them.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LONGEST: usize = 30;

/// The bytes in the order of their codes, and for each length its first code, where its bytes begin, and how many there
/// are.
struct Codes {
    bytes: [u8; 256],
    first: [u32; LONGEST + 1],
    start: [u32; LONGEST + 1],
    count: [u32; LONGEST + 1],
}

const fn codes() -> Codes {
    let mut codes =
        Codes { bytes: [0; 256], first: [0; LONGEST + 1], start: [0; LONGEST + 1], count: [0; LONGEST + 1] };
    let (mut length, mut code, mut placed) = (1, 0, 0);
    while length <= LONGEST {
        code <<= 1;
        codes.first[length] = code;
        codes.start[length] = placed as u32;
        let mut byte = 0;
        while byte < LENGTHS.len() {
            if LENGTHS[byte] as usize == length {
                codes.bytes[placed] = byte as u8;
                placed += 1;
                code += 1;
            }
            byte += 1;
        }
        codes.count[length] = placed as u32 - codes.start[length];
        length += 1;
    }
    codes
}

static CODES: Codes = codes();

/// The string behind `coded`; `None` where it is none.
pub fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(coded.len() * 2);
    let (mut code, mut length) = (0_u32, 0);
    for byte in coded {
        for bit in (0..8).rev() {
            code = (code << 1) | u32::from((byte >> bit) & 1);
            length += 1;
            if length > LONGEST {
                return None;
            }
            let place = code.wrapping_sub(CODES.first[length]);
            if place < CODES.count[length] {
                plain.push(CODES.bytes[(CODES.start[length] + place) as usize]);
                (code, length) = (0, 0);
            }
        }
    }
    // The last byte is filled up with ones.
    (length < 8 && code == (1 << length) - 1).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_read() {
        let cases: [(&[u8], &str); 3] = [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], "www.example.com"),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache"),
            (&[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xb8, 0xe8, 0xb4, 0xbf], "custom-value"),
        ];
        for (coded, plain) in cases {
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn what_is_no_string_is_refused() {
        // The end of all strings, and a byte of padding, are not to be sent; a zero is no padding.
        for coded in [&[0xff, 0xff, 0xff, 0xff][..], &[0xff], &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbe]] {
            assert_ne!(decode(coded).as_deref(), Some(&b"no-cache"[..]));
        }
        assert_eq!(decode(&[0xff]), None);
        assert_eq!(decode(&[0xff, 0xff, 0xff, 0xff]), None);
    }
}
