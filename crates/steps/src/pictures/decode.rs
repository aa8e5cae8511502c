//! From a file to 8-bit pixels. Sizes are checked against limits before memory is taken.

use std::io::Cursor;

use alipes_protocol::limits::PICTURE_MAX_SIDE;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, GrayImage, ImageDecoder, Limits, RgbImage};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::bitmap::{Bitmap, READ_BEHIND};
use super::container::{File, Format};
use super::{orientation, png, segments, webp};

/// What a decoder may take beside the pixels: tables, and a colour profile.
const BESIDE_BYTES: u64 = 4 << 20;

/// Most scans of a JPEG file, each of which goes through the whole picture: encoders write about ten.
const MAX_SCANS: usize = 100;

/// Most bytes of a pixel in any format.
const MAX_PIXEL_BYTES: u64 = 8;

/// Decodes a file.
///
/// # Errors
///
/// It is damaged, cut off, of a kind that is not offered, or larger than limits allow; the text says which.
pub fn decode(file: &File<'_>, max_pixels: u64, orient: bool) -> Result<Bitmap, String> {
    let bitmap = match file.format {
        Format::Jpeg => jpeg(&file.bytes, max_pixels).or_else(|error| {
            // Some files have what libjpeg passes over, and the decoder does not.
            segments::plain(&file.bytes).and_then(|plain| jpeg(&plain, max_pixels).ok()).ok_or(error)
        })?,
        Format::Png => {
            let mut limits = Limits::default();
            limits.max_alloc = Some(max_pixels * MAX_PIXEL_BYTES + BESIDE_BYTES);
            let bytes = png::pruned(&file.bytes);
            let decoder = PngDecoder::with_limits(Cursor::new(&*bytes), limits);
            still(decoder.map_err(|error| damaged("PNG", &error))?, "PNG", max_pixels)?
        }
        Format::Webp => {
            for (width, height) in webp::frames(&file.bytes) {
                check_size(width.into(), height.into(), max_pixels, "a WebP picture with a frame of")?;
            }
            let decoder = WebPDecoder::new(Cursor::new(&*file.bytes)).map_err(|error| damaged("WebP", &error))?;
            still(decoder, "WebP", max_pixels)?
        }
    };
    match if orient { orientation::of(file) } else { Orientation::NoTransforms } {
        Orientation::NoTransforms => Ok(bitmap),
        orientation => turned(bitmap, orientation),
    }
}

/// Refuses sizes beyond the limits.
pub fn check_size(width: u64, height: u64, max_pixels: u64, what: &str) -> Result<(), String> {
    let side = u64::from(PICTURE_MAX_SIDE);
    if width == 0 || height == 0 {
        return Err(format!("{what} {width} x {height} pixels, expected at least one"));
    }
    if width > side || height > side {
        return Err(format!("{what} {width} x {height} pixels, more than the limit of {side} on a side"));
    }
    if width * height > max_pixels {
        return Err(format!(
            "{what} {width} x {height} pixels, more than the limit of {max_pixels} in all; the parameter max_pixels \
             raises it"
        ));
    }
    Ok(())
}

fn jpeg(bytes: &[u8], max_pixels: u64) -> Result<Bitmap, String> {
    let refuse = |error: &dyn std::fmt::Display| damaged("JPEG", error);
    // Strict, for a picture that is cut off would else be answered in grey. Sizes are checked below.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .jpeg_set_max_scans(MAX_SCANS)
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX));
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| refuse(&error))?;
    let info = decoder.info().ok_or_else(|| refuse(&"it has no frame"))?;
    check_size(info.width.into(), info.height.into(), max_pixels, "a JPEG picture of")?;
    let (colours, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    if let Some(data) = usual(bytes, width, height) {
        return Ok(Bitmap { width, height, channels: 3, data });
    }
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let mut data = pixels(width * height * channels);
    decoder.decode_into(&mut data).map_err(|error| refuse(&error))?;
    Ok(Bitmap { width, height, channels, data })
}

/// The pixels of a JPEG file of the usual kind; none of any other, and where the processor lacks what that takes.
fn usual(bytes: &[u8], width: usize, height: usize) -> Option<Vec<u8>> {
    #[cfg(target_arch = "x86_64")]
    return super::jpeg::read(bytes, width, height);
    #[cfg(not(target_arch = "x86_64"))]
    return None;
}

/// What a decoder of the crate `image` reads.
fn still(decoder: impl ImageDecoder, format: &str, max_pixels: u64) -> Result<Bitmap, String> {
    let (width, height) = decoder.dimensions();
    check_size(width.into(), height.into(), max_pixels, &format!("a {format} picture of"))?;
    let refuse = |error: &dyn std::fmt::Display| damaged(format, error);
    let colours = decoder.color_type();
    // Fits: a limit holds the pixels.
    let mut data = pixels(decoder.total_bytes() as usize);
    decoder.read_image(&mut data).map_err(|error| refuse(&error))?;
    let (channels, data) = plain(colours, data).ok_or_else(|| refuse(&format!("its colours are {colours:?}")))?;
    Ok(Bitmap { width: width as usize, height: height as usize, channels, data })
}

/// Room for pixels, and for what resizing reads behind them.
fn pixels(bytes: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(bytes + READ_BEHIND);
    data.resize(bytes, 0);
    data
}

/// Pixels of one or three channels of 8 bits: without alpha, and of 16 bits the upper eight, as Pillow does.
fn plain(colours: ColorType, data: Vec<u8>) -> Option<(usize, Vec<u8>)> {
    Some(match colours {
        ColorType::L8 => (1, data),
        ColorType::Rgb8 => (3, data),
        ColorType::La8 => (1, picked::<2, 1>(&data, |[grey, _]| [grey])),
        ColorType::Rgba8 => (3, picked::<4, 3>(&data, |[red, green, blue, _]| [red, green, blue])),
        ColorType::L16 => (1, picked::<2, 1>(&data, |grey| [upper(grey)])),
        ColorType::La16 => (1, picked::<4, 1>(&data, |[one, other, ..]| [upper([one, other])])),
        ColorType::Rgb16 => (3, picked::<6, 3>(&data, |[a, b, c, d, e, f]| [[a, b], [c, d], [e, f]].map(upper))),
        ColorType::Rgba16 => (3, picked::<8, 3>(&data, |[a, b, c, d, e, f, ..]| [[a, b], [c, d], [e, f]].map(upper))),
        _ => return None,
    })
}

fn picked<const FROM: usize, const TO: usize>(data: &[u8], pick: impl Fn([u8; FROM]) -> [u8; TO]) -> Vec<u8> {
    let mut picked = Vec::with_capacity(data.len() / FROM * TO + READ_BEHIND);
    data.as_chunks::<FROM>().0.iter().for_each(|&pixel| picked.extend(pick(pixel)));
    picked
}

fn upper(sample: [u8; 2]) -> u8 {
    (u16::from_ne_bytes(sample) >> 8) as u8
}

/// A picture as its EXIF orientation says.
fn turned(bitmap: Bitmap, orientation: Orientation) -> Result<Bitmap, String> {
    let Bitmap { width, height, channels, data } = bitmap;
    // Sides are far below 2^32: a limit holds them.
    let (wide, high) = (width as u32, height as u32);
    let picture = match channels {
        1 => GrayImage::from_raw(wide, high, data).map(DynamicImage::ImageLuma8),
        _ => RgbImage::from_raw(wide, high, data).map(DynamicImage::ImageRgb8),
    };
    let mut picture = picture.ok_or_else(|| "its pixels are not as many as its size says".to_owned())?;
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    Ok(Bitmap { width, height, channels, data: picture.into_bytes() })
}

fn damaged(format: &str, error: &dyn std::fmt::Display) -> String {
    format!("a {format} file that is damaged, cut off or of a kind that is not offered: {error}")
}

#[cfg(test)]
mod tests {
    use super::super::container::open;
    use super::*;

    const TURNED: &[u8] = include_bytes!("fixtures/turned.jpg");
    const CMYK: &[u8] = include_bytes!("fixtures/cmyk-progressive.jpg");
    const ALPHA: &[u8] = include_bytes!("fixtures/alpha.webp");

    fn read(bytes: &[u8], max_pixels: u64, orient: bool) -> Result<Bitmap, String> {
        decode(&open(bytes)?, max_pixels, orient)
    }

    #[test]
    fn every_format_is_read() {
        for (file, orient, size) in [(TURNED, false, (16, 8)), (TURNED, true, (8, 16)), (CMYK, true, (16, 8))] {
            let bitmap = read(file, 1000, orient).unwrap();
            assert_eq!((bitmap.width, bitmap.height, bitmap.channels), (size.0, size.1, 3));
        }
        assert_eq!(read(ALPHA, 1000, true).unwrap().data.len(), 16 * 8 * 3);
    }

    #[test]
    fn every_cut_is_refused() {
        for file in [TURNED, CMYK, ALPHA] {
            for length in 0..file.len() - 4 {
                assert!(read(&file[..length], 1000, true).is_err(), "{length} of {}", file.len());
            }
        }
    }

    #[test]
    fn jpeg_files_are_read_with_what_libjpeg_passes_over() {
        let plain = read(TURNED, 1000, true).unwrap();
        let frame = TURNED.windows(2).position(|bytes| bytes == [0xFF, 0xC0]).unwrap();
        for what in [&b"noise\0"[..], b"\xff\xfe\0\0", b"\xff\xee\0\x07Adobe", b"\xff\xff"] {
            let file = [&TURNED[..frame], what, &TURNED[frame..]].concat();
            let bitmap = read(&file, 1000, true).unwrap_or_else(|error| panic!("{}: {error}", what.escape_ascii()));
            assert_eq!((bitmap.width, bitmap.height, bitmap.channels), (plain.width, plain.height, plain.channels));
            // Two readers, one of which is exact: their samples differ by one.
            assert!(bitmap.data.iter().zip(&plain.data).all(|(&one, &other)| one.abs_diff(other) <= 1));
        }
    }

    #[test]
    fn a_progressive_file_without_its_last_scans_is_read_as_far_as_it_goes() {
        let last = CMYK.windows(2).rposition(|bytes| bytes == [0xFF, 0xDA]).unwrap();
        let ended = [&CMYK[..last], &[0xFF, 0xD9]].concat();
        assert_eq!(read(&ended, 1000, true).map(|bitmap| bitmap.width), Ok(16));
        assert!(read(&CMYK[..last], 1000, true).is_err());
    }

    #[test]
    fn sizes_are_checked_before_pixels() {
        let error = read(TURNED, 127, true).unwrap_err();
        assert!(error.starts_with("a JPEG picture of 16 x 8 pixels, more than the limit of 127 in all;"), "{error}");
        let error = check_size(70_000, 1, u64::MAX, "a picture of").unwrap_err();
        assert_eq!(error, "a picture of 70000 x 1 pixels, more than the limit of 65535 on a side");
        assert_eq!(
            check_size(0, 3, 9, "a picture of").unwrap_err(),
            "a picture of 0 x 3 pixels, expected at least one"
        );
    }
}
