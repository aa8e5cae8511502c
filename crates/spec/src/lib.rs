//! Documents of the control plane: the server's configuration and the specification of each model version.
//!
//! Both arrive once, as JSON with a schema number. Python validates them, where messages can name file and line; this
//! crate refuses unknown fields, so that the two sides cannot drift apart. Settings that clients change while the
//! server runs ([`log`], [`trace`]) have their rules here as well. The crate knows datatypes and limits
//! (`alipes-protocol`) and nothing of the server that a document configures.

#![forbid(unsafe_code)]

mod address_range;
mod call_endpoint;
mod cloud_events;
mod endpoints;
mod engine;
pub mod forwarding;
mod graph;
pub mod log;
mod model;
mod native;
mod paths;
mod payload_log;
mod placement;
mod read;
mod resources;
mod scheduling;
mod sequences;
mod server;
pub mod trace;
mod tuning;
mod warmup;

pub use address_range::AddressRange;
pub use call_endpoint::{CallEndpoint, CallMethod};
pub use cloud_events::CloudEventSpec;
pub use endpoints::{ApiKeySpec, ConnectionSpec, Endpoint, KeepaliveSpec, RestrictionSpec, TlsSpec};
pub use engine::{
    EngineSpec, EnsembleSpec, OnnxruntimeSpec, ProviderKind, ProviderSpec, StepSpec, StreamingSpec, Update, WorkerSpec,
};
pub use model::{BatchInputKind, BatchInputSpec, BatchOutputSpec, ModelSpec, Port};
pub use native::{
    Channels, DetokenizerSpec, FilterSpec, NativeSpec, NativeStep, NumberSpec, PictureLayout, PictureSpec, PoolingSpec,
    ResizeSpec, TokenOutput, TokenizerSpec, TopKOutput, TopKSpec,
};
pub use paths::{EnsembleSteps, ExecutionThreads, PathSpec, WorkerMemory};
pub use payload_log::PayloadLogSpec;
pub use placement::{InstanceKind, Placement};
pub use read::SCHEMA;
pub use resources::{LimitSpec, ResourceSpec};
pub use scheduling::{DynamicSpec, LevelPolicySpec, QueuePolicySpec, Scheduling};
pub use sequences::{ControlKind, ControlSpec, SequenceSpec, StateSpec, StrategySpec};
pub use server::{CompressionLevel, ControlMode, GpuMetricsSpec, ServerConfig, TurnClock};
pub use tuning::TuningSpec;
pub use warmup::{SampleData, SampleInput, SampleSpec};
