//! A fuzzer of files of pictures.

use std::io::Cursor;

use alipes_testkit::fuzz::Fuzzer;
use alipes_testkit::memory::{CountedAllocator, peak};
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ImageEncoder, ImageFormat};

use super::coefficients::Filter;
use super::{container, decode, resize};

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

const MAX_PIXELS: u64 = 1 << 14;

/// Most bytes that decoding holds for a pixel: eight of a file of 16 bits, coefficients of a progressive one, results.
const BYTES_PER_PIXEL: usize = 32;

/// Most bytes beside the pixels: tables of the formats, and what a profile may take.
const BYTES_BESIDE: usize = 6 << 20;

/// A JPEG picture of 16 x 8 pixels that Pillow has written, with an orientation of 6.
const JPEG: &[u8] = include_bytes!("fixtures/turned.jpg");

/// A JPEG picture of 33 x 18 pixels of the usual kind, likewise.
const USUAL: &[u8] = include_bytes!("fixtures/usual-420.jpg");

/// A progressive JPEG picture in CMYK, likewise.
const CMYK: &[u8] = include_bytes!("fixtures/cmyk-progressive.jpg");

/// A lossy WebP picture with alpha, likewise.
const WEBP: &[u8] = include_bytes!("fixtures/alpha.webp");

fn png(picture: &DynamicImage) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    picture.write_to(&mut file, ImageFormat::Png).expect("a picture is written");
    file.into_inner()
}

#[test]
fn whatever_bytes_a_picture_has_it_is_read_or_refused_within_limits() {
    let seeds = [
        JPEG.to_vec(),
        USUAL.to_vec(),
        CMYK.to_vec(),
        WEBP.to_vec(),
        png(&DynamicImage::new_rgba16(5, 3)),
        png(&DynamicImage::new_luma8(9, 2)),
        b"data:image/png;base64,iVBORw0KGgo=".to_vec(),
    ];
    Fuzzer::new("picture", seeds).words(["IHDR", "IDAT", "Exif", "VP8X", "ICCP"]).inputs(1_000).run(check);
}

#[test]
fn a_profile_in_a_png_file_is_not_inflated() {
    let (picture, mut file) = (DynamicImage::new_rgb8(3, 2), Vec::new());
    let mut encoder = PngEncoder::new(&mut file);
    encoder.set_icc_profile(vec![7; 64 << 20]).expect("profiles are written");
    picture.write_with_encoder(encoder).expect("a picture is written");
    let (decoded, held) = peak(|| decode::decode(&container::open(&file).expect("a file"), MAX_PIXELS, true));
    assert_eq!(decoded.expect("a picture").data, picture.into_bytes());
    assert!(held <= 2 * file.len() + (1 << 20), "{held} bytes for a file of {}", file.len());
}

fn check(input: &[u8]) {
    let Ok(file) = container::open(input) else { return };
    let (decoded, held) = peak(|| decode::decode(&file, MAX_PIXELS, true));
    let most = BYTES_BESIDE + MAX_PIXELS as usize * BYTES_PER_PIXEL + 4 * input.len();
    assert!(held <= most, "{held} bytes for a file of {}", input.len());
    match decoded {
        Ok(bitmap) => {
            assert!((bitmap.width * bitmap.height) as u64 <= MAX_PIXELS);
            assert_eq!(bitmap.data.len(), bitmap.width * bitmap.height * bitmap.channels);
            let small = resize::resize(bitmap, 3, 2, Filter::Lanczos);
            assert_eq!(small.data.len(), 6 * small.channels);
        }
        Err(reason) => assert!(!reason.is_empty() && reason.len() < 1_000, "{reason}"),
    }
}
