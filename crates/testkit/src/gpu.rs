//! A stub of a GPU's driver, `tests/support/gpu_stub/cuda.c`, and memory of its devices.

use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::repository_root;

/// The stub's library, compiled once for each process of tests, beside their program. It has two devices.
///
/// # Panics
///
/// If there is no C compiler, or it does not take the stub.
pub fn stub_driver() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = repository_root().join("tests/support/gpu_stub/cuda.c");
        let program = std::env::current_exe().expect("the path of the tests' program");
        let library = program.with_file_name("libalipes_gpu_stub.so");
        // Tests of other processes may load it at this moment: it appears as a whole.
        let new = program.with_file_name(format!("libalipes_gpu_stub.{}.so", process::id()));
        let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-o"];
        let compiled = Command::new("cc").args(flags).arg(&new).arg(&source).status();
        assert!(compiled.expect("a C compiler, cc").success(), "{} compiles", source.display());
        std::fs::rename(&new, &library).expect("the stub's library");
        library
    })
}

/// An allocation on a device of the stub, as of another process; gone at the end of the test.
pub struct StubMemory {
    device: i32,
    name: String,
}

impl StubMemory {
    /// Memory with this content.
    pub fn new(device: i32, content: &[u8]) -> StubMemory {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("alipes_stub_{}_{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let memory = StubMemory { device, name };
        memory.write(content);
        memory.set(".open", true);
        memory
    }

    /// Its handle, as another process would send it.
    pub fn handle(&self) -> [u8; 64] {
        let mut handle = [0; 64];
        handle[..8].copy_from_slice(b"GPUSTUB\0");
        handle[8..12].copy_from_slice(&self.device.to_ne_bytes());
        handle[12..12 + self.name.len()].copy_from_slice(self.name.as_bytes());
        handle
    }

    /// Its bytes.
    pub fn read(&self) -> Vec<u8> {
        std::fs::read(self.path("")).expect("memory of the stub")
    }

    /// Replaces all of its bytes.
    pub fn write(&self, content: &[u8]) {
        std::fs::write(self.path(""), content).expect("memory of the stub");
    }

    /// Lets copies of it fail, or succeed again.
    pub fn set_broken(&self, broken: bool) {
        self.set(".broken", broken);
    }

    /// How often it is open now.
    pub fn opens(&self) -> usize {
        let text = std::fs::read_to_string(self.path(".open")).expect("a count of the stub");
        text.parse().unwrap_or(0)
    }

    fn set(&self, suffix: &str, there: bool) {
        let path = self.path(suffix);
        if there {
            std::fs::write(path, b"").expect("a mark for the stub");
        } else {
            std::fs::remove_file(path).expect("a mark for the stub");
        }
    }

    fn path(&self, suffix: &str) -> PathBuf {
        Path::new("/dev/shm").join(format!("{}{suffix}", self.name))
    }
}

impl Drop for StubMemory {
    fn drop(&mut self) {
        for suffix in ["", ".open", ".broken"] {
            let _ = std::fs::remove_file(self.path(suffix));
        }
    }
}
