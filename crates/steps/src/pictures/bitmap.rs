//! A picture as pixels.

/// Bytes that are read behind the pixels, where their vector had better have room for them.
pub const READ_BEHIND: usize = 64;

/// An 8-bit picture: rows of pixels, whose channels stand side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    /// Pixels of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Channels of a pixel: 1 or 3.
    pub channels: usize,
    /// `height` x `width` x `channels` bytes.
    pub data: Vec<u8>,
}

impl Bitmap {
    /// The picture in grey. Source: Pillow's `L`, the lightness of ITU-R 601-2 in 16 bits behind the point.
    pub fn lightness(self) -> Bitmap {
        if self.channels == 1 {
            return self;
        }
        let grey = |&[red, green, blue]: &[u8; 3]| {
            ((u32::from(red) * 19_595 + u32::from(green) * 38_470 + u32::from(blue) * 7_471 + 0x8000) >> 16) as u8
        };
        let data = self.data.as_chunks().0.iter().map(grey).collect();
        Bitmap { channels: 1, data, ..self }
    }

    /// The bytes of a row.
    pub fn row(&self, row: usize) -> &[u8] {
        let bytes = self.width * self.channels;
        &self.data[row * bytes..(row + 1) * bytes]
    }
}
