//! Tensors in frames: their heads, and where their bytes are.

use alipes_protocol::codec::elements;
use alipes_protocol::limits::MAX_DIMENSIONS;
use alipes_protocol::{Datatype, Shape, shape};

use super::{Malformed, Reader, Writer};
use crate::tensor::{OwnedTensorName, TensorName};

/// Where a tensor's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the frame, counted from its first tensor.
    Frame { offset: u64, len: u64 },
    /// In the request arena.
    Requests { offset: u64, len: u64 },
    /// In the response arena, in a slot of their own that begins there.
    Responses { offset: u64, len: u64 },
}

impl Place {
    pub const fn len(&self) -> u64 {
        let (Place::Frame { len, .. } | Place::Requests { len, .. } | Place::Responses { len, .. }) = self;
        *len
    }
}

/// A tensor without its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub name: OwnedTensorName,
    pub datatype: Datatype,
    pub shape: Shape,
    pub place: Place,
}

pub(crate) fn write(writer: &mut Writer<'_>, name: TensorName<'_>, datatype: Datatype, shape: &[i64], place: Place) {
    match name {
        // The last index stands for "a name follows"; no model has as many tensors.
        TensorName::Index(index) => writer.u16(index.min(TensorName::NAMED - 1)),
        TensorName::Name(name) => {
            writer.u16(TensorName::NAMED);
            writer.text(name);
        }
    }
    writer.u8(datatype as u8);
    writer.count(shape.len());
    shape.iter().for_each(|&size| writer.i64(size));
    let (kind, offset, len) = match place {
        Place::Frame { offset, len } => (0, offset, len),
        Place::Requests { offset, len } => (1, offset, len),
        Place::Responses { offset, len } => (2, offset, len),
    };
    writer.u8(kind);
    writer.u64(offset);
    writer.u64(len);
}

pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Head, Malformed> {
    let name = match reader.u16()? {
        TensorName::NAMED => OwnedTensorName::Name(reader.text()?),
        index => OwnedTensorName::Index(index),
    };
    let datatype = *Datatype::ALL.get(usize::from(reader.u8()?)).ok_or(Malformed("a known datatype"))?;
    let dimensions = reader.u32()? as usize;
    if dimensions > MAX_DIMENSIONS {
        return Err(Malformed("at most 64 dimensions"));
    }
    let shape = (0..dimensions).map(|_| reader.i64()).collect::<Result<Shape, Malformed>>()?;
    let (kind, offset, len) = (reader.u8()?, reader.u64()?, reader.u64()?);
    let place = match kind {
        0 => Place::Frame { offset, len },
        1 => Place::Requests { offset, len },
        2 => Place::Responses { offset, len },
        _ => return Err(Malformed("a place of kind 0 to 2")),
    };
    check_len(datatype, &shape, len)?;
    Ok(Head { name, datatype, shape, place })
}

/// A tensor of elements of one size has as many bytes as its shape says.
fn check_len(datatype: Datatype, sizes: &[i64], len: u64) -> Result<(), Malformed> {
    let count =
        shape::element_count(sizes).ok_or(Malformed("a shape without negative sizes, of at most 2^63 elements"))?;
    match datatype.size() {
        Some(size) if count.checked_mul(size).map(|bytes| bytes as u64) != Some(len) => {
            Err(Malformed("as many bytes as datatype and shape say"))
        }
        _ => Ok(()),
    }
}

/// A tensor of `BYTES` has as many elements as its shape says. The bytes must be private: they are read.
pub(crate) fn check_elements(sizes: &[i64], bytes: &[u8]) -> Result<(), Malformed> {
    let count = elements::count(bytes).map_err(|_| Malformed("whole elements in a tensor of BYTES"))?;
    if shape::element_count(sizes) == Some(count) {
        Ok(())
    } else {
        Err(Malformed("as many elements as the shape says"))
    }
}
