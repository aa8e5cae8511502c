"""The one table of the server's flags: every flag of Triton's server, and what it does here.

The parser, the option classes, the environment names and the reference page all read this table; nothing else lists flags.
Source: Triton's command line, defaults included; where a default differs here, the row's help says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["FLAGS", "Flag", "Kind", "Status", "Value", "environment_name", "find"]

Kind = Literal["bool", "int", "level", "str", "choice", "list"]
"""How a value is read: `level` is an integer that also takes true and false, `list` may be given several times."""

Status = Literal["works", "ignored", "refused"]
"""`ignored` gives one notice where the flag is given; `refused` ends the start unless the value is the default."""

Value = bool | int | str | tuple[str, ...] | None
"""A parsed value; None where the flag has no default and was not given."""

_MAX_PORT: Final = 65535
_MAX_INT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One row of the table.

    Attributes:
        name: The flag without its dashes.
        group: Heading under which the usage and the reference page show it.
        kind: How its value is read.
        default: Its value where nobody gives one.
        status: Whether it works, is ignored with a notice, or is refused by name.
        help: What it does, in one line.
        note: The notice of an ignored flag, the reason of a refused one.
        option: Where the value lands in `ServerOptions`, as a dotted path; empty for what does not work, and for flags
            that `settings.py` takes apart.
        alias: The flag of which this one is another name.
        choices: The words that a `choice` takes.
        refused_choices: Words among them that are known but not offered.
        low: Smallest integer allowed.
        high: Largest integer allowed.
    """

    name: str
    group: str
    kind: Kind
    default: Value
    status: Status
    help: str
    note: str = ""
    option: str = ""
    alias: str = ""
    choices: tuple[str, ...] = ()
    refused_choices: tuple[str, ...] = ()
    low: int = 0
    high: int = _MAX_INT


def _works(
    group: str,
    name: str,
    kind: Kind,
    default: Value,
    option: str,
    help: str,
    *,
    alias: str = "",
    choices: tuple[str, ...] = (),
    low: int = 0,
    high: int = _MAX_INT,
) -> Flag:
    return Flag(
        name=name,
        group=group,
        kind=kind,
        default=default,
        status="works",
        help=help,
        option=option,
        alias=alias,
        choices=choices,
        low=low,
        high=high,
    )


def _ignored(group: str, name: str, kind: Kind, default: Value, help: str, note: str, *, low: int = 0) -> Flag:
    return Flag(name=name, group=group, kind=kind, default=default, status="ignored", help=help, note=note, low=low)


def _refused(
    group: str, name: str, kind: Kind, default: Value, help: str, note: str, *, choices: tuple[str, ...] = ()
) -> Flag:
    return Flag(
        name=name, group=group, kind=kind, default=default, status="refused", help=help, note=note, choices=choices
    )


_REPOSITORY: Final = "Models"
_HTTP: Final = "HTTP"
_GRPC: Final = "gRPC"
_METRICS: Final = "Metrics"
_SERVER: Final = "Server"
_LOG: Final = "Log"
_BACKEND: Final = "Backends"
_RESOURCE: Final = "Devices and memory"
_TRACE: Final = "Tracing"
_CACHE: Final = "Response cache"
_CLOUD: Final = "Cloud platforms"

_NO_GPU: Final = "there is no GPU memory to manage"
_NO_POOL: Final = "requests run on the network threads and need no pool of their own"
_KEEPALIVE: Final = "connections are kept as the HTTP/2 library keeps them"
_NO_HEADERS: Final = "headers do not reach models yet"
_NO_RESTRICTION: Final = "no endpoint can be restricted yet, and an open one must not be taken for a closed one"
_NO_TLS: Final = "encrypted connections are not offered yet; put a TLS proxy in front"
_NO_TRACE: Final = "requests are not traced yet"
_NO_CACHE: Final = "answers are not cached yet"

FLAGS: Final[tuple[Flag, ...]] = (
    _works(_REPOSITORY, "model-repository", "list", (), "repository.paths", "Folder of models; the positional REPOSITORY too."),
    _works(
        _REPOSITORY,
        "model-store",
        "list",
        (),
        "repository.paths",
        "Another name of --model-repository.",
        alias="model-repository",
    ),
    Flag(
        name="model-control-mode",
        group=_REPOSITORY,
        kind="choice",
        default="none",
        status="works",
        help="`none` loads every model at start; `explicit` loads those named by --load-model, and more on request.",
        note="the repository cannot be watched yet; use explicit and the load request",
        option="repository.control_mode",
        choices=("none", "poll", "explicit"),
        refused_choices=("poll",),
    ),
    _works(_REPOSITORY, "load-model", "list", (), "repository.load_models", "Model to load at start in explicit mode; `*` alone means all."),
    _ignored(_REPOSITORY, "repository-poll-secs", "int", 15, "Seconds between two looks at the repository.", "the repository is not polled in this mode"),
    _works(
        _REPOSITORY,
        "exit-on-error",
        "bool",
        False,
        "repository.exit_on_error",
        "Leave when a model fails at start. Triton's default is true; here one broken model does not stop the others.",
    ),
    _works(_REPOSITORY, "strict-readiness", "bool", True, "repository.strict_readiness", "Ready only while every model is."),
    _works(
        _REPOSITORY,
        "disable-auto-complete-config",
        "bool",
        False,
        "model.strict_config",
        "Take configurations as they are written: inputs and outputs are not read from the model file.",
    ),
    _works(
        _REPOSITORY,
        "strict-model-config",
        "bool",
        False,
        "model.strict_config",
        "Older name of --disable-auto-complete-config.",
        alias="disable-auto-complete-config",
    ),
    _works(_REPOSITORY, "model-config-name", "str", "", "model.config_name", "Read `configs/<name>.pbtxt` of a model where it exists."),
    _works(_REPOSITORY, "model-load-thread-count", "int", 4, "repository.load_threads", "Models that load at the same time.", low=1),
    _ignored(_REPOSITORY, "model-load-retry-count", "int", 0, "Further attempts to load a model.", "a failed load is not tried again"),
    _ignored(_REPOSITORY, "model-load-gpu-limit", "list", (), "Share of a GPU's memory, `device:fraction`.", _NO_GPU),
    _refused(_REPOSITORY, "model-namespacing", "bool", False, "Allow one model name in several repositories.", "model names are unique across repositories"),
    _works(
        _REPOSITORY,
        "gpu-fallback",
        "choice",
        "cpu",
        "model.gpu_fallback",
        "What KIND_GPU means without a GPU: `cpu` loads on the CPU with a notice, `refuse` fails the load. Not a flag of Triton, which refuses.",
        choices=("cpu", "refuse"),
    ),
    _works(_SERVER, "id", "str", "triton", "id", "Name that the server metadata gives."),
    _works(_SERVER, "exit-timeout-secs", "int", 30, "exit_timeout_s", "Seconds to finish what is in before leaving."),
    _works(_HTTP, "allow-http", "bool", True, "http.enabled", "Offer HTTP."),
    _works(_HTTP, "http-address", "str", "0.0.0.0", "http.address", "Address of the HTTP endpoint."),
    _works(_HTTP, "http-port", "int", 8000, "http.port", "Port of the HTTP endpoint; 0 asks the system for one.", high=_MAX_PORT),
    _refused(_HTTP, "reuse-http-port", "bool", False, "Share the HTTP port with another process.", "a port belongs to one server"),
    _works(
        _HTTP,
        "http-thread-count",
        "int",
        0,
        "network_threads",
        "Network threads, HTTP and gRPC together; 0 takes half the cores, at least two. Triton's default is 8, for HTTP alone.",
    ),
    _refused(_HTTP, "http-header-forward-pattern", "str", "", "Headers to hand to models as parameters.", _NO_HEADERS),
    _works(_HTTP, "http-max-input-size", "int", 1 << 26, "http_max_input_bytes", "Largest JSON body, or raw input, in bytes.", low=1),
    _refused(_HTTP, "http-restricted-api", "list", (), "Endpoints that need a header, `<api,...>:<key>=<value>`.", _NO_RESTRICTION),
    _works(_GRPC, "allow-grpc", "bool", True, "grpc.enabled", "Offer gRPC."),
    _works(_GRPC, "grpc-address", "str", "0.0.0.0", "grpc.address", "Address of the gRPC endpoint."),
    _works(_GRPC, "grpc-port", "int", 8001, "grpc.port", "Port of the gRPC endpoint; 0 asks the system for one.", high=_MAX_PORT),
    _refused(_GRPC, "reuse-grpc-port", "bool", False, "Share the gRPC port with another process.", "a port belongs to one server"),
    _refused(_GRPC, "grpc-header-forward-pattern", "str", "", "Metadata to hand to models as parameters.", _NO_HEADERS),
    _ignored(_GRPC, "grpc-infer-thread-count", "int", 2, "Threads that handle inference calls.", _NO_POOL, low=2),
    _ignored(_GRPC, "grpc-infer-allocation-pool-size", "int", 8, "Request objects kept for reuse.", _NO_POOL),
    _ignored(_GRPC, "grpc-max-response-pool-size", "int", _MAX_INT, "Response objects kept for reuse.", _NO_POOL),
    _ignored(_GRPC, "grpc-infer-response-compression-level", "str", "none", "Compression of answers: none, low, medium or high.", "answers leave uncompressed, which every client reads"),
    _refused(_GRPC, "grpc-use-ssl", "bool", False, "Encrypt gRPC connections.", _NO_TLS),
    _refused(_GRPC, "grpc-use-ssl-mutual", "bool", False, "Ask gRPC clients for a certificate.", _NO_TLS),
    _refused(_GRPC, "grpc-server-cert", "str", "", "File of the server's certificate.", _NO_TLS),
    _refused(_GRPC, "grpc-server-key", "str", "", "File of the server's key.", _NO_TLS),
    _refused(_GRPC, "grpc-root-cert", "str", "", "File of the root certificate.", _NO_TLS),
    _ignored(_GRPC, "grpc-keepalive-time", "int", 7200000, "Milliseconds of silence before a ping.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-keepalive-timeout", "int", 20000, "Milliseconds to wait for a ping's answer.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-keepalive-permit-without-calls", "bool", False, "Ping connections without calls.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-http2-max-pings-without-data", "int", 2, "Pings sent without data between them.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-http2-min-recv-ping-interval-without-data", "int", 300000, "Milliseconds between pings of a client.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-http2-max-ping-strikes", "int", 2, "Early pings that a client may send.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-max-connection-age", "int", 0, "Milliseconds before a connection is asked to go.", _KEEPALIVE),
    _ignored(_GRPC, "grpc-max-connection-age-grace", "int", 0, "Milliseconds between asking and closing.", _KEEPALIVE),
    _refused(_GRPC, "grpc-restricted-protocol", "list", (), "Calls that need metadata, `<protocol,...>:<key>=<value>`.", _NO_RESTRICTION),
    _works(_METRICS, "allow-metrics", "bool", True, "metrics.enabled", "Offer metrics."),
    _works(_METRICS, "metrics-address", "str", None, "metrics.address", "Address of the metrics endpoint; the HTTP address where not given."),
    _works(_METRICS, "metrics-port", "int", 8002, "metrics.port", "Port of the metrics endpoint; 0 asks the system for one.", high=_MAX_PORT),
    _works(_METRICS, "allow-cpu-metrics", "bool", True, "cpu_metrics", "Show the nv_cpu_* gauges."),
    _ignored(_METRICS, "allow-gpu-metrics", "bool", True, "Show the nv_gpu_* gauges.", "no GPU is watched"),
    _ignored(_METRICS, "metrics-interval-ms", "int", 2000, "Milliseconds between two readings.", "gauges are read when they are asked for"),
    _works(_METRICS, "metrics-config", "list", (), "", "Setting of the metrics, `<key>=<value>`; see the table of settings."),
    _works(_LOG, "log-verbose", "level", 0, "log.verbose_level", "Level of verbose messages; 0 turns them off.", high=16),
    _works(_LOG, "log-info", "bool", True, "log.info", "Write informational messages."),
    _works(_LOG, "log-warning", "bool", True, "log.warning", "Write warnings."),
    _works(_LOG, "log-error", "bool", True, "log.error", "Write errors."),
    _works(_LOG, "log-format", "choice", "default", "log.format", "Form of a line's time and level.", choices=("default", "ISO8601")),
    _works(_LOG, "log-file", "str", "", "log.file", "File to write to; standard error where not given."),
    _works(_BACKEND, "backend-config", "list", (), "", "Setting of a backend, `<backend>,<key>=<value>`, or of all, `<key>=<value>`; see the table of settings."),
    _ignored(_BACKEND, "backend-directory", "str", "", "Folder of backend libraries.", "backends are Python packages, found by name"),
    _ignored(_BACKEND, "repoagent-directory", "str", "", "Folder of repository agents.", "no repository agent is offered"),
    _works(
        _RESOURCE,
        "rate-limit",
        "choice",
        "off",
        "model.rate_limit",
        "`execution_count` checks the resources of instance groups and refuses models that ask for some.",
        choices=("off", "execution_count"),
    ),
    _works(_RESOURCE, "rate-limit-resource", "list", (), "", "Resource of the rate limiter, `<name>:<count>[:<device>]`."),
    _ignored(_RESOURCE, "host-policy", "list", (), "Placement of instances, `<name>,<key>=<value>`.", "instances run where the system puts them"),
    _ignored(_RESOURCE, "pinned-memory-pool-byte-size", "int", 1 << 28, "Bytes of pinned memory.", _NO_GPU),
    _ignored(_RESOURCE, "cuda-memory-pool-byte-size", "list", (), "Bytes of GPU memory, `<device>:<bytes>`.", _NO_GPU),
    _ignored(_RESOURCE, "cuda-virtual-address-size", "list", (), "Bytes of GPU address space, `<device>:<bytes>`.", _NO_GPU),
    _ignored(_RESOURCE, "min-supported-compute-capability", "str", "6.0", "Oldest GPU to use.", _NO_GPU),
    _ignored(_RESOURCE, "buffer-manager-thread-count", "int", 0, "Threads that copy tensors.", "tensors are copied once, by the thread that runs the batch"),
    _ignored(_RESOURCE, "enable-peer-access", "bool", True, "Let GPUs read each other's memory.", _NO_GPU),
    _refused(_RESOURCE, "allow-client-shm", "bool", False, "Let clients register shared memory.", "shared memory of clients is not offered yet"),
    _refused(_CACHE, "cache-config", "list", (), "Setting of a cache, `<cache>,<key>=<value>`.", _NO_CACHE),
    _ignored(_CACHE, "cache-directory", "str", "", "Folder of cache libraries.", _NO_CACHE),
    _refused(_CACHE, "response-cache-byte-size", "int", 0, "Bytes of the response cache; older form of --cache-config.", _NO_CACHE),
    _refused(_TRACE, "trace-config", "list", (), "Setting of tracing, `[<mode>,]<key>=<value>`.", _NO_TRACE),
    _refused(_TRACE, "trace-file", "str", "", "Older form of --trace-config triton,file.", _NO_TRACE),
    _refused(_TRACE, "trace-level", "list", (), "Older form of --trace-config level.", _NO_TRACE),
    _refused(_TRACE, "trace-rate", "int", 1000, "Older form of --trace-config rate.", _NO_TRACE),
    _refused(_TRACE, "trace-count", "int", -1, "Older form of --trace-config count.", _NO_TRACE),
    _refused(_TRACE, "trace-log-frequency", "int", 0, "Older form of --trace-config triton,log-frequency.", _NO_TRACE),
    _refused(_CLOUD, "allow-sagemaker", "bool", False, "Offer the SageMaker routes.", "the SageMaker routes are not offered yet"),
    _ignored(_CLOUD, "sagemaker-port", "int", 8080, "Port of the SageMaker routes.", "only used with --allow-sagemaker"),
    _ignored(_CLOUD, "sagemaker-safe-port-range", "str", "", "Ports that SageMaker may ask for.", "only used with --allow-sagemaker"),
    _ignored(_CLOUD, "sagemaker-thread-count", "int", 8, "Threads of the SageMaker routes.", "only used with --allow-sagemaker"),
    _refused(_CLOUD, "allow-vertex-ai", "bool", False, "Offer the Vertex AI routes.", "the Vertex AI routes are not offered yet"),
    _ignored(_CLOUD, "vertex-ai-port", "int", 8080, "Port of the Vertex AI routes.", "only used with --allow-vertex-ai"),
    _ignored(_CLOUD, "vertex-ai-thread-count", "int", 8, "Threads of the Vertex AI routes.", "only used with --allow-vertex-ai"),
    _ignored(_CLOUD, "vertex-ai-default-model", "str", "", "Model of the default Vertex AI route.", "only used with --allow-vertex-ai"),
)

_BY_NAME: Final = {flag.name: flag for flag in FLAGS}


def find(name: str) -> Flag | None:
    """The row of a flag, given without dashes; None where there is none."""
    return _BY_NAME.get(name)


def environment_name(flag: Flag) -> str:
    """The environment variable that stands for a flag, for example `ALIPES_HTTP_PORT`."""
    return "ALIPES_" + flag.name.upper().replace("-", "_")
