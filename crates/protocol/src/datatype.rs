//! Element types of a tensor, under the names of the V2 protocol.

use std::fmt;
use std::ops::RangeInclusive;

/// The element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the V2 protocol's own")]
pub enum Datatype {
    Bool,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Int8,
    Int16,
    Int32,
    Int64,
    Fp16,
    Fp32,
    Fp64,
    Bytes,
    Bf16,
}

/// A row of the table of datatypes.
#[derive(Clone, Copy, Debug)]
pub struct DatatypeRow {
    /// The datatype that the row describes.
    pub datatype: Datatype,
    /// The name on the wire, for example `FP32`.
    pub name: &'static str,
    /// The name in model configurations, for example `TYPE_FP32`.
    pub config_name: &'static str,
    /// Bytes per element; `None` for `BYTES`, whose elements carry their own length.
    pub size: Option<usize>,
    /// The numpy type, for example `float32`; `None` for `BF16`, which numpy lacks.
    pub numpy_name: Option<&'static str>,
}

/// Every datatype, in the order of the model configuration's enumeration, which counts from 1.
pub const TABLE: [DatatypeRow; 14] = [
    row(Datatype::Bool, "BOOL", "TYPE_BOOL", Some(1), Some("bool")),
    row(Datatype::Uint8, "UINT8", "TYPE_UINT8", Some(1), Some("uint8")),
    row(Datatype::Uint16, "UINT16", "TYPE_UINT16", Some(2), Some("uint16")),
    row(Datatype::Uint32, "UINT32", "TYPE_UINT32", Some(4), Some("uint32")),
    row(Datatype::Uint64, "UINT64", "TYPE_UINT64", Some(8), Some("uint64")),
    row(Datatype::Int8, "INT8", "TYPE_INT8", Some(1), Some("int8")),
    row(Datatype::Int16, "INT16", "TYPE_INT16", Some(2), Some("int16")),
    row(Datatype::Int32, "INT32", "TYPE_INT32", Some(4), Some("int32")),
    row(Datatype::Int64, "INT64", "TYPE_INT64", Some(8), Some("int64")),
    row(Datatype::Fp16, "FP16", "TYPE_FP16", Some(2), Some("float16")),
    row(Datatype::Fp32, "FP32", "TYPE_FP32", Some(4), Some("float32")),
    row(Datatype::Fp64, "FP64", "TYPE_FP64", Some(8), Some("float64")),
    row(Datatype::Bytes, "BYTES", "TYPE_STRING", None, Some("object")),
    row(Datatype::Bf16, "BF16", "TYPE_BF16", Some(2), None),
];

const fn row(
    datatype: Datatype,
    name: &'static str,
    config_name: &'static str,
    size: Option<usize>,
    numpy_name: Option<&'static str>,
) -> DatatypeRow {
    DatatypeRow { datatype, name, config_name, size, numpy_name }
}

impl Datatype {
    /// Every datatype, in the order of the table.
    pub const ALL: [Datatype; TABLE.len()] = {
        let mut all = [Datatype::Bool; TABLE.len()];
        let mut index = 0;
        while index < TABLE.len() {
            all[index] = TABLE[index].datatype;
            index += 1;
        }
        all
    };

    /// The datatype's row of the table.
    pub const fn row(self) -> &'static DatatypeRow {
        &TABLE[self as usize]
    }

    /// The name on the wire, for example `FP32`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The datatype with this wire name.
    pub fn from_name(name: &str) -> Option<Datatype> {
        TABLE.iter().find(|row| row.name == name).map(|row| row.datatype)
    }

    /// Bytes per element; `None` for `BYTES`, whose elements carry their own length.
    pub const fn size(self) -> Option<usize> {
        self.row().size
    }

    /// The whole numbers that an element can be; `None` where elements are no integers.
    pub fn integers(self) -> Option<RangeInclusive<i128>> {
        let bits = 8 * self.size()?;
        match self {
            Datatype::Uint8 | Datatype::Uint16 | Datatype::Uint32 | Datatype::Uint64 => Some(0..=(1 << bits) - 1),
            Datatype::Int8 | Datatype::Int16 | Datatype::Int32 | Datatype::Int64 => {
                Some(-(1 << (bits - 1))..=(1 << (bits - 1)) - 1)
            }
            _ => None,
        }
    }
}

/// Whether FP32 can hold a number: one that is finite stays finite.
pub fn fits_fp32(value: f64) -> bool {
    value.is_infinite() || !(value as f32).is_infinite()
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_datatype() {
        for datatype in Datatype::ALL {
            assert_eq!(datatype.row().datatype, datatype);
            assert_eq!(Datatype::from_name(datatype.name()), Some(datatype));
        }
        assert_eq!(Datatype::from_name("TYPE_FP32"), None);
    }
}
