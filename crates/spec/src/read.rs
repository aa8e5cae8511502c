//! Values that documents give by a number or a name: schemas, datatypes, releases.

use alipes_protocol::{Datatype, TritonRelease};
use serde::{Deserialize, Deserializer, de::Error};

/// Schema of the JSON documents that this build reads.
pub const SCHEMA: u32 = 1;

/// Reads a schema number; any other than [`SCHEMA`] is an error.
pub(crate) fn known_schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let schema = u32::deserialize(deserializer)?;
    if schema == SCHEMA {
        Ok(schema)
    } else {
        Err(D::Error::custom(format!("schema {schema} is not the {SCHEMA} that this build understands")))
    }
}

/// Reads a datatype by its V2 name.
pub(crate) fn datatype<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Datatype, D::Error> {
    let name = String::deserialize(deserializer)?;
    Datatype::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown datatype '{name}'")))
}

/// Reads a release of Triton by its name, such as `2.51`.
pub(crate) fn triton_release<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TritonRelease, D::Error> {
    let name = String::deserialize(deserializer)?;
    TritonRelease::from_name(&name).ok_or_else(|| D::Error::custom(format!("unknown release of Triton '{name}'")))
}
