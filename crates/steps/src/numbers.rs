//! Numbers of single precision from and to tensors.

use alipes_engine::{EngineError, InputView, OutputTensor};
use alipes_protocol::{Datatype, Shape};
use bytes::Bytes;

/// Numbers that own their memory, to be read as bytes without a copy.
struct Floats(Vec<f32>);

impl AsRef<[u8]> for Floats {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// The bytes of numbers, where they are.
pub fn bytes_of(numbers: Vec<f32>) -> Bytes {
    Bytes::from_owner(Floats(numbers))
}

/// The numbers of an input.
pub fn read(input: &InputView<'_>) -> impl ExactSizeIterator<Item = f32> + Clone {
    input.data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

/// An output of numbers.
pub fn output(index: usize, shape: Shape, numbers: Vec<f32>) -> OutputTensor {
    OutputTensor { index, datatype: Datatype::Fp32, shape, data: bytes_of(numbers) }
}

/// An input by its position.
///
/// # Errors
///
/// `Internal` where it is not there: requests are checked before.
pub fn input<'a, 'b>(inputs: &'a [InputView<'b>], index: usize) -> Result<&'a InputView<'b>, EngineError> {
    let found = inputs.iter().find(|input| input.index == index);
    found.ok_or_else(|| EngineError::internal(format!("input {index} is missing, please report it")))
}

/// Length of an input's last axis: 1 where it has none.
pub fn last_axis(shape: &[i64]) -> usize {
    shape.last().and_then(|&size| usize::try_from(size).ok()).unwrap_or(1)
}
