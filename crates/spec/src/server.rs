//! The server's configuration.

use std::sync::Arc;

use alipes_graph::Graph;
use alipes_protocol::{TritonRelease, limits};
use serde::Deserialize;

use crate::cloud_events::CloudEventSpec;
use crate::endpoints::{ApiKeySpec, ConnectionSpec, Endpoint, KeepaliveSpec, RestrictionSpec};
use crate::forwarding::{self, Forwarding};
use crate::graph;
use crate::log::LogSettings;
use crate::paths::PathSpec;
use crate::payload_log::PayloadLogSpec;
use crate::read::{known_schema, triton_release};
use crate::resources::ResourceSpec;
use crate::trace::TraceConfig;

/// Which repository control requests are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlMode {
    /// All models are loaded at start, none later.
    None,
    /// The repository is watched.
    Poll,
    /// Models are loaded and unloaded on request.
    Explicit,
}

/// Compression level of gRPC responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompressionLevel {
    /// No compression.
    #[default]
    None,
    /// Fast, with larger messages.
    Low,
    /// The usual level.
    Medium,
    /// Slow, with smaller messages.
    High,
}

/// What the turns of network threads are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnClock {
    /// Time that passes, as others on the thread feel it.
    #[default]
    Wall,
    /// Time of the processor, which does not depend on what else the machine does. A reading is a call of the system.
    Cpu,
}

/// The GPUs whose use metrics show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuMetricsSpec {
    /// The driver's names of them.
    pub uuids: Vec<String>,
    /// Milliseconds between two readings.
    pub interval_ms: u64,
}

/// The server's configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Schema of this document.
    #[serde(deserialize_with = "known_schema")]
    pub schema: u32,
    /// Server name in the server metadata.
    pub id: String,
    /// The release of Triton that is followed where releases differ.
    #[serde(default, deserialize_with = "triton_release")]
    pub triton_release: TritonRelease,
    /// The HTTP endpoint.
    pub http: Endpoint,
    /// The gRPC endpoint.
    pub grpc: Endpoint,
    /// The metrics endpoint.
    pub metrics: Endpoint,
    /// Network threads; 0 chooses half the cores, at least two.
    #[serde(default)]
    pub network_threads: usize,
    /// Ways of execution.
    #[serde(default)]
    pub paths: PathSpec,
    /// Largest JSON body, or raw input, in bytes.
    #[serde(default = "default_http_max_input_bytes")]
    pub http_max_input_bytes: usize,
    /// Most bytes of requests and responses in flight.
    #[serde(default = "unbounded")]
    pub inflight_bytes: u64,
    /// Headers of HTTP requests that models see as parameters.
    #[serde(default, deserialize_with = "forwarding::pattern")]
    pub http_header_forward_pattern: Option<Forwarding>,
    /// Metadata of gRPC calls that models see as parameters.
    #[serde(default, deserialize_with = "forwarding::pattern")]
    pub grpc_header_forward_pattern: Option<Forwarding>,
    /// Largest gRPC request, in bytes.
    #[serde(default = "default_grpc_max_request_bytes")]
    pub grpc_max_request_bytes: usize,
    /// Largest compressed gRPC request after decompression, in bytes.
    #[serde(default = "default_grpc_max_expanded_bytes")]
    pub grpc_max_expanded_bytes: usize,
    /// Compression of inference responses over gRPC.
    #[serde(default)]
    pub grpc_compression_level: CompressionLevel,
    /// Limits on connections.
    #[serde(default)]
    pub connections: ConnectionSpec,
    /// Whether the calls of clients are counted, for a server that ends once it is idle.
    #[serde(default)]
    pub ends_idle: bool,
    /// Keep-alive of gRPC connections.
    #[serde(default)]
    pub keepalive: KeepaliveSpec,
    /// Keys that clients show; none where the server asks for none.
    #[serde(default)]
    pub api_keys: Option<ApiKeySpec>,
    /// HTTP requests that need a header.
    #[serde(default)]
    pub http_restricted: Vec<RestrictionSpec>,
    /// gRPC calls that need metadata.
    #[serde(default)]
    pub grpc_restricted: Vec<RestrictionSpec>,
    /// Origins whose pages may send HTTP requests and read the responses in a browser: `*` for every one, else as
    /// browsers name them.
    #[serde(default)]
    pub http_cors_origins: Vec<String>,
    /// Names that HTTP requests may have in `Host`, beside addresses and names that are not public: `*` for every one.
    /// Where there are some, no other is served.
    #[serde(default)]
    pub http_allowed_hosts: Vec<String>,
    /// Whether `/` says that the server is alive, as KServe asks its runtimes.
    #[serde(default)]
    pub live_at_root: bool,
    /// The graph whose requests it answers; none where it serves models alone.
    #[serde(default, deserialize_with = "graph::graph")]
    pub graph: Option<Arc<Graph>>,
    /// Which control requests are allowed.
    pub control_mode: ControlMode,
    /// Whether the server is ready only while every model is.
    #[serde(default)]
    pub strict_readiness: bool,
    /// Capacity of the resources that executions take; none where nothing is limited.
    #[serde(default)]
    pub rate_limit: Option<Vec<ResourceSpec>>,
    /// Size of the response cache in bytes; 0 turns it off.
    #[serde(default)]
    pub response_cache_bytes: usize,
    /// Whether clients may register shared memory.
    #[serde(default)]
    pub allow_client_shm: bool,
    /// Most shared-memory regions that clients may have registered at a time.
    #[serde(default = "default_shared_memory_max_regions")]
    pub shared_memory_max_regions: usize,
    /// Log settings at the start.
    #[serde(default)]
    pub log: LogSettings,
    /// Trace settings at the start.
    #[serde(default)]
    pub trace: TraceConfig,
    /// What is logged of requests and responses; nothing where there is none.
    #[serde(default)]
    pub payload_log: Option<PayloadLogSpec>,
    /// How requests that are events are answered.
    #[serde(default)]
    pub cloud_events: CloudEventSpec,
    /// Whether metrics contain the `nv_inference_*_duration_us` counters.
    pub counter_latencies: bool,
    /// Whether metrics contain Triton's histogram of the time to the first response.
    #[serde(default)]
    pub histogram_latencies: bool,
    /// Quantiles of Triton's latency summaries; empty turns the summaries off.
    #[serde(default)]
    pub summary_quantiles: Vec<f64>,
    /// Whether metrics contain the histograms that Triton does not have.
    #[serde(default = "yes")]
    pub request_histograms: bool,
    /// Whether metrics contain the `nv_cpu_*` gauges, and the processor time of the server and its workers.
    pub cpu_metrics: bool,
    /// The `nv_gpu_*` gauges.
    #[serde(default)]
    pub gpu_metrics: GpuMetricsSpec,
    /// What the turns of network threads are measured in.
    #[serde(default)]
    pub turn_clock: TurnClock,
}

fn default_grpc_max_request_bytes() -> usize {
    limits::GRPC_MAX_MESSAGE_BYTES
}

fn default_grpc_max_expanded_bytes() -> usize {
    limits::GRPC_MAX_EXPANDED_BYTES
}

fn yes() -> bool {
    true
}

fn unbounded() -> u64 {
    u64::MAX
}

fn default_http_max_input_bytes() -> usize {
    limits::HTTP_MAX_INPUT_BYTES
}

fn default_shared_memory_max_regions() -> usize {
    limits::REGIONS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"schema":1,"id":"x","http":{"enabled":true,"address":"127.0.0.1","port":0},
        "grpc":{"enabled":false,"address":"","port":0},"metrics":{"enabled":false,"address":"","port":0},
        "control_mode":"none","counter_latencies":true,"cpu_metrics":true}"#;

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<ServerConfig>(CONFIG).is_ok());
        let more = CONFIG.replace("\"id\"", "\"ids\":1,\"id\"");
        assert!(serde_json::from_str::<ServerConfig>(&more).unwrap_err().to_string().contains("unknown field `ids`"));
    }

    #[test]
    fn turns_are_measured_in_time_that_passes_by_default() {
        let read = |text: &str| serde_json::from_str::<ServerConfig>(text).unwrap().turn_clock;
        assert_eq!(read(CONFIG), TurnClock::Wall);
        assert_eq!(read(&CONFIG.replace("\"id\"", "\"turn_clock\":\"cpu\",\"id\"")), TurnClock::Cpu);
    }

    #[test]
    fn no_gpu_is_watched_unless_it_is_named() {
        let read = |text: &str| serde_json::from_str::<ServerConfig>(text).map(|config| config.gpu_metrics);
        assert_eq!(read(CONFIG).unwrap(), GpuMetricsSpec::default());
        let named = CONFIG.replace("\"id\"", r#""gpu_metrics":{"uuids":["GPU-1"],"interval_ms":50},"id""#);
        let wanted = GpuMetricsSpec { uuids: vec!["GPU-1".to_owned()], interval_ms: 50 };
        assert_eq!(read(&named).unwrap(), wanted);
        assert!(read(&named.replace("interval_ms", "interval_s")).is_err());
    }

    #[test]
    fn the_release_is_read_by_its_name() {
        let read = |text: &str| serde_json::from_str::<ServerConfig>(text).map(|config| config.triton_release);
        assert_eq!(read(CONFIG).unwrap(), TritonRelease::V2_73);
        let named = |name: &str| CONFIG.replace("\"id\"", &format!("\"triton_release\":\"{name}\",\"id\""));
        assert_eq!(read(&named("2.51")).unwrap(), TritonRelease::V2_51);
        assert!(read(&named("2.52")).unwrap_err().to_string().contains("unknown release of Triton '2.52'"));
    }

    #[test]
    fn a_graph_is_checked_as_it_is_read() {
        let read = |graph: &str| {
            let config = CONFIG.replace("\"id\"", &format!("\"graph\":{graph},\"id\""));
            serde_json::from_str::<ServerConfig>(&config).map(|config| config.graph.map(|graph| graph.name.clone()))
        };
        let graph = |step: &str| {
            format!(r#"{{"name":"g","timeout_s":1,"nodes":{{"root":{{"kind":"Sequence","steps":[{step}]}}}}}}"#)
        };
        assert_eq!(read("null").unwrap(), None);
        assert_eq!(read(&graph(r#"{"target":{"model":"m"}}"#)).unwrap().as_deref(), Some("g"));
        let refused = read(&graph(r#"{"target":{"node":"root"}}"#)).unwrap_err().to_string();
        assert!(refused.contains("the graph cannot be run: node 'root' leads back to itself"), "{refused}");
    }

    #[test]
    fn another_schema_is_refused() {
        let other = CONFIG.replace("\"schema\":1", "\"schema\":2");
        assert!(serde_json::from_str::<ServerConfig>(&other).unwrap_err().to_string().contains("schema 2"));
    }
}
