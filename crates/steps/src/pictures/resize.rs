//! Pictures of another size: bit for bit what Pillow makes of 8-bit pictures.
//!
//! Rows are made shorter or longer first, then columns, with pixels of 8 bits between. Where a picture loses more than
//! twice as many rows as columns, columns come first, as in Pillow from release 13 on: before, rows did.

use std::ops::Range;

use super::across::{self, across};
use super::bitmap::Bitmap;
use super::coefficients::{Filter, Window, nearest, windows};
use super::down::{self, down};

/// Width and height of a picture on its way from one size to another.
pub fn half_way(from: (usize, usize), to: (usize, usize)) -> (usize, usize) {
    if columns_first(from, to) { (from.0, to.1) } else { (to.0, from.1) }
}

fn columns_first((width, height): (usize, usize), (wide, high): (usize, usize)) -> bool {
    // Sides are far below 2^62: a limit holds them.
    high < height && height as i64 - high as i64 > 2 * (width as i64 - wide as i64)
}

/// The picture at another size. All sizes are at least 1.
pub fn resize(picture: Bitmap, width: usize, height: usize, filter: Filter) -> Bitmap {
    if (picture.width, picture.height) == (width, height) {
        return picture;
    }
    if filter == Filter::Nearest {
        return pick(&picture, width, height);
    }
    let windows_of_rows = windows(filter, picture.height, height);
    let columns = windows(filter, picture.width, width);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for, as was just asked.
        return unsafe { resize_avx2(picture, &columns, &windows_of_rows) };
    }
    resize_plainly(picture, &columns, &windows_of_rows)
}

fn resize_plainly(picture: Bitmap, columns: &[Window], rows: &[Window]) -> Bitmap {
    in_order(picture, columns, rows, |picture, columns, needed| across(&picture, columns, needed), down)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn resize_avx2(picture: Bitmap, columns: &[Window], rows: &[Window]) -> Bitmap {
    let across = |picture: Bitmap, columns: &[Window], needed: Range<usize>| match picture.channels {
        3 => across::avx2::across(picture, columns, needed),
        _ => across(&picture, columns, needed),
    };
    in_order(picture, columns, rows, across, |picture, rows| down::avx2::down(picture, rows))
}

#[inline(always)]
fn in_order(
    picture: Bitmap,
    columns: &[Window],
    rows: &[Window],
    across: impl Fn(Bitmap, &[Window], Range<usize>) -> Bitmap,
    down: impl Fn(&Bitmap, &[Window]) -> Bitmap,
) -> Bitmap {
    if columns_first((picture.width, picture.height), (columns.len(), rows.len())) {
        let low = down(&picture, rows);
        let all = 0..low.height;
        return if low.width == columns.len() { low } else { across(low, columns, all) };
    }
    // Rows above the first window and below the last one are in none.
    let needed = rows.first().map_or(0, |row| row.first)..rows.last().map_or(0, Window::end);
    let narrow = if picture.width == columns.len() { picture } else { across(picture, columns, needed) };
    if narrow.height == rows.len() { narrow } else { down(&narrow, rows) }
}

fn pick(picture: &Bitmap, width: usize, height: usize) -> Bitmap {
    let channels = picture.channels;
    let (columns, rows) = (nearest(picture.width, width), nearest(picture.height, height));
    let mut data = Vec::with_capacity(width * height * channels);
    for row in rows {
        let row = &picture.data[row * picture.width * channels..][..picture.width * channels];
        columns.iter().for_each(|&column| data.extend_from_slice(&row[column * channels..][..channels]));
    }
    Bitmap { width, height, channels, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in every run.
    fn picture(width: usize, height: usize, channels: usize) -> Bitmap {
        let mut state = 12_345_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Extremes are what sums overflow with.
            if state & 3 == 0 { 255 } else { (state >> 24) as u8 }
        };
        Bitmap { width, height, channels, data: (0..width * height * channels).map(|_| next()).collect() }
    }

    #[test]
    fn pixels_are_those_of_pillow() {
        let data = (0..7 * 5 * 3).map(|value| (value * 37 % 256) as u8).collect();
        let source = Bitmap { width: 7, height: 5, channels: 3, data };
        for (filter, expected) in PILLOW {
            assert_eq!(resize(source.clone(), 3, 2, filter).data, expected, "{filter:?}");
        }
    }

    /// What Pillow 13.0 makes of the same picture.
    const PILLOW: [(Filter, [u8; 18]); 5] = [
        (Filter::Nearest, [120, 157, 194, 86, 123, 160, 52, 89, 126, 138, 175, 212, 104, 141, 178, 70, 107, 144]),
        (Filter::Box, [65, 102, 139, 171, 123, 75, 108, 145, 182, 88, 125, 162, 151, 103, 98, 131, 168, 141]),
        (Filter::Bilinear, [104, 86, 123, 146, 123, 100, 123, 160, 142, 105, 104, 141, 145, 122, 118, 141, 161, 131]),
        (Filter::Bicubic, [99, 79, 126, 158, 124, 87, 117, 165, 149, 99, 103, 146, 152, 118, 111, 141, 165, 132]),
        (Filter::Lanczos, [101, 73, 128, 164, 126, 82, 113, 172, 151, 98, 102, 148, 154, 116, 110, 142, 169, 131]),
    ];

    #[test]
    fn all_processors_make_the_same_pixels() {
        for filter in [Filter::Box, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
            for (width, height) in [(1, 1), (2, 9), (33, 21), (64, 3)] {
                for (wide, high) in [(1, 1), (5, 7), (64, 40), (width, 2), (3, height)] {
                    let source = picture(width, height, 3);
                    let (columns, rows) = (windows(filter, width, wide), windows(filter, height, high));
                    let plainly = resize_plainly(source.clone(), &columns, &rows);
                    assert_eq!(
                        resize(source, wide, high, filter),
                        plainly,
                        "{filter:?} {width}x{height} {wide}x{high}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_channel_by_itself_is_what_it_is_beside_others() {
        let grey = picture(19, 11, 1);
        let coloured = Bitmap { channels: 3, data: grey.data.iter().flat_map(|&value| [value; 3]).collect(), ..grey };
        for filter in [Filter::Nearest, Filter::Box, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos] {
            let (grey, coloured) = (resize(grey.clone(), 6, 30, filter), resize(coloured.clone(), 6, 30, filter));
            assert!(coloured.data.as_chunks::<3>().0.iter().map(|pixel| pixel[1]).eq(grey.data), "{filter:?}");
        }
    }
}
