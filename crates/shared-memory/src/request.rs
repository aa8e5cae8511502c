//! Regions in one request: inputs that lie in them, and outputs that go to them.

use std::sync::Arc;

use alipes_protocol::limits::REGION_MAX_TENSOR_BYTES;
use alipes_protocol::shape::element_count;
use alipes_protocol::{Code, Datatype, InferError, Origin, RegionSlice, Regions as Places, Tensor};
use bytes::Bytes;
use compact_str::CompactString;

use crate::regions::{Lease, Regions};

/// Makes room for so many bytes that are about to be copied from a region, or refuses.
pub type Room<'a> = dyn Fn(usize) -> Result<(), InferError> + 'a;

/// Resolves the regions that a request names, while it is decoded.
pub struct Finder<'a> {
    regions: &'a Arc<Regions>,
    room: &'a Room<'a>,
    /// The leases and output places so far.
    pub held: Held,
}

/// The leases and output places of a request until its response; empty for nearly every request.
#[derive(Default)]
pub struct Held {
    leases: Vec<Lease>,
    outputs: Vec<Place>,
    /// Bytes of inputs that stay where they are.
    lent_bytes: usize,
    /// Bytes of inputs that were copied from GPUs.
    device_bytes: usize,
}

/// The place of an output.
struct Place {
    output: CompactString,
    lease: Lease,
    offset: usize,
    len: usize,
}

/// Part of a region as the bytes of a tensor, in place.
struct Lent {
    lease: Lease,
    offset: usize,
    len: usize,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // Memory of a GPU is never lent.
        let Some(mapping) = self.lease.region.memory.mapping() else { return &[] };
        // SAFETY: a tensor stays in place if its datatype is only a quantity (`is_quantity`), or if its length does not
        // fit its shape, so that the model's checks refuse it by length. Both are only moved and passed to engines; no
        // code reads lengths or indexes in them.
        unsafe { mapping.slice(self.offset, self.len) }
    }
}

impl<'a> Finder<'a> {
    /// A finder in these regions, which asks for room before it copies.
    pub fn new(regions: &'a Arc<Regions>, room: &'a Room<'a>) -> Finder<'a> {
        Finder { regions, room, held: Held::default() }
    }

    /// The lease, offset and length of the slice that a request names.
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
        if lease.region.memory.is_on_device() {
            self.held.count_device_bytes(&slice, len)?;
        }
        self.held.leases.push(lease.clone());
        let is_lent = is_quantity(datatype) || !has_size_of(shape, datatype, len);
        if is_lent && !lease.region.memory.is_on_device() {
            self.held.lent_bytes += len;
            return Ok(Bytes::from_owner(Lent { lease, offset, len }));
        }
        (self.room)(len)?;
        let copy = lease.region.memory.copy(&slice.name, offset, len)?;
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

    /// Bytes of inputs that stay in the regions of their caller, so that they take no memory of the server.
    pub fn lent_bytes(&self) -> usize {
        self.lent_bytes
    }

    /// Whether writing the outputs may take long, whatever their size, because they go to a GPU.
    pub fn may_wait(&self) -> bool {
        self.outputs.iter().any(|place| place.lease.region.memory.is_on_device())
    }

    /// # Errors
    ///
    /// `TooLarge` where the inputs on GPUs have too many bytes together: a request of a few words could otherwise name
    /// the same memory again and again.
    pub(crate) fn count_device_bytes(&mut self, slice: &RegionSlice<'_>, len: usize) -> Result<(), InferError> {
        let bytes = self.device_bytes + len;
        if bytes > REGION_MAX_TENSOR_BYTES {
            let text = format!(
                "with the input in shared memory region '{}' the inputs on GPUs have {bytes} bytes, but at most \
                 {REGION_MAX_TENSOR_BYTES} are allowed in one request",
                slice.name
            );
            return Err(InferError::new(Code::TooLarge, text));
        }
        self.device_bytes = bytes;
        Ok(())
    }

    /// Writes the outputs of one response to their regions and empties their tensors. Fails if memory of an input was
    /// cut off meanwhile.
    ///
    /// # Errors
    ///
    /// `Internal` for an output that is larger than its place, and for a GPU that does not copy; `InvalidArgument` for
    /// a region that was cut off.
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
    /// The memory of an input was cut off since the request was decoded.
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
                "shared memory size specified with the request for output '{}' ({} bytes) should be at least {size} \
                 bytes to hold the results",
                self.output, self.len
            );
            return Err(InferError::internal(text).at(Origin::Model));
        }
        let memory = &self.lease.region.memory;
        let name = &self.lease.region.status.name;
        memory.write(name, self.offset, &tensor.data)?;
        if memory.is_lost() { Err(lost(name)) } else { Ok(()) }
    }
}

/// Whether engines use elements of this datatype only as quantities. The others may be indexes, conditions, sizes or
/// lengths, which engines check before use: a client that changes them in between could cause an access out of bounds.
const fn is_quantity(datatype: Datatype) -> bool {
    match datatype {
        Datatype::Fp16 | Datatype::Fp32 | Datatype::Fp64 | Datatype::Bf16 => true,
        Datatype::Uint8 | Datatype::Int8 | Datatype::Uint16 | Datatype::Int16 => true,
        Datatype::Uint32 | Datatype::Uint64 | Datatype::Int32 | Datatype::Int64 => false,
        Datatype::Bool | Datatype::Bytes => false,
    }
}

/// Whether `len` bytes fit a tensor of this shape. For `BYTES` only reading them can tell.
fn has_size_of(shape: &[i64], datatype: Datatype, len: usize) -> bool {
    let Some(size) = datatype.size() else { return true };
    element_count(shape).and_then(|count| count.checked_mul(size)) == Some(len)
}

/// Offset and length of a slice, checked against a region of `region_len` bytes.
fn part_of(slice: &RegionSlice<'_>, region_len: usize) -> Result<(usize, usize), InferError> {
    let RegionSlice { name, offset, byte_size } = slice;
    if usize::try_from(*offset).is_ok_and(|offset| offset < region_len) {
        let Some(end) = offset.checked_add(*byte_size) else {
            return Err(InferError::invalid(format!(
                "Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value ({}) for \
                 region '{name}'",
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
        "shared memory region '{name}' has lost its memory: its object was made shorter while it was registered, or \
         the system has no shared memory left; unregister the region and register it again"
    ))
}
