//! How a session is set up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ort::ep;
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};

use super::library::Library;
use super::provider::Provider;
use crate::EngineError;

/// Whether independent branches of a graph run one after the other or side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionMode {
    /// One operator at a time.
    Sequential,
    /// Independent operators on the inter-op threads.
    Parallel,
}

/// How far the graph is rewritten at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphOptimization {
    /// Not at all.
    Disable,
    /// Redundant nodes go, constants are folded.
    Basic,
    /// Also operators are fused.
    Extended,
    /// Also the memory layout changes.
    All,
}

impl GraphOptimization {
    fn level(self) -> GraphOptimizationLevel {
        match self {
            GraphOptimization::Disable => GraphOptimizationLevel::Disable,
            GraphOptimization::Basic => GraphOptimizationLevel::Level1,
            GraphOptimization::Extended => GraphOptimizationLevel::Level2,
            GraphOptimization::All => GraphOptimizationLevel::All,
        }
    }
}

/// Options of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads within an operator; 1 means the calling thread alone, 0 leaves the number to the library.
    pub intra_op_threads: u32,
    /// Threads across operators, used by parallel execution only; 0 leaves the number to the library.
    pub inter_op_threads: u32,
    /// Whether independent operators run side by side.
    pub execution_mode: ExecutionMode,
    /// How far the graph is rewritten at load.
    pub graph_optimization: GraphOptimization,
    /// The library's own session entries, name and value; they win over what alipes sets.
    pub session_config: Vec<(String, String)>,
    /// Whether the session keeps freed memory for its next execution.
    pub memory_arena: bool,
}

impl Default for SessionOptions {
    /// The calling thread alone, every optimization, an arena.
    fn default() -> SessionOptions {
        SessionOptions {
            intra_op_threads: 1,
            inter_op_threads: 1,
            execution_mode: ExecutionMode::Sequential,
            graph_optimization: GraphOptimization::All,
            session_config: Vec::new(),
            memory_arena: true,
        }
    }
}

/// A thread that spins while it waits takes a core from the network and from other models.
const QUIET: [(&str, &str); 2] = [("session.intra_op.allow_spinning", "0"), ("session.inter_op.allow_spinning", "0")];

impl SessionOptions {
    /// Options for a session that is only asked what it takes and gives.
    pub(super) fn for_reading() -> SessionOptions {
        SessionOptions {
            graph_optimization: GraphOptimization::Disable,
            memory_arena: false,
            ..SessionOptions::default()
        }
    }

    /// Loads the model at `path`, to be run by these providers where they can, the first before the others, and by the
    /// processor.
    pub(super) fn build(&self, library: &Library, path: &Path, providers: &[Provider]) -> Result<Session, EngineError> {
        let mut builder = self.builder(library, providers)?;
        // `ort` asserts that it knows each kind of value that a model may have; a newer library may know another one.
        let built = catch_unwind(AssertUnwindSafe(|| builder.commit_from_file(path)));
        let built = built.map_err(|_| EngineError::internal("the model has an input or output of an unknown kind"))?;
        Ok(built?)
    }

    fn builder(&self, library: &Library, providers: &[Provider]) -> Result<SessionBuilder, EngineError> {
        let mut builder = self.threaded(library)?;
        for provider in providers {
            provider.register(&mut builder, library.path())?;
        }
        Ok(self.configured(builder)?)
    }

    fn threaded(&self, library: &Library) -> Result<SessionBuilder, ort::Error> {
        Ok(Session::builder(library.environment())?
            .with_intra_threads(self.intra_op_threads as usize)?
            .with_inter_threads(self.inter_op_threads as usize)?
            .with_parallel_execution(self.execution_mode == ExecutionMode::Parallel)?
            .with_optimization_level(self.graph_optimization.level())?)
    }

    fn configured(&self, builder: SessionBuilder) -> Result<SessionBuilder, ort::Error> {
        let mut builder =
            builder.with_execution_providers([ep::CPU::default().with_arena_allocator(self.memory_arena).build()])?;
        let configured = self.session_config.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let ours = QUIET.into_iter().filter(|(key, _)| self.session_config.iter().all(|(other, _)| other != key));
        for (key, value) in configured.chain(ours) {
            builder = builder.with_config_entry(key, value)?;
        }
        Ok(builder)
    }
}

#[cfg(test)]
mod tests {
    use ort::{AsPointer, ortsys};

    use super::super::library;
    use super::*;

    /// What the library holds for an entry of a session that is set up with these options.
    fn entry(options: &SessionOptions, key: &std::ffi::CStr) -> String {
        let library = alipes_testkit::onnxruntime_library();
        let builder = options.builder(library::load(Path::new(&library)).unwrap(), &[]).unwrap();
        let mut value = [0_u8; 16];
        let mut len = value.len();
        // SAFETY: the builder is valid, and the library writes at most `len` bytes and how many.
        ortsys![unsafe GetSessionConfigEntry(builder.ptr(), key.as_ptr(), value.as_mut_ptr().cast(), &mut len).expect("reads")];
        String::from_utf8(value[..len - 1].to_vec()).unwrap()
    }

    #[test]
    fn threads_do_not_spin_unless_the_model_says_so() {
        let mut options = SessionOptions::default();
        assert_eq!(entry(&options, c"session.intra_op.allow_spinning"), "0");
        options.session_config.push(("session.intra_op.allow_spinning".into(), "1".into()));
        assert_eq!(entry(&options, c"session.intra_op.allow_spinning"), "1");
        assert_eq!(entry(&options, c"session.inter_op.allow_spinning"), "0");
    }
}
