//! A model file, the library that runs it and how.

use std::path::{Path, PathBuf};

use ort::session::Session;

use super::check::{Declared, check_against};
use super::graph;
use super::library::{self, Library};
use super::options::SessionOptions;
use super::provider::Provider;
use super::session::OnnxSession;
use super::signature::{self, Signature};
use crate::EngineError;

/// A model that can be loaded as often as it has instances.
#[derive(Debug)]
pub struct OnnxModel {
    library: &'static Library,
    path: PathBuf,
    options: SessionOptions,
    /// Sizes tell how long it takes.
    sizes_tell: bool,
}

impl OnnxModel {
    /// A model at `path`, to be run by the library at `library`; both paths are absolute.
    ///
    /// # Errors
    ///
    /// `Unavailable` where the library is missing, too old or not ONNX Runtime, with what to install; `Internal` where
    /// there is no model file.
    pub fn open(library: &Path, path: &Path, options: SessionOptions) -> Result<OnnxModel, EngineError> {
        let library = library::load(library)?;
        if let Err(error) = path.metadata() {
            let path = path.display();
            return Err(match error.kind() {
                std::io::ErrorKind::NotFound => EngineError::internal(format!("failed to stat file {path}")),
                _ => EngineError::internal(format!("failed to stat file {path}: {error}")),
            });
        }
        Ok(OnnxModel { library, path: path.to_owned(), options, sizes_tell: graph::sizes_tell(path) })
    }

    /// Loads one instance for the processor. Takes as long as reading and optimizing the model does.
    ///
    /// # Errors
    ///
    /// `Internal` with the library's text where it refuses the model, `InvalidArgument` where the model does not fit
    /// its declaration.
    pub fn session(&self, declared: &Declared<'_>) -> Result<OnnxSession, EngineError> {
        self.session_on(declared, &[])
    }

    /// Loads one instance for these providers, the preferred one first; the processor runs what they cannot.
    ///
    /// # Errors
    ///
    /// As for [`OnnxModel::session`]; `Unavailable` where a provider does not start.
    pub fn session_on(&self, declared: &Declared<'_>, providers: &[Provider]) -> Result<OnnxSession, EngineError> {
        let session = self.options.build(self.library, &self.path, providers)?;
        let signature = signature::read(&session)?;
        check_against(&signature, declared)?;
        OnnxSession::new(session, &signature, declared, self.sizes_tell)
    }

    /// The library's session for the processor, held against no declaration, with its signature.
    pub(super) fn read(&self) -> Result<(Session, Signature), EngineError> {
        let session = self.options.build(self.library, &self.path, &[])?;
        let signature = signature::read(&session)?;
        Ok((session, signature))
    }
}
