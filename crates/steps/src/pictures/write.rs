//! From pixels to the tensor: channels in their order, axes in theirs, bytes or numbers.

use alipes_engine::EngineError;
use alipes_protocol::Datatype;
use alipes_spec::{Channels, NumberSpec, PictureLayout, PictureSpec};
use bytes::Bytes;

use super::bitmap::Bitmap;
use crate::numbers::bytes_of;

/// A number for each byte.
type Table = [f32; 256];

/// How pixels are written.
pub struct Writer {
    channels: Channels,
    layout: PictureLayout,
    /// A table for each channel of the tensor; none where bytes stay bytes.
    tables: Option<Vec<Table>>,
}

impl Writer {
    /// The writer that a specification describes.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where there are not as many means as channels.
    pub fn new(spec: &PictureSpec) -> Result<Writer, EngineError> {
        let count = spec.channels.count();
        let tables = spec.numbers.as_ref().map(|numbers| tables(numbers, count)).transpose()?;
        Ok(Writer { channels: spec.channels, layout: spec.layout, tables })
    }

    /// Channels of the tensor.
    pub fn channels(&self) -> usize {
        self.channels.count()
    }

    /// Order of its axes.
    pub fn layout(&self) -> PictureLayout {
        self.layout
    }

    /// The tensor of so many rows of so many pixels. Rows without a picture are zeros.
    pub fn write(
        &self,
        rows: usize,
        pixels: usize,
        bitmaps: impl Iterator<Item = Option<Bitmap>>,
    ) -> (Datatype, Bytes) {
        match &self.tables {
            None => (Datatype::Uint8, self.fill(rows, pixels, bitmaps, |_, value| value).into()),
            Some(tables) => {
                let number = |channel: usize, value: u8| tables[channel][usize::from(value)];
                (Datatype::Fp32, bytes_of(self.fill(rows, pixels, bitmaps, number)))
            }
        }
    }

    fn fill<T: Copy + Default>(
        &self,
        rows: usize,
        pixels: usize,
        bitmaps: impl Iterator<Item = Option<Bitmap>>,
        number: impl Fn(usize, u8) -> T,
    ) -> Vec<T> {
        let size = pixels * self.channels();
        let mut tensor = Vec::with_capacity(rows * size);
        for (row, bitmap) in bitmaps.enumerate() {
            match bitmap {
                Some(bitmap) => self.add_row(&mut tensor, &bitmap, &number),
                None => tensor.resize((row + 1) * size, T::default()),
            }
        }
        tensor
    }

    fn add_row<T: Copy + Default>(&self, tensor: &mut Vec<T>, bitmap: &Bitmap, number: &impl Fn(usize, u8) -> T) {
        match bitmap.channels {
            // A grey picture has one channel for all.
            1 => self.add_pixels::<T, 1>(tensor, &bitmap.data, number),
            _ => self.add_pixels::<T, 3>(tensor, &bitmap.data, number),
        }
    }

    fn add_pixels<T: Copy + Default, const N: usize>(
        &self,
        tensor: &mut Vec<T>,
        bytes: &[u8],
        number: &impl Fn(usize, u8) -> T,
    ) {
        let (count, pixels) = (self.channels(), bytes.as_chunks::<N>().0);
        let source = |channel: usize| match self.channels {
            Channels::Bgr => (2 - channel).min(N - 1),
            Channels::Rgb | Channels::L => channel.min(N - 1),
        };
        match (self.layout, count) {
            (PictureLayout::Nchw, _) => (0..count).for_each(|channel| {
                let from = source(channel);
                tensor.extend(pixels.iter().map(|pixel| number(channel, pixel[from])));
            }),
            (PictureLayout::Nhwc, 3) => {
                let from: [usize; 3] = std::array::from_fn(source);
                let before = tensor.len();
                tensor.resize(before + 3 * pixels.len(), T::default());
                let made = tensor[before..].as_chunks_mut::<3>().0;
                made.iter_mut().zip(pixels).for_each(|(made, pixel)| {
                    *made = std::array::from_fn(|channel| number(channel, pixel[from[channel]]));
                });
            }
            (PictureLayout::Nhwc, _) => tensor.extend(pixels.iter().map(|pixel| number(0, pixel[source(0)]))),
        }
    }
}

fn tables(numbers: &NumberSpec, channels: usize) -> Result<Vec<Table>, EngineError> {
    let NumberSpec { factor, divisor, mean, std } = numbers;
    if mean.len() != channels || std.len() != channels {
        let text = format!("{} means and {} deviations for {channels} channels", mean.len(), std.len());
        return Err(EngineError::invalid(text));
    }
    // Step by step in single precision, as torchvision does: the same bits.
    let table = |(mean, std): (&f32, &f32)| std::array::from_fn(|byte| (byte as f32 * factor / divisor - mean) / std);
    Ok(mean.iter().zip(std).map(table).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(channels: Channels, layout: PictureLayout, numbers: Option<NumberSpec>) -> Writer {
        let tables = numbers.map(|numbers| tables(&numbers, channels.count()).unwrap());
        Writer { channels, layout, tables }
    }

    fn two_pixels() -> Option<Bitmap> {
        Some(Bitmap { width: 2, height: 1, channels: 3, data: vec![1, 2, 3, 4, 5, 6] })
    }

    fn bytes(writer: &Writer, bitmaps: Vec<Option<Bitmap>>) -> Vec<u8> {
        writer.write(bitmaps.len(), 2, bitmaps.into_iter()).1.to_vec()
    }

    #[test]
    fn channels_and_axes_come_in_their_order() {
        let of = |channels, layout| bytes(&writer(channels, layout, None), vec![two_pixels()]);
        assert_eq!(of(Channels::Rgb, PictureLayout::Nchw), [1, 4, 2, 5, 3, 6]);
        assert_eq!(of(Channels::Bgr, PictureLayout::Nchw), [3, 6, 2, 5, 1, 4]);
        assert_eq!(of(Channels::Rgb, PictureLayout::Nhwc), [1, 2, 3, 4, 5, 6]);
        assert_eq!(of(Channels::Bgr, PictureLayout::Nhwc), [3, 2, 1, 6, 5, 4]);
    }

    #[test]
    fn a_grey_picture_has_three_equal_channels_and_a_missing_one_zeros() {
        let grey = Some(Bitmap { width: 2, height: 1, channels: 1, data: vec![7, 8] });
        let writer = writer(Channels::Rgb, PictureLayout::Nchw, None);
        assert_eq!(bytes(&writer, vec![grey, None]), [7, 8, 7, 8, 7, 8, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn numbers_are_scaled_then_centred_then_divided() {
        let numbers = NumberSpec { factor: 1.0, divisor: 255.0, mean: vec![0.5], std: vec![0.25] };
        let writer = writer(Channels::L, PictureLayout::Nhwc, Some(numbers));
        let bitmap = Some(Bitmap { width: 2, height: 1, channels: 1, data: vec![0, 255] });
        let (datatype, data) = writer.write(1, 2, [bitmap].into_iter());
        assert_eq!(datatype, Datatype::Fp32);
        assert_eq!(
            data.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect::<Vec<_>>(),
            [-2.0, 2.0]
        );
    }
}
