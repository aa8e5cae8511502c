//! Columns of another height.

#[cfg(target_arch = "x86_64")]
pub mod avx2;

use super::bitmap::{Bitmap, READ_BEHIND};
use super::coefficients::{HALF, Window, rounded};

/// Every column at its new height.
pub fn down(picture: &Bitmap, rows: &[Window]) -> Bitmap {
    let stride = picture.width * picture.channels;
    let mut data = Vec::with_capacity(rows.len() * stride + READ_BEHIND);
    let mut sums = vec![0; stride];
    for window in rows {
        sums.fill(HALF);
        for (row, &weight) in picture.data[window.first * stride..].chunks_exact(stride).zip(&window.weights) {
            sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += i32::from(value) * weight);
        }
        data.extend(sums.iter().map(|&sum| rounded(sum)));
    }
    Bitmap { height: rows.len(), data, ..*picture }
}
