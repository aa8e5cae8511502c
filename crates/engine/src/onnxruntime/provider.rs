//! Execution providers for GPUs: what a session is given beside the processor, and why one does not start.

use std::mem;
use std::path::{Path, PathBuf};

use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider, ExecutionProvider};
use ort::session::builder::SessionBuilder;

use crate::EngineError;

/// Which execution provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// CUDA.
    Cuda,
    /// TensorRT.
    Tensorrt,
}

/// An execution provider of ONNX Runtime, and its options in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Which one.
    pub kind: ProviderKind,
    /// Name and value of each option, the device's number among them.
    pub options: Vec<(String, String)>,
}

impl Provider {
    /// Gives the provider to a session that is being set up.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where an option holds a zero byte; `Unavailable` where the provider does not start, with what
    /// ONNX Runtime and the system's loader said and what to install.
    pub(super) fn register(&self, builder: &mut SessionBuilder, library: &Path) -> Result<(), EngineError> {
        if let Some((name, _)) = self.options.iter().find(|(name, value)| name.contains('\0') || value.contains('\0')) {
            return Err(EngineError::invalid(format!("option {name:?} of {} holds a zero byte", self.kind.name())));
        }
        let registered = match self.kind {
            ProviderKind::Cuda => self.configured(ep::CUDA::default()).register(builder),
            ProviderKind::Tensorrt => self.configured(ep::TensorRT::default()).register(builder),
        };
        registered.map_err(|error| self.kind.does_not_start(error.message(), library))
    }

    fn configured<P: ArbitrarilyConfigurableExecutionProvider>(&self, provider: P) -> P {
        self.options.iter().fold(provider, |provider, (name, value)| provider.with_arbitrary_config(name, value))
    }
}

impl ProviderKind {
    fn name(self) -> &'static str {
        match self {
            ProviderKind::Cuda => "CUDA",
            ProviderKind::Tensorrt => "TensorRT",
        }
    }

    fn file(self) -> &'static str {
        match self {
            ProviderKind::Cuda => "libonnxruntime_providers_cuda.so",
            ProviderKind::Tensorrt => "libonnxruntime_providers_tensorrt.so",
        }
    }

    fn does_not_start(self, message: &str, library: &Path) -> EngineError {
        let (name, message) = (self.name(), without_place(message));
        let file = library.with_file_name(self.file());
        let more = if self == ProviderKind::Tensorrt { " tensorrt" } else { "" };
        if !file.exists() {
            return EngineError::unavailable(format!(
                "the installed ONNX Runtime has no {name} provider ({message}): replace it with pip uninstall \
                 onnxruntime and pip install 'onnxruntime-gpu[cuda,cudnn]'{more}, or set the kind of the instance \
                 group to KIND_CPU"
            ));
        }
        let loader = why_it_does_not_load(&file).filter(|why| !message.contains(why.as_str()));
        let loader = loader.map(|why| format!(" ({why})")).unwrap_or_default();
        EngineError::unavailable(format!(
            "ONNX Runtime's {name} provider does not start: {message}{loader}; check its parameters, NVIDIA's driver \
             and the libraries of pip install 'onnxruntime-gpu[cuda,cudnn]'{more}, or set the kind of the instance \
             group to KIND_CPU"
        ))
    }
}

/// What ONNX Runtime says, without the place in its source.
fn without_place(message: &str) -> &str {
    message.rsplit_once(" : FAIL : ").map_or(message, |(_, text)| text).trim_end().trim_end_matches('.')
}

/// What the system's loader says of a library, if it refuses it: releases of ONNX Runtime before 1.31 write that into
/// their log alone.
fn why_it_does_not_load(file: &Path) -> Option<String> {
    // SAFETY: ONNX Runtime has just tried to open this file, a part of its own wheel, in the same way. Where that has
    // worked the file is open already, and no initializer runs again.
    let opened = unsafe { libloading::Library::new(file) };
    let error = opened.err()?;
    let text = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
    Some(text)
}

/// Opens what providers need, in this order and before a session uses them: they find it by its name then, wherever it
/// lies. What does not open is left out: the provider that needs it says so.
///
/// Source: `onnxruntime.preload_dlls`, which does the same for programs in Python.
pub fn open_libraries(files: &[PathBuf]) {
    for file in files.iter().filter(|file| file.is_absolute()) {
        // SAFETY: opening a library runs its initializers. The files are those of packages that the operator of the
        // server has installed beside ONNX Runtime for this purpose.
        if let Ok(library) = unsafe { libloading::Library::new(file) } {
            // Left open: the provider finds only libraries that are open by then.
            mem::forget(library);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_wheel_without_the_provider_names_the_one_that_has_it() {
        let error = ProviderKind::Cuda.does_not_start("it is not enabled", Path::new("/nowhere/libonnxruntime.so"));
        assert!(error.message.contains("has no CUDA provider (it is not enabled)"), "{}", error.message);
        assert!(error.message.contains("pip install 'onnxruntime-gpu[cuda,cudnn]'"), "{}", error.message);
    }

    #[allow(clippy::disallowed_methods, reason = "tests may write files")]
    #[test]
    fn a_provider_that_does_not_load_gives_the_reason_of_the_loader() {
        let folder = std::env::temp_dir().join(format!("alipes-provider-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(ProviderKind::Tensorrt.file()), b"no library").unwrap();
        let error = ProviderKind::Tensorrt.does_not_start("failed", &folder.join("libonnxruntime.so"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(error.message.starts_with("ONNX Runtime's TensorRT provider does not start: failed ("));
        assert!(error.message.contains("'onnxruntime-gpu[cuda,cudnn]' tensorrt,"), "{}", error.message);
    }

    #[test]
    fn the_place_in_the_source_of_onnx_runtime_is_left_out() {
        let text = "/src/bridge.cc:43 Get() [ONNXRuntimeError] : 1 : FAIL : Failed to load library x with error: y\n";
        assert_eq!(without_place(text), "Failed to load library x with error: y");
        assert_eq!(without_place("it is not enabled in this build."), "it is not enabled in this build");
    }

    #[test]
    fn libraries_that_do_not_open_are_left_out() {
        open_libraries(&[PathBuf::from("/nowhere/libcudart.so.13"), PathBuf::from("libm.so.6")]);
    }
}
