//! Sizes on the way from a picture to its tensor.

use alipes_spec::{FilterSpec, PictureSpec, ResizeSpec};

use super::bitmap::Bitmap;
use super::coefficients::Filter;
use super::decode::check_size;
use super::resize::{half_way, resize};

/// What size pictures get.
pub struct Geometry {
    resize: Option<ResizeSpec>,
    filter: Filter,
    /// Width and height.
    crop: Option<(usize, usize)>,
}

impl Geometry {
    /// The sizes of a specification.
    pub fn new(spec: &PictureSpec) -> Geometry {
        let filter = match spec.filter {
            FilterSpec::Nearest => Filter::Nearest,
            FilterSpec::Box => Filter::Box,
            FilterSpec::Bilinear => Filter::Bilinear,
            FilterSpec::Bicubic => Filter::Bicubic,
            FilterSpec::Lanczos => Filter::Lanczos,
        };
        let crop = spec.crop.map(|(width, height)| (width as usize, height as usize));
        Geometry { resize: spec.resize, filter, crop }
    }

    /// Width and height of every picture at the end; none where they follow from the picture.
    pub fn fixed(&self) -> Option<(usize, usize)> {
        self.crop.or(match self.resize {
            Some(ResizeSpec::Exact { width, height }) => Some((width as usize, height as usize)),
            _ => None,
        })
    }

    /// A picture at its final size.
    ///
    /// # Errors
    ///
    /// It would be too large on the way: a row of pixels is small, and a square of its length is not.
    pub fn apply(&self, bitmap: Bitmap, max_pixels: u64) -> Result<Bitmap, String> {
        let bitmap = match self.resize {
            None => bitmap,
            Some(wanted) => {
                let (width, height) = target(wanted, bitmap.width, bitmap.height);
                check_size(width as u64, height as u64, max_pixels, "resized it would have")?;
                let (wide, high) = half_way((bitmap.width, bitmap.height), (width, height));
                check_size(wide as u64, high as u64, max_pixels, "half way to its size it would have")?;
                resize(bitmap, width, height, self.filter)
            }
        };
        Ok(match self.crop {
            Some((width, height)) => crop(bitmap, width, height),
            None => bitmap,
        })
    }
}

/// The size that a picture is brought to. Source: torchvision's `Resize`, which cuts fractions off.
fn target(resize: ResizeSpec, width: usize, height: usize) -> (usize, usize) {
    match resize {
        ResizeSpec::Exact { width, height } => (width as usize, height as usize),
        ResizeSpec::ShortSide { pixels } => {
            let short = pixels as usize;
            if width <= height { (short, short * height / width) } else { (short * width / height, short) }
        }
    }
}

/// The centre of a picture; black where it does not reach. Source: torchvision's `CenterCrop`.
fn crop(bitmap: Bitmap, width: usize, height: usize) -> Bitmap {
    if (bitmap.width, bitmap.height) == (width, height) {
        return bitmap;
    }
    let (across, down) = (Cut::of(bitmap.width, width), Cut::of(bitmap.height, height));
    let channels = bitmap.channels;
    let mut data = vec![0; width * height * channels];
    let rows = data.chunks_exact_mut(width * channels).skip(down.margin).take(down.count);
    for (number, made) in rows.enumerate() {
        let source = &bitmap.row(down.first + number)[across.first * channels..][..across.count * channels];
        made[across.margin * channels..][..source.len()].copy_from_slice(source);
    }
    Bitmap { width, height, channels, data }
}

/// What of an axis is taken, and where it is put.
struct Cut {
    first: usize,
    count: usize,
    margin: usize,
}

impl Cut {
    fn of(size: usize, wanted: usize) -> Cut {
        if size < wanted {
            return Cut { first: 0, count: size, margin: (wanted - size) / 2 };
        }
        let beyond = size - wanted;
        // To the even one of two neighbours, as Python rounds.
        let first = if beyond % 4 == 3 { beyond / 2 + 1 } else { beyond / 2 };
        Cut { first, count: wanted, margin: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(width: usize, height: usize) -> Bitmap {
        Bitmap { width, height, channels: 1, data: (0..width * height).map(|value| value as u8).collect() }
    }

    #[test]
    fn the_longer_side_keeps_its_proportion() {
        let short = |pixels| ResizeSpec::ShortSide { pixels };
        assert_eq!(target(short(256), 500, 375), (341, 256));
        assert_eq!(target(short(256), 375, 500), (256, 341));
        assert_eq!(target(short(7), 9, 9), (7, 7));
    }

    #[test]
    fn a_crop_takes_the_centre() {
        assert_eq!(crop(ramp(4, 4), 2, 2).data, [5, 6, 9, 10]);
        // 1.5 and 0.5 become the even number.
        assert_eq!(crop(ramp(5, 1), 2, 1).data, [2, 3]);
        assert_eq!(crop(ramp(3, 1), 2, 1).data, [0, 1]);
    }

    #[test]
    fn a_crop_of_a_small_picture_is_black_around_it() {
        assert_eq!(crop(ramp(1, 2), 4, 2).data, [0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn what_would_grow_too_large_on_the_way_is_refused() {
        let geometry = |resize| Geometry { resize: Some(resize), filter: Filter::Bilinear, crop: Some((2, 2)) };
        let long = || Bitmap { width: 1, height: 2000, channels: 1, data: vec![0; 2000] };
        let short = geometry(ResizeSpec::ShortSide { pixels: 100 });
        let error = short.apply(long(), 1 << 20).unwrap_err();
        assert_eq!(error, "resized it would have 100 x 200000 pixels, more than the limit of 65535 on a side");
        let wide = geometry(ResizeSpec::Exact { width: 1000, height: 2000 });
        let error = wide.apply(Bitmap { width: 2000, height: 2001, ..long() }, 2_000_000).unwrap_err();
        assert!(error.starts_with("half way to its size it would have 1000 x 2001 pixels"), "{error}");
    }
}
