//! Regions of shared memory: what clients register, ask for and take away.

use std::sync::Arc;

use alipes_protocol::{Code, InferError};
use alipes_shared_memory::{MemoryKind, RegionStatus};
use alipes_spec::log::VERBOSE;
use alipes_stats::events::Event;

use super::Service;
use super::offload::offload;

/// Triton's words for a server whose flags do not allow shared memory.
const DISABLED: &str = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";

impl Service {
    /// Maps a part of a client's shared-memory object under a name.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may; else why it cannot be done.
    pub fn register_region(&self, name: &str, key: &str, offset: u64, byte_size: u64) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        self.regions.register(name, key, offset, byte_size)
    }

    /// The region of system memory with this name, or all where it is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` for a name that is not registered.
    pub fn region_status(&self, name: &str) -> Result<Vec<RegionStatus>, InferError> {
        self.regions.status(name, MemoryKind::System)
    }

    /// Takes the region of system memory with this name away once no request uses it, or every such region where the
    /// name is empty.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may.
    pub fn unregister_region(&self, name: &str) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        self.report_used(self.regions.unregister(name, MemoryKind::System));
        Ok(())
    }

    /// Whether memory of a GPU may be registered under a name, as far as that can be told before its handle is known.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may, `InvalidArgument` without a name or a GPU.
    pub async fn check_cuda_region(&self, name: &str) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        let (regions, name) = (Arc::clone(&self.regions), name.to_owned());
        // The first look for a GPU loads its driver.
        beside(move || regions.check_cuda(&name)).await
    }

    /// Opens memory that a client has allocated on a GPU, by its handle, and registers it under a name.
    ///
    /// # Errors
    ///
    /// As for `check_cuda_region`; else why it cannot be done.
    pub async fn register_cuda_region(
        &self,
        name: &str,
        handle: &[u8],
        device_id: i64,
        byte_size: u64,
    ) -> Result<(), InferError> {
        self.check_cuda_region(name).await?;
        let handle = handle.try_into().map_err(|_| wrong_handle(name, handle.len()))?;
        let (regions, name) = (Arc::clone(&self.regions), name.to_owned());
        beside(move || regions.register_cuda(&name, handle, device_id, byte_size)).await
    }

    /// The region of a GPU with this name, or all where it is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` for a name that is not registered.
    pub fn cuda_region_status(&self, name: &str) -> Result<Vec<RegionStatus>, InferError> {
        self.regions.status(name, MemoryKind::Cuda)
    }

    /// Takes the region of a GPU with this name away once no request uses it, or every such region where the name is
    /// empty; one that nobody uses is closed when this returns.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may.
    pub async fn unregister_cuda_region(&self, name: &str) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        let (regions, name) = (Arc::clone(&self.regions), name.to_owned());
        let used = beside(move || Ok(regions.unregister(&name, MemoryKind::Cuda))).await?;
        self.report_used(used);
        Ok(())
    }

    /// Notes regions that stay registered until their requests have ended, where the log is verbose.
    fn report_used(&self, names: Vec<String>) {
        for used in names {
            if self.log.is_verbose() {
                // Source: Triton's text.
                let text =
                    format!("Shared memory region '{used}' will be unregistered after in-flight requests complete.");
                self.events.push(Event::Notice { level: VERBOSE, text });
            }
        }
    }

    fn check_regions_allowed(&self) -> Result<(), InferError> {
        if self.config.allow_client_shm { Ok(()) } else { Err(InferError::new(Code::Unsupported, DISABLED)) }
    }
}

/// Does what waits for a GPU beside the network threads.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, InferError> + Send + 'static,
) -> Result<T, InferError> {
    let done = Box::pin(offload(work)).await;
    done.unwrap_or_else(|| Err(InferError::internal("the GPU's driver could not be asked")))
}

fn wrong_handle(name: &str, bytes: usize) -> InferError {
    InferError::invalid(format!(
        "failed to register CUDA shared memory region '{name}': 'raw_handle' has {bytes} bytes, but a \
         cudaIpcMemHandle_t has 64"
    ))
}
