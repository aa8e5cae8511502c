//! The weights with which pixels of a row, or of a column, become a pixel of a smaller or larger one.
//!
//! They are Pillow's: a filter is stretched by the factor by which the picture shrinks, its weights are normalised, and
//! rounded to 22 bits behind the point.

use std::f64::consts::PI;

/// Bits behind the point of a weight: 8 of 32 are the pixel's, and 2 are left for sums.
pub const PRECISION_BITS: u32 = 32 - 8 - 2;

/// One, as a weight.
const ONE: f64 = (1_u32 << PRECISION_BITS) as f64;

/// What sums of weighted pixels begin with: half a pixel, so that cutting off rounds.
pub const HALF: i32 = 1 << (PRECISION_BITS - 1);

/// A sum of weighted pixels that began with [`HALF`], as a pixel: to the nearest, and no further than pixels go.
#[inline(always)]
pub fn rounded(sum: i32) -> u8 {
    (sum >> PRECISION_BITS).clamp(0, 255) as u8
}

/// How pixels between pixels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// The mean of the pixels beneath.
    Box,
    /// A triangle.
    Bilinear,
    /// A cubic with a slope of -0.5 at 1.
    Bicubic,
    /// A sinc, windowed by another, three lobes wide.
    Lanczos,
}

impl Filter {
    /// How far from its centre the filter reaches, in pixels of the larger picture where the factor is 1.
    fn support(self) -> f64 {
        match self {
            Filter::Nearest | Filter::Box => 0.5,
            Filter::Bilinear => 1.0,
            Filter::Bicubic => 2.0,
            Filter::Lanczos => 3.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let distance = x.abs();
        match self {
            Filter::Nearest | Filter::Box => f64::from(x > -0.5 && x <= 0.5),
            Filter::Bilinear => (1.0 - distance).max(0.0),
            Filter::Bicubic => cubic(distance),
            Filter::Lanczos if (-3.0..3.0).contains(&x) => sinc(x) * sinc(x / 3.0),
            Filter::Lanczos => 0.0,
        }
    }
}

fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * PI).sin() / (x * PI) }
}

/// The pixels that make one pixel, and their weights.
#[derive(Clone, Debug)]
pub struct Window {
    /// Position of the first.
    pub first: usize,
    /// A weight for each, in units of 2^-22. No filter's weights sum up, signs apart, to more than twice one.
    pub weights: Vec<i32>,
}

impl Window {
    /// The position behind the last.
    pub fn end(&self) -> usize {
        self.first + self.weights.len()
    }
}

/// The windows of a row of `to` pixels that is made of one of `from` pixels.
pub fn windows(filter: Filter, from: usize, to: usize) -> Vec<Window> {
    let scale = from as f64 / to as f64;
    let stretch = scale.max(1.0);
    let support = filter.support() * stretch;
    (0..to).map(|pixel| window(filter, from, (pixel as f64 + 0.5) * scale, support, stretch.recip())).collect()
}

fn window(filter: Filter, from: usize, centre: f64, support: f64, shrink: f64) -> Window {
    let first = (centre - support + 0.5).max(0.0) as usize;
    let end = ((centre + support + 0.5) as usize).min(from);
    let shares: Vec<f64> = (first..end).map(|pixel| filter.at((pixel as f64 - centre + 0.5) * shrink)).collect();
    let sum: f64 = shares.iter().sum();
    let weight = |share: f64| if sum == 0.0 { share } else { share / sum };
    Window { first, weights: shares.into_iter().map(|share| (weight(share) * ONE).round() as i32).collect() }
}

/// The pixel that is the nearest to each of `to` pixels in a row of `from`.
pub fn nearest(from: usize, to: usize) -> Vec<usize> {
    let scale = from as f64 / to as f64;
    // Added up, as Pillow does: products differ from sums in their last bit.
    let mut centre = scale * 0.5;
    let mut next = || {
        let pixel = (centre as usize).min(from.saturating_sub(1));
        centre += scale;
        pixel
    };
    (0..to).map(|_| next()).collect()
}
