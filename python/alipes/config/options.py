"""The server's options, grouped by concern: what the rest of the program reads instead of flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from alipes.config.listener_options import (
    ApiKeyOptions,
    ConnectionOptions,
    Endpoint,
    InheritedSocket,
    KeepaliveOptions,
    Restriction,
)
from alipes.config.record_options import CloudEventOptions, LogOptions, PayloadOptions, TraceOptions

__all__ = [
    "GpuMetricsOptions",
    "GraphOptions",
    "ModelOptions",
    "Origin",
    "PathOptions",
    "PredictorOptions",
    "RepositoryOptions",
    "Resource",
    "ServerOptions",
    "WorkerOptions",
]

Origin = Literal["flag", "environment", "file", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMetricsOptions:
    """How the use of GPUs is shown.

    Attributes:
        enabled: Whether it is, where there is a GPU.
        interval_ms: Milliseconds between two readings.
    """

    enabled: bool
    interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryOptions:
    """Where models come from and when they are loaded.

    Attributes:
        paths: Folders of models, each once, in the order given; at least one, or a store.
        control_mode: `none`, `poll` or `explicit`.
        load_models: Models to load at start in explicit mode; `("*",)` means all.
        exit_on_error: Whether a model that fails at start, or a repository that cannot be read, ends the server.
        strict_readiness: Whether the server is ready only while every model is.
        load_threads: How many models load at the same time.
        load_retries: Further attempts at a model version that does not load.
        load_timeout_s: Longest time that the load of a model may take; 0 sets no limit.
        poll_interval_s: Seconds between two looks at the repositories in mode `poll`.
        namespacing: Whether a model's name may stand in several repositories.
        reload: Whether the source of apps is followed.
        stores: What may be a repository, several bare models or one.
        model_list: A file that lists models, each with where it lies; empty for none.
        model_name: Name of the model of a store that is one model alone, or of the only model of an app; empty for
            that of its folder, or its own.
        files: Files of models that were named by themselves, each a model of its own name.
    """

    paths: tuple[str, ...]
    control_mode: Literal["none", "poll", "explicit"]
    load_models: tuple[str, ...]
    exit_on_error: bool
    strict_readiness: bool
    load_threads: int
    load_retries: int
    load_timeout_s: float
    poll_interval_s: int
    namespacing: bool
    reload: bool = False
    stores: tuple[str, ...] = ()
    model_list: str = ""
    model_name: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorOptions:
    """The predictor behind the apps of the server, which `alipes.Predictor` calls.

    Attributes:
        host: Host, with a port where that is not the usual one; empty for none.
        protocol: `v2` for HTTP with binary tensors, or `grpc-v2`.
        use_ssl: Whether connections to it are encrypted.
        timeout_s: Longest time of a call, in seconds; 0 leaves it to the app.
        retries: Most further attempts at a call; None leaves it to the app.
        health_check: Whether the models of an app are ready only while the predictor is.
    """

    host: str = ""
    protocol: Literal["v2", "grpc-v2"] = "v2"
    use_ssl: bool = False
    timeout_s: float = 0.0
    retries: int | None = None
    health_check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource of the rate limiter: how many of it there are, on one device or, with `device` None, on each.

    Processors are one device, number 0; what is said of others means nothing here.
    """

    name: str
    count: int
    device: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How model configurations are read.

    Attributes:
        strict_config: Whether configurations are taken as written, without completion from the model file.
        config_name: Name of the configuration to prefer under a model's `configs/`; empty for none.
        gpu_fallback: What KIND_GPU means without a GPU.
        rate_limit: `off` or `execution_count`.
        resources: Limits of the rate limiter's resources.
        default_max_batch_size: Batch size in rows for completed configurations of any backend.
        onnxruntime_default_max_batch_size: The same for ONNX Runtime; None takes the one for any backend.
        streaming_max_sequences: Live sequences of a model whose state the server keeps.
        default_max_batch_bytes: Bytes of inputs beyond which the default for any backend is not reached; 0 for none.
        names_batch: Whether the operator has named the default for any backend.
        default_max_queue_delay_us: Longest wait for a fuller batch, in microseconds, where completion adds batching.
        allow_pickles: Models whose files may run code while they are read; `*` stands for all.
        delay_scheduler: Requests that wait before the first batch of a model that batches; 0 for none.
        backlog_delay_scheduler: Requests in the backlog that wait besides, where sequences have rows of their own.
    """

    strict_config: bool
    config_name: str
    gpu_fallback: Literal["cpu", "refuse"]
    rate_limit: Literal["off", "execution_count"]
    resources: tuple[Resource, ...]
    default_max_batch_size: int
    onnxruntime_default_max_batch_size: int | None
    streaming_max_sequences: int
    default_max_batch_bytes: int = 0
    names_batch: bool = False
    default_max_queue_delay_us: int = 0
    allow_pickles: tuple[str, ...] = ()
    delay_scheduler: int = 0
    backlog_delay_scheduler: int = 0

    def limit(self, name: str, *, anywhere: bool) -> int | None:
        """How many there are of a resource; None where no resource was given a limit.

        Of what has no limit there is nothing, as in Triton, once anything else has one.

        Args:
            name: The resource.
            anywhere: Counts what belongs to any device; else to the one that there is.
        """
        if not self.resources:
            return None
        here = (None, 0)
        counts = [one.count for one in self.resources if one.name == name and (anywhere or one.device in here)]
        return max(counts, default=0)

    def limits(self) -> dict[str, int]:
        """How many there are of each resource that was given a limit, for the data plane, which has one device."""
        names = dict.fromkeys(resource.name for resource in self.resources)
        return {name: self.limit(name, anywhere=False) or self.limit(name, anywhere=True) or 0 for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What the processes that run Python models may take, where a model's parameters say nothing else. 0: no limit.

    Attributes:
        start_timeout_s: Seconds to start and to initialize.
        execute_timeout_s: Seconds for one execution.
        stop_timeout_s: Seconds to finalize.
        complete_timeout_s: Seconds for the process that completes a configuration.
        max_memory_bytes: Resident memory of one process.
        max_leased_bytes: Inputs that a model may keep after it has answered.
        attached_socket: Number of the inherited socket over which the script that started the server takes instances.
    """

    start_timeout_s: float
    execute_timeout_s: float
    stop_timeout_s: float
    complete_timeout_s: float
    max_memory_bytes: int
    max_leased_bytes: int
    attached_socket: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PathOptions:
    """Ways of execution that the server chooses by what it measures, unless it is told which.

    Attributes:
        execution_threads: Threads on which models of the server's own process execute.
        ensemble_steps: Whether a batch may go through all steps of an ensemble at once.
        worker_memory: Size of the shared memory between the server and a worker.
    """

    execution_threads: Literal["measured", "network", "pool"]
    ensemble_steps: Literal["measured", "single"]
    worker_memory: Literal["full", "small"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """The graph whose requests the server answers, if there is one.

    Attributes:
        file: A file with an InferenceGraph; empty for none.
        text: The specification of one as JSON, as KServe hands it to its router; empty for none.
        name: The name of a graph that came as JSON.
        propagate: Patterns of headers that steps see.
        roots: File of the roots that certificates of steps lead to; empty for those of the system.
        document: The graph for the data plane, once it is read.
        single_responses: The step that needs one response of a model, by the model's name, once the graph is read: a
            decoupled model cannot stand there.
    """

    file: str
    text: str
    name: str
    propagate: tuple[str, ...]
    roots: str
    document: Mapping[str, Any] | None = None
    single_responses: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """Whether there is one."""
        return bool(self.file or self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The complete configuration of `alipes serve`, defaults included.

    Attributes:
        id: Name that the server metadata gives.
        triton_release: The release of Triton that is followed where releases differ.
        exit_timeout_s: Seconds to finish what is in before leaving.
        idle_exit_s: Seconds without a request after which the server ends; 0 never ends it.
        network_threads: Network threads; 0 takes half the cores, at least two.
        http_max_input_bytes: Largest JSON body, or raw input, in bytes.
        inflight_bytes: Bytes that requests and answers may take; 0 takes a quarter of the memory.
        http_header_forward_pattern: Headers of HTTP requests that models see as parameters; empty for none.
        grpc_header_forward_pattern: Metadata of gRPC calls that models see as parameters; empty for none.
        grpc_max_request_bytes: Largest gRPC request, in bytes.
        grpc_max_expanded_bytes: Largest gRPC request that came compressed, in bytes, once it is expanded.
        grpc_compression_level: How much work is spent on making answers to inferences over gRPC smaller.
        allow_client_shm: Whether clients may register shared memory.
        shared_memory_max_regions: Most regions that they may have registered at a time.
        response_cache_bytes: Bytes of answers that are kept for models that want it; 0 keeps none.
        cpu_metrics: Whether the `nv_cpu_*` gauges are shown, and the processor time of the server and its workers.
        gpu_metrics: Whether the `nv_gpu_*` gauges are shown, and how often GPUs are read.
        counter_latencies: Whether the `nv_inference_*_duration_us` counters are shown.
        histogram_latencies: Whether the histogram of the time to the first response is shown.
        summary_quantiles: The quantiles of the summaries of latencies; empty shows no summaries.
        request_histograms: Whether the `alipes_inference_*` histograms are shown.
        turn_clock: What the turns of network threads are measured in.
        http: The HTTP endpoint.
        grpc: The gRPC endpoint.
        metrics: The metrics endpoint.
        connections: What connections may take.
        keepalive: How gRPC connections are kept.
        api_keys: The keys that clients must show; None where the server asks for none.
        http_restricted: What HTTP asks a header for.
        grpc_restricted: What gRPC asks metadata for.
        http_cors_origins: Origins whose pages may send what changes something, and read answers; `("*",)` means all.
        http_allowed_hosts: Names that requests over HTTP may have in `Host`; `("*",)` means all.
        repository: Where models come from and when they are loaded.
        predictor: What apps call that stand in front of another server.
        model: How model configurations are read.
        worker: What the processes of Python models may take.
        paths: Which ways of execution are taken.
        log: What is written to the log, and how.
        trace: Which requests are traced.
        payloads: Which requests and responses are logged.
        graph: The graph whose requests are answered.
        cloud_events: How requests that are events are answered.
        describes_models: Whether models are described for people where no function is.
        origins: Where the value of each flag comes from, by the flag's name.
        notices: One line for each flag that was given and does nothing here.
        config_file: The configuration file that was read; empty for none.
        inherited: Listening sockets that another process opened, and goes on to hold.
    """

    id: str
    triton_release: Literal["2.51", "2.73"]
    exit_timeout_s: int
    idle_exit_s: float
    network_threads: int
    http_max_input_bytes: int
    inflight_bytes: int
    http_header_forward_pattern: str
    grpc_header_forward_pattern: str
    grpc_max_request_bytes: int
    grpc_max_expanded_bytes: int
    grpc_compression_level: Literal["none", "low", "medium", "high"]
    allow_client_shm: bool
    shared_memory_max_regions: int
    response_cache_bytes: int
    cpu_metrics: bool
    gpu_metrics: GpuMetricsOptions
    counter_latencies: bool
    histogram_latencies: bool
    summary_quantiles: tuple[float, ...]
    request_histograms: bool
    turn_clock: Literal["wall", "cpu"]
    http: Endpoint
    grpc: Endpoint
    metrics: Endpoint
    connections: ConnectionOptions
    keepalive: KeepaliveOptions
    http_restricted: tuple[Restriction, ...]
    grpc_restricted: tuple[Restriction, ...]
    http_cors_origins: tuple[str, ...]
    http_allowed_hosts: tuple[str, ...]
    repository: RepositoryOptions
    predictor: PredictorOptions
    model: ModelOptions
    worker: WorkerOptions
    paths: PathOptions
    log: LogOptions
    trace: TraceOptions
    payloads: PayloadOptions
    graph: GraphOptions
    api_keys: ApiKeyOptions | None = None
    cloud_events: CloudEventOptions = field(default_factory=CloudEventOptions)
    describes_models: bool = False
    origins: Mapping[str, Origin] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    config_file: str = ""
    inherited: tuple[InheritedSocket, ...] = ()
