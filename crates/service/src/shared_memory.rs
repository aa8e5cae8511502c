//! Regions of shared memory: what clients register, ask for and take away.

use alipes_protocol::{Code, InferError};
use alipes_shared_memory::RegionStatus;
use alipes_spec::log::VERBOSE;
use alipes_stats::events::Event;

use super::Service;

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

    /// The region with this name, or all where it is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` for a name that is not registered.
    pub fn region_status(&self, name: &str) -> Result<Vec<RegionStatus>, InferError> {
        self.regions.status(name)
    }

    /// Takes the region with this name away once no request uses it, or every region where the name is empty.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may.
    pub fn unregister_region(&self, name: &str) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        for used in self.regions.unregister(name) {
            if self.log.is_verbose() {
                // Source: Triton's text.
                let text =
                    format!("Shared memory region '{used}' will be unregistered after in-flight requests complete.");
                self.events.push(Event::Notice { level: VERBOSE, text });
            }
        }
        Ok(())
    }

    /// The answer to memory of a GPU, of which there is none here.
    ///
    /// # Errors
    ///
    /// Always.
    pub fn register_cuda_region(&self, name: &str) -> Result<(), InferError> {
        self.check_regions_allowed()?;
        if name.is_empty() {
            return Err(InferError::invalid("'region name' is necessary to register cuda shared memory region"));
        }
        let text = format!("failed to register CUDA shared memory region: '{name}', GPUs not supported");
        Err(InferError::invalid(text))
    }

    /// There are no regions of a GPU, so only the question for all of them has an answer.
    ///
    /// # Errors
    ///
    /// `NotFound` for any name.
    pub fn cuda_region_status(&self, name: &str) -> Result<(), InferError> {
        if name.is_empty() {
            return Ok(());
        }
        let text = match self.regions.status(name) {
            Ok(_) => format!("The region named '{name}' is registered as system shared memory, not CUDA shared memory"),
            Err(_) => format!("Unable to find cuda shared memory region: '{name}'"),
        };
        Err(InferError::new(Code::NotFound, text))
    }

    /// Takes away a region of a GPU, or all: there is none, and a name that is not registered is no error.
    ///
    /// # Errors
    ///
    /// `Unsupported` unless clients may.
    pub fn unregister_cuda_region(&self) -> Result<(), InferError> {
        self.check_regions_allowed()
    }

    fn check_regions_allowed(&self) -> Result<(), InferError> {
        if self.config.allow_client_shm { Ok(()) } else { Err(InferError::new(Code::Unsupported, DISABLED)) }
    }
}
