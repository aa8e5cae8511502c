//! Rows of another width.

#[cfg(target_arch = "x86_64")]
pub mod avx2;

use std::ops::Range;

use super::bitmap::Bitmap;
use super::coefficients::{HALF, Window, rounded};

/// Every row at its new width; rows outside `needed` stay black.
pub fn across(picture: &Bitmap, columns: &[Window], needed: Range<usize>) -> Bitmap {
    let (from, to) = (picture.width * picture.channels, columns.len() * picture.channels);
    let mut data = vec![0; picture.height * to];
    let sources = picture.data[needed.start * from..needed.end * from].chunks_exact(from);
    for (source, made) in sources.zip(data[needed.start * to..].chunks_exact_mut(to)) {
        match picture.channels {
            1 => row::<1>(source, made, columns),
            _ => row::<3>(source, made, columns),
        }
    }
    Bitmap { width: columns.len(), data, ..*picture }
}

fn row<const CHANNELS: usize>(source: &[u8], made: &mut [u8], columns: &[Window]) {
    let pixels = source.as_chunks::<CHANNELS>().0;
    for (made, window) in made.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(columns) {
        let mut sums = [HALF; CHANNELS];
        for (pixel, &weight) in pixels[window.first..].iter().zip(&window.weights) {
            sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += i32::from(value) * weight);
        }
        *made = sums.map(rounded);
    }
}
