//! The registry of regions: register, status, unregister, and leases of requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use alipes_protocol::limits::REGION_MAX_NAME_BYTES;
use alipes_protocol::{Code, InferError, RegionSlice};
use parking_lot::Mutex;

use crate::mapping::{Mapping, Unmappable};
use crate::region::{Region, RegionStatus};

/// Prefix of keys that belong to the processes of Triton's Python models, which may run beside this server.
const RESERVED_PREFIX: &str = "triton_python_backend_shm_region_";

/// Most regions that whoever unregisters them unmaps itself.
const UNMAPPED_AT_ONCE: usize = 16;

/// The regions that clients have registered, by name.
pub struct Regions {
    /// Most regions at a time.
    most: usize,
    known: Mutex<BTreeMap<String, Arc<Region>>>,
}

impl Regions {
    /// An empty registry for at most this many regions.
    pub fn new(most: usize) -> Regions {
        Regions { most, known: Mutex::default() }
    }

    /// Maps part of a shared-memory object and registers it under a name.
    ///
    /// # Errors
    ///
    /// The name exists, the key is reserved or unknown, the object is smaller than the part, or the system does not map
    /// it.
    pub fn register(&self, name: &str, key: &str, offset: u64, byte_size: u64) -> Result<(), InferError> {
        check_name(name)?;
        if key.trim_start_matches('/').starts_with(RESERVED_PREFIX) {
            return Err(InferError::invalid(format!(
                "cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved \
                 prefix '{RESERVED_PREFIX}'"
            )));
        }
        let mut known = self.known.lock();
        if known.contains_key(name) {
            let text = format!("shared memory region '{name}' already in manager");
            return Err(InferError::new(Code::AlreadyExists, text));
        }
        if known.len() >= self.most {
            return Err(too_many(name, self.most));
        }
        let memory = Mapping::open(key, offset, byte_size).map_err(|error| unmappable(name, key, &error))?;
        let status = RegionStatus { name: name.to_owned(), key: key.to_owned(), offset, byte_size };
        known.insert(name.to_owned(), Arc::new(Region::new(status, memory)));
        Ok(())
    }

    /// The region with this name, or all regions, sorted by name, where the name is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` for an unknown name.
    pub fn status(&self, name: &str) -> Result<Vec<RegionStatus>, InferError> {
        let known = self.known.lock();
        if name.is_empty() {
            return Ok(known.values().map(|region| region.status.clone()).collect());
        }
        let region = known.get(name).ok_or_else(|| {
            InferError::new(Code::NotFound, format!("Unable to find system shared memory region: '{name}'"))
        })?;
        Ok(vec![region.status.clone()])
    }

    /// Removes the region with this name, or every region where the name is empty. A region that requests use stays,
    /// also for new requests, until none uses it. An unknown name is no error.
    ///
    /// Returns the names of the regions that stay for now.
    pub fn unregister(&self, name: &str) -> Vec<String> {
        let mut known = self.known.lock();
        let (mut gone, mut used) = (Vec::new(), Vec::new());
        known.retain(|other, region| {
            if !(name.is_empty() || other == name) {
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
        // Unmapping takes long, so it happens outside the lock, and that of many regions on another thread.
        if gone.len() > UNMAPPED_AT_ONCE {
            drop(thread::Builder::new().name("alipes-unmap".into()).spawn(move || drop(gone)));
        }
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

/// A lease of a region: the region is neither removed nor unmapped before its last lease ends.
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

fn check_name(name: &str) -> Result<(), InferError> {
    if name.is_empty() {
        return Err(InferError::invalid("'region name' is necessary to register system shared memory region"));
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

fn too_many(name: &str, most: usize) -> InferError {
    let text = format!(
        "failed to register shared memory region '{name}': {most} regions are registered, and no more are allowed; \
         unregister some, or start the server with a larger --shared-memory-max-regions"
    );
    InferError::new(Code::Unavailable, text)
}

fn unmappable(name: &str, key: &str, error: &Unmappable) -> InferError {
    let failed = |text: &str| format!("failed to register shared memory region '{name}': {text}");
    match error {
        Unmappable::Missing => InferError::internal(format!("Unable to open shared memory region: '{key}'")),
        Unmappable::NoObject => InferError::internal(format!("Invalid shared memory region: '{key}'")),
        Unmappable::TooShort => InferError::invalid(failed("invalid args")),
        Unmappable::Refused(cause) => {
            // Without a space, as in Triton.
            InferError::invalid(failed(&format!("unable to process address space{}", errno_text(*cause))))
        }
        Unmappable::Unprotected(cause) => InferError::new(Code::Unavailable, failed(cause)),
    }
}

/// The system's words for an error, as C's `strerror` gives them.
fn errno_text(cause: rustix::io::Errno) -> String {
    let text = std::io::Error::from(cause).to_string();
    text.rsplit_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}
