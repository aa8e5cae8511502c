//! The registry of regions: register, status, unregister, and leases of requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use alipes_cuda::{DeviceMemory, Driver, HANDLE_BYTES};
use alipes_protocol::limits::REGION_MAX_NAME_BYTES;
use alipes_protocol::{Code, InferError, RegionSlice};
use parking_lot::Mutex;

use crate::mapping::Mapping;
use crate::memory::{Memory, OnDevice};
use crate::messages;
use crate::region::{Location, MemoryKind, Region, RegionStatus};

/// Prefix of keys that belong to the processes of Triton's Python models, which may run beside this server.
const RESERVED_PREFIX: &str = "triton_python_backend_shm_region_";

/// Most regions that the thread which unregisters them unmaps itself.
const UNMAPPED_AT_ONCE: usize = 16;

/// The parameter with which a tensor names its region.
const REGION_PARAMETER: &[u8] = b"shared_memory_region";

/// The regions that clients have registered, by name.
pub struct Regions {
    /// Most regions at a time, of both kinds together.
    most: usize,
    known: Mutex<BTreeMap<String, Arc<Region>>>,
    /// Whether memory of a GPU was ever registered.
    has_device: AtomicBool,
}

impl Regions {
    /// An empty registry for at most this many regions.
    pub fn new(most: usize) -> Regions {
        Regions { most, known: Mutex::default(), has_device: AtomicBool::new(false) }
    }

    /// Maps part of a shared-memory object and registers it under a name.
    ///
    /// # Errors
    ///
    /// The name exists, the key is reserved or unknown, the object is smaller than the part, or the system does not map
    /// it.
    pub fn register(&self, name: &str, key: &str, offset: u64, byte_size: u64) -> Result<(), InferError> {
        check_name(name, MemoryKind::System)?;
        if key.trim_start_matches('/').starts_with(RESERVED_PREFIX) {
            return Err(InferError::invalid(format!(
                "cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved \
                 prefix '{RESERVED_PREFIX}'"
            )));
        }
        self.check_vacant(&self.known.lock(), name)?;
        let memory = Mapping::open(key, offset, byte_size).map_err(|error| messages::unmappable(name, key, &error))?;
        let location = Location::Object { key: key.to_owned(), offset };
        self.add(RegionStatus { name: name.to_owned(), location, byte_size }, Memory::Mapped(memory))
    }

    /// Whether memory of a GPU can be registered under a name, as far as that can be told without it. May take long.
    ///
    /// # Errors
    ///
    /// No name, or there is no GPU.
    pub fn check_cuda(&self, name: &str) -> Result<(), InferError> {
        if name.is_empty() {
            return Err(messages::unnamed(MemoryKind::Cuda));
        }
        alipes_cuda::driver().map(drop).ok_or_else(|| messages::no_gpus(name))
    }

    /// Opens the first bytes of another process's allocation on a GPU and registers them under a name. May take long.
    ///
    /// # Errors
    ///
    /// As for `check_cuda`; the name exists, or the driver does not open the memory.
    pub fn register_cuda(
        &self,
        name: &str,
        handle: [u8; HANDLE_BYTES],
        device_id: i64,
        byte_size: u64,
    ) -> Result<(), InferError> {
        check_name(name, MemoryKind::Cuda)?;
        let driver = alipes_cuda::driver().ok_or_else(|| messages::no_gpus(name))?;
        self.register_on(driver, name, handle, device_id, byte_size)
    }

    /// Opens the memory with this driver and registers it under a name.
    pub(crate) fn register_on(
        &self,
        driver: &'static Driver,
        name: &str,
        handle: [u8; HANDLE_BYTES],
        device_id: i64,
        byte_size: u64,
    ) -> Result<(), InferError> {
        self.check_vacant(&self.known.lock(), name)?;
        // Without the lock, for which requests wait.
        let memory = DeviceMemory::open(driver, handle, device_id, byte_size);
        let memory = memory.map_err(|error| messages::unopened(name, &error))?;
        // Devices that exist have a number from 0 on.
        let location = Location::Device { id: device_id.unsigned_abs() };
        self.has_device.store(true, Ordering::Release);
        let memory = Memory::Device(OnDevice::new(memory));
        self.add(RegionStatus { name: name.to_owned(), location, byte_size }, memory)
    }

    fn add(&self, status: RegionStatus, memory: Memory) -> Result<(), InferError> {
        let region = Arc::new(Region::new(status, memory));
        let mut known = self.known.lock();
        // Another client may have taken the name, or the last place, since it was looked at.
        self.check_vacant(&known, &region.status.name)?;
        known.insert(region.status.name.clone(), region);
        Ok(())
    }

    fn check_vacant(&self, known: &BTreeMap<String, Arc<Region>>, name: &str) -> Result<(), InferError> {
        if known.contains_key(name) {
            return Err(messages::exists(name));
        }
        if known.len() >= self.most { Err(messages::too_many(name, self.most)) } else { Ok(()) }
    }

    /// Whether decoding a request may take long whatever its size: memory of a GPU is registered, and the request names
    /// a region, or may name one behind an escape of JSON.
    pub fn may_wait(&self, request: &[u8]) -> bool {
        let names_region =
            |request: &[u8]| request.windows(REGION_PARAMETER.len()).any(|part| part == REGION_PARAMETER);
        self.has_device.load(Ordering::Acquire) && (request.contains(&b'\\') || names_region(request))
    }

    /// The region of a kind with this name, or all regions of the kind, sorted by name, where the name is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown name, and for one of the other kind.
    pub fn status(&self, name: &str, kind: MemoryKind) -> Result<Vec<RegionStatus>, InferError> {
        let known = self.known.lock();
        if name.is_empty() {
            let of_kind = known.values().filter(|region| region.status.kind() == kind);
            return Ok(of_kind.map(|region| region.status.clone()).collect());
        }
        let region = known.get(name).ok_or_else(|| messages::unknown(name, kind))?;
        if region.status.kind() != kind {
            return Err(messages::other_kind(name, kind));
        }
        Ok(vec![region.status.clone()])
    }

    /// Removes the region of a kind with this name, or every region of the kind where the name is empty. A region that
    /// requests use stays, also for new requests, until none uses it. An unknown name is no error.
    ///
    /// Where memory of a GPU is closed, this may take long, and returns afterwards: its process may free it then.
    ///
    /// Returns the names of the regions that stay for now.
    pub fn unregister(&self, name: &str, kind: MemoryKind) -> Vec<String> {
        let mut known = self.known.lock();
        let (mut gone, mut used) = (Vec::new(), Vec::new());
        known.retain(|other, region| {
            if region.status.kind() != kind || !(name.is_empty() || other == name) {
                return true;
            }
            let keep = region.leave();
            if keep {
                used.push(other.clone());
            } else {
                gone.push(Arc::clone(region));
            }
            keep
        });
        drop(known);
        close(gone, kind);
        used
    }

    /// A lease of the region that a request names.
    pub(crate) fn lease(self: &Arc<Self>, slice: &RegionSlice<'_>) -> Result<Lease, InferError> {
        let known = self.known.lock();
        let region = known.get(&*slice.name).ok_or_else(|| slice.unknown())?;
        region.uses.fetch_add(1, Ordering::SeqCst);
        Ok(Lease { region: Arc::clone(region), home: Arc::clone(self) })
    }

    /// Removes an unregistered region after its last lease, unless a new lease exists.
    fn forget(&self, region: &Arc<Region>) {
        let mut known = self.known.lock();
        let name = region.status.name.as_str();
        let same = known.get(name).is_some_and(|other| Arc::ptr_eq(other, region));
        if same && region.is_unused() {
            known.remove(name);
        }
    }
}

/// Lets go of the memory of regions that nobody uses, outside the lock, since it takes long: here, or on another thread
/// where that is no network thread's work.
fn close(gone: Vec<Arc<Region>>, kind: MemoryKind) {
    if kind == MemoryKind::Cuda {
        // A lease that has just ended may still have its share: then its thread has the memory closed.
        for region in gone.into_iter().filter_map(Arc::into_inner) {
            if let Memory::Device(device) = region.memory {
                device.close();
            }
        }
    } else if gone.len() > UNMAPPED_AT_ONCE {
        drop(thread::Builder::new().name("alipes-unmap".into()).spawn(move || drop(gone)));
    }
}

/// A lease of a region: the region is neither removed nor closed before its last lease ends.
pub(crate) struct Lease {
    pub region: Arc<Region>,
    home: Arc<Regions>,
}

impl Clone for Lease {
    fn clone(&self) -> Lease {
        self.region.uses.fetch_add(1, Ordering::SeqCst);
        Lease { region: Arc::clone(&self.region), home: Arc::clone(&self.home) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Either this sees that the region was unregistered, or `unregister` sees that it is unused.
        let uses = self.region.uses.fetch_sub(1, Ordering::SeqCst);
        if uses == 1 && self.region.leaving.load(Ordering::SeqCst) {
            self.home.forget(&self.region);
        }
    }
}

fn check_name(name: &str, kind: MemoryKind) -> Result<(), InferError> {
    if name.is_empty() {
        return Err(messages::unnamed(kind));
    }
    if name.len() > REGION_MAX_NAME_BYTES {
        let text = format!(
            "the name of a shared memory region has {} bytes, but at most {REGION_MAX_NAME_BYTES} are allowed",
            name.len()
        );
        return Err(InferError::new(Code::TooLarge, text));
    }
    Ok(())
}
