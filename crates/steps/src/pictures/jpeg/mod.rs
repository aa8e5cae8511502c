//! JPEG files of the usual kind, read quicker: baseline, in three colours, in one scan without restarts.
//!
//! What is unusual, damaged or cut off is left to the crate `zune-jpeg`, which reads the head of every file. What is
//! read here has the bits that libjpeg makes, and with it Pillow: its transform, its interpolation of colours that are
//! stored in fewer pixels, its conversion.
//!
//! A picture of 29 kB, 512 x 384 pixels, takes 406 to 438 µs instead of 668 to 676 (`zune-jpeg` 0.5.15) and 790 to 840
//! (libjpeg-turbo 3.2 in Pillow 13): medians of 500, one thread, busy machine, 11/2026. By the profile, codes and their
//! tables take 215 µs instead of 290, the transform 60 instead of 150, colours 90 instead of 110, and copies 20
//! instead of 70.
//!
//! - `head`: what stands before the scan.
//! - `huffman`, `bits`: codes to numbers.
//! - `block`: 64 numbers, their order and their factors.
//! - `scan`: blocks of a scan to planes of samples.
//! - `transform`: a block from frequencies to samples.
//! - `colours`: planes to pixels.

mod bits;
mod block;
mod colours;
mod head;
mod huffman;
mod scan;
mod transform;

use head::Head;

/// Whether the processor has the instructions.
fn is_offered() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
}

/// The pixels of a file of so many pixels, three bytes each; none where the file is not of the usual kind.
pub fn read(file: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
    if !is_offered() {
        return None;
    }
    let (head, scan) = Head::read(file)?;
    if (head.width, head.height) != (width, height) {
        return None;
    }
    // SAFETY: the processor has what the functions are compiled for, as was just asked.
    let pixels = unsafe { colours::pixels(&scan::planes(&head, scan)?, &head) };
    Some(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file, its pixels as Pillow 13 reads them, its width and its height.
    type Usual = (&'static [u8], &'static [u8], (usize, usize));

    const FILES: [Usual; 3] = [
        (include_bytes!("../fixtures/usual-420.jpg"), include_bytes!("../fixtures/usual-420.rgb"), (33, 18)),
        (include_bytes!("../fixtures/usual-422.jpg"), include_bytes!("../fixtures/usual-422.rgb"), (21, 9)),
        (include_bytes!("../fixtures/usual-444.jpg"), include_bytes!("../fixtures/usual-444.rgb"), (9, 10)),
    ];

    #[test]
    fn pixels_are_those_of_pillow() {
        for (file, expected, (width, height)) in FILES {
            assert_eq!(read(file, width, height), is_offered().then(|| expected.to_vec()), "{width}x{height}");
        }
    }

    #[test]
    fn what_is_cut_off_is_left_to_others() {
        for (file, _, (width, height)) in FILES {
            for length in 0..file.len() {
                assert_eq!(read(&file[..length], width, height), None, "{length} of {}", file.len());
            }
            // Bytes are missing before the end, or too many.
            let (scan, end) = file.split_at(file.len() - 2);
            assert_eq!(read(&[&scan[..scan.len() - 2], end].concat(), width, height), None);
            assert_eq!(read(&[scan, &[0x55], end].concat(), width, height), None);
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_others() {
        let (file, _, (width, height)) = FILES[0];
        let changed = |what: &[u8], into: &[u8]| {
            let at = file.windows(what.len()).position(|bytes| bytes == what).expect("it is there");
            read(&[&file[..at], into, &file[at + what.len()..]].concat(), width, height)
        };
        // Progressive, samples of 12 bits, other ratios, a component by another name, restarts.
        assert_eq!(changed(&[0xFF, 0xC0], &[0xFF, 0xC2]), None);
        assert_eq!(changed(&[0xFF, 0xC0, 0, 17, 8], &[0xFF, 0xC0, 0, 17, 12]), None);
        assert_eq!(changed(&[3, 1, 0x22], &[3, 1, 0x12]), None);
        assert_eq!(changed(&[3, 1, 0x22], &[3, 7, 0x22]), None);
        assert_eq!(changed(&[0xFF, 0xDA], &[0xFF, 0xDD, 0, 4, 0, 1, 0xFF, 0xDA]), None);
        // Of Adobe, in red, green and blue.
        let adobe = [b"\xFF\xD8\xFF\xEE\0\x0EAdobe\0\x64\0\0\0\0".as_slice(), &[0]].concat();
        assert_eq!(changed(&[0xFF, 0xD8], &adobe), None);
        assert_eq!(read(file, width, height + 1), None);
    }
}
