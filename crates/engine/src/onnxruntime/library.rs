//! The ONNX Runtime library of this process: opened once, from a path that is handed in.

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::sys;
use parking_lot::Mutex;

use crate::EngineError;

/// The library and its environment; they stay until the process ends.
#[derive(Debug)]
pub(super) struct Library {
    path: PathBuf,
    environment: Environment,
}

impl Library {
    /// Where it lies; its providers lie beside it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The library's process-wide state, which every session needs.
    pub(super) fn environment(&self) -> &Environment {
        &self.environment
    }
}

static LOADED: OnceLock<Library> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// The process's library, opened from `path` where none is open yet.
///
/// # Errors
///
/// `Unavailable` where there is no usable library at `path`, or another one is open.
pub(super) fn load(path: &Path) -> Result<&'static Library, EngineError> {
    let _alone = LOADING.lock();
    if let Some(library) = LOADED.get() {
        return if same_file(&library.path, path) { Ok(library) } else { Err(another(library, path)) };
    }
    if !path.is_absolute() {
        return Err(unusable(path, "is not an absolute path"));
    }
    if !path.exists() {
        return Err(unusable(path, "does not exist"));
    }
    probe(path)?;
    let environment = open(path)?;
    Ok(LOADED.get_or_init(|| Library { path: path.to_owned(), environment }))
}

fn same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn another(library: &Library, path: &Path) -> EngineError {
    EngineError::unavailable(format!(
        "this process already runs ONNX Runtime from {}; it cannot also load {}",
        library.path.display(),
        path.display()
    ))
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> EngineError {
    let needed = sys::ORT_API_VERSION;
    EngineError::unavailable(format!(
        "ONNX Runtime cannot be used: {} {why}. Install version 1.{needed} or newer with: pip install onnxruntime",
        path.display()
    ))
}

/// Makes sure that `ort` will find all that it asserts, so that a bad library is an error and not a panic.
fn probe(path: &Path) -> Result<(), EngineError> {
    // SAFETY: opening a library runs its initializers. The path comes from the operator of the server, who names code
    // to execute here on purpose, as with any plugin.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|error| unusable(path, format!("does not load: {error}")))?;
    // SAFETY: every ONNX Runtime since 1.0 exports this function with this signature; another library that exports the
    // name breaks the contract of the path.
    let base = unsafe { library.get::<unsafe extern "C" fn() -> *const sys::OrtApiBase>(b"OrtGetApiBase\0") };
    let base = base.map_err(|_| unusable(path, "is not ONNX Runtime"))?;
    // SAFETY: as above; the function takes nothing and returns static memory or null.
    let base = unsafe { base().as_ref() }.ok_or_else(|| unusable(path, "offers no API"))?;
    check_version(base, path)
}

fn check_version(base: &sys::OrtApiBase, path: &Path) -> Result<(), EngineError> {
    // SAFETY: the table's functions are valid as long as the library is open; this one returns a static C string.
    let version: *const c_char = unsafe { (base.GetVersionString)() };
    let version = if version.is_null() {
        "of an unknown version".into()
    } else {
        // SAFETY: not null, and a static C string as said above.
        unsafe { CStr::from_ptr(version) }.to_string_lossy()
    };
    // SAFETY: any number may be asked for; an API that the library does not have is null.
    let api = unsafe { (base.GetApi)(sys::ORT_API_VERSION) };
    if api.is_null() { Err(unusable(path, format!("is {version}, which is too old"))) } else { Ok(()) }
}

fn open(path: &Path) -> Result<Environment, EngineError> {
    let builder = ort::init_from(path).map_err(|error| unusable(path, format!("does not load: {error}")))?;
    // This switch comes after the environment's first report; the control plane, which hands the path in, sets
    // `ORT_DISABLE_TELEMETRY` in the process's environment, which counts from the start.
    let environment = builder.with_name("alipes").with_telemetry(false).build()?;
    // Every error comes back as a value, and this server reports it once. If the library wrote it to stderr as well, a
    // client that sends bad requests could fill stderr at will.
    environment.set_log_level(LogLevel::Fatal);
    Ok(environment)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    unsafe extern "system" fn no_api(_version: u32) -> *const sys::OrtApi {
        ptr::null()
    }

    unsafe extern "system" fn old_version() -> *const c_char {
        c"1.16.3".as_ptr()
    }

    unsafe extern "system" fn no_version() -> *const c_char {
        ptr::null()
    }

    #[test]
    fn a_library_without_the_api_that_we_need_is_too_old() {
        let base = sys::OrtApiBase { GetApi: no_api, GetVersionString: old_version };
        let error = check_version(&base, Path::new("/lib.so")).unwrap_err();
        assert_eq!(
            error.message,
            "ONNX Runtime cannot be used: /lib.so is 1.16.3, which is too old. Install version 1.17 or newer with: pip \
             install onnxruntime"
        );
        let base = sys::OrtApiBase { GetApi: no_api, GetVersionString: no_version };
        assert!(check_version(&base, Path::new("/lib.so")).unwrap_err().message.contains("is of an unknown version"));
    }
}
