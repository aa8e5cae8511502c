//! Memory that a caller shares with the server, as far as the codecs know it.
//!
//! A tensor may lie in a region that the caller has registered instead of in the message. A codec reads where the
//! tensor lies; its bytes are the business of the implementation of [`Regions`].

use std::borrow::Cow;

use bytes::Bytes;

use crate::{Code, Datatype, InferError};

/// The part of a region in which a request says that a tensor lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSlice<'a> {
    /// The name that the region was registered under.
    pub name: Cow<'a, str>,
    /// Start within the region in bytes.
    pub offset: u64,
    /// Length in bytes; 0 where the request gave none.
    pub byte_size: u64,
}

impl RegionSlice<'_> {
    /// The answer to a region that nobody registered.
    pub fn unknown(&self) -> InferError {
        InferError::new(Code::NotFound, format!("Unable to find shared memory region: '{}'", self.name))
    }
}

/// The regions that the caller of one request may name.
pub trait Regions {
    /// The bytes of an input that claims this datatype and shape.
    ///
    /// # Errors
    ///
    /// There is no such region, or it has no such part.
    fn input(&mut self, slice: RegionSlice<'_>, datatype: Datatype, shape: &[i64]) -> Result<Bytes, InferError>;

    /// Takes note of where an output goes.
    ///
    /// # Errors
    ///
    /// There is no such region, or it has no such part.
    fn output(&mut self, slice: RegionSlice<'_>, output: &str) -> Result<(), InferError>;
}

/// Nobody has registered a region.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRegions;

impl Regions for NoRegions {
    fn input(&mut self, slice: RegionSlice<'_>, _: Datatype, _: &[i64]) -> Result<Bytes, InferError> {
        Err(slice.unknown())
    }

    fn output(&mut self, slice: RegionSlice<'_>, _: &str) -> Result<(), InferError> {
        Err(slice.unknown())
    }
}
