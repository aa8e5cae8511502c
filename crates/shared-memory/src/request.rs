//! What one request uses of its caller's regions: inputs that lie there, and outputs that go there.

use std::sync::Arc;

use alipes_protocol::limits::REGION_MAX_TENSOR_BYTES;
use alipes_protocol::shape::element_count;
use alipes_protocol::{Code, Datatype, InferError, Origin, RegionSlice, Regions as Places, Tensor};
use bytes::Bytes;
use compact_str::CompactString;

use crate::regions::{Lease, Regions};

/// Finds what a request names while it is decoded.
pub struct Finder<'a> {
    regions: &'a Arc<Regions>,
    /// What it has found.
    pub held: Held,
}

/// What a request holds of its caller's regions until it is answered; nothing for nearly every request.
#[derive(Default)]
pub struct Held {
    leases: Vec<Lease>,
    outputs: Vec<Place>,
}

/// Where an output goes.
struct Place {
    output: CompactString,
    lease: Lease,
    offset: usize,
    len: usize,
}

/// A part of a region as the bytes of a tensor.
struct Lent {
    lease: Lease,
    offset: usize,
    len: usize,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: lent are tensors of datatypes that are only reckoned with (`is_only_reckoned_with`), and those that do not
        // have the size of their shape, which the model's checks refuse by their length. Both are moved and handed to
        // engines as they are; nobody reads lengths or indexes in them.
        unsafe { self.lease.region.memory.slice(self.offset, self.len) }
    }
}

impl<'a> Finder<'a> {
    /// Finds what is registered there.
    pub fn new(regions: &'a Arc<Regions>) -> Finder<'a> {
        Finder { regions, held: Held::default() }
    }

    /// The part of a region that a request names, as offset and length.
    fn find(&self, slice: &RegionSlice<'_>) -> Result<(Lease, usize, usize), InferError> {
        let lease = self.regions.lease(slice)?;
        let (offset, len) = part_of(slice, lease.region.memory.len())?;
        if lease.region.memory.is_lost() {
            return Err(lost(&slice.name));
        }
        Ok((lease, offset, len))
    }
}

impl Places for Finder<'_> {
    fn input(&mut self, slice: RegionSlice<'_>, datatype: Datatype, shape: &[i64]) -> Result<Bytes, InferError> {
        let (lease, offset, len) = self.find(&slice)?;
        if len > REGION_MAX_TENSOR_BYTES {
            return Err(too_large(&slice, len));
        }
        self.held.leases.push(lease.clone());
        if is_only_reckoned_with(datatype) || !has_size_of(shape, datatype, len) {
            return Ok(Bytes::from_owner(Lent { lease, offset, len }));
        }
        let copy = lease.region.memory.copy(offset, len);
        if lease.region.memory.is_lost() { Err(lost(&slice.name)) } else { Ok(copy) }
    }

    fn output(&mut self, slice: RegionSlice<'_>, output: &str) -> Result<(), InferError> {
        let (lease, offset, len) = self.find(&slice)?;
        self.held.outputs.push(Place { output: output.into(), lease, offset, len });
        Ok(())
    }
}

impl Held {
    /// Whether the request uses no region.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty() && self.outputs.is_empty()
    }

    /// Ends the use of regions for one response: what belongs into a region is written there, and its tensor keeps no
    /// data. A response of inputs that were cut off meanwhile is none.
    ///
    /// # Errors
    ///
    /// `Internal` for an output that is larger than its place, `InvalidArgument` for a region that was cut off.
    pub fn settle(&self, outputs: &mut [Tensor]) -> Result<(), InferError> {
        if self.is_empty() {
            return Ok(());
        }
        self.check_inputs()?;
        for tensor in outputs {
            if let Some(place) = self.outputs.iter().find(|place| place.output == tensor.name) {
                place.write(tensor)?;
                tensor.data = Bytes::new();
            }
        }
        Ok(())
    }

    /// # Errors
    ///
    /// A region with an input was cut off since the request was read.
    fn check_inputs(&self) -> Result<(), InferError> {
        match self.leases.iter().find(|lease| lease.region.memory.is_lost()) {
            Some(lease) => Err(lost(&lease.region.status.name)),
            None => Ok(()),
        }
    }
}

impl Place {
    fn write(&self, tensor: &Tensor) -> Result<(), InferError> {
        let size = tensor.data.len();
        if size > self.len {
            let text = format!(
                "shared memory size specified with the request for output '{}' ({} bytes) should be at least {size} bytes to \
                 hold the results",
                self.output, self.len
            );
            return Err(InferError::internal(text).at(Origin::Model));
        }
        let memory = &self.lease.region.memory;
        memory.write(self.offset, &tensor.data);
        if memory.is_lost() { Err(lost(&self.lease.region.status.name)) } else { Ok(()) }
    }
}

/// Datatypes that an engine takes as quantities and nothing else. The others may be indexes, conditions, sizes or lengths,
/// which engines check before they use them: a caller who changes them in between could lead an engine astray.
const fn is_only_reckoned_with(datatype: Datatype) -> bool {
    match datatype {
        Datatype::Fp16 | Datatype::Fp32 | Datatype::Fp64 | Datatype::Bf16 => true,
        Datatype::Uint8 | Datatype::Int8 | Datatype::Uint16 | Datatype::Int16 => true,
        Datatype::Uint32 | Datatype::Uint64 | Datatype::Int32 | Datatype::Int64 => false,
        Datatype::Bool | Datatype::Bytes => false,
    }
}

/// Whether so many bytes are a tensor of this shape. Those of `BYTES` are found out by reading them.
fn has_size_of(shape: &[i64], datatype: Datatype, len: usize) -> bool {
    let Some(size) = datatype.size() else { return true };
    element_count(shape).and_then(|count| count.checked_mul(size)) == Some(len)
}

/// Offset and length of a slice, which lies within a region of `region_len` bytes.
fn part_of(slice: &RegionSlice<'_>, region_len: usize) -> Result<(usize, usize), InferError> {
    let RegionSlice { name, offset, byte_size } = slice;
    if usize::try_from(*offset).is_ok_and(|offset| offset < region_len) {
        let Some(end) = offset.checked_add(*byte_size) else {
            return Err(InferError::invalid(format!(
                "Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value ({}) for region \
                 '{name}'",
                u64::MAX
            )));
        };
        if *byte_size == 0 || end > region_len as u64 {
            return Err(InferError::invalid(format!("Invalid offset + byte size for shared memory region: '{name}'")));
        }
        // Both lie below the region's length.
        return Ok((*offset as usize, *byte_size as usize));
    }
    Err(InferError::invalid(format!("Invalid offset for shared memory region: '{name}'")))
}

fn too_large(slice: &RegionSlice<'_>, len: usize) -> InferError {
    let text = format!(
        "an input in shared memory region '{}' has {len} bytes, but at most {REGION_MAX_TENSOR_BYTES} are allowed",
        slice.name
    );
    InferError::new(Code::TooLarge, text)
}

fn lost(name: &str) -> InferError {
    InferError::invalid(format!(
        "shared memory region '{name}' has lost its memory: its object was made shorter while it was registered, or the \
         system has no shared memory left; unregister the region and register it again"
    ))
}
