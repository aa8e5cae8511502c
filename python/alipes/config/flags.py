"""The one table of the server's flags: every flag of Triton's server, and what it does here.

The parser, the option classes, the environment names and the reference page all read this table; nothing else lists
flags.
Source: Triton's command line, defaults included; where a default differs here, the row's help says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

__all__ = ["FLAGS", "Flag", "Kind", "Status", "Value", "environment_name", "find"]

Kind = Literal["bool", "int", "level", "seconds", "str", "choice", "list"]
"""How a value is read: `level` is an integer that also takes true and false, `list` may be given several times."""

Status = Literal["works", "ignored", "refused"]
"""`ignored` gives one notice where the flag is given; `refused` ends the start unless the value is the default."""

Value = bool | int | float | str | tuple[str, ...] | None
"""A parsed value; None where the flag has no default and was not given."""

_MAX_PORT: Final = 65535
_MAX_INT: Final = 2**31 - 1
_MAX_BYTES: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Flag:
    """One row of the table.

    Attributes:
        name: The flag without its dashes.
        kind: How its value is read.
        default: Its value where nobody gives one.
        help: What it does, in one line.
        option: Where the value lands in `ServerOptions`, as a dotted path; empty for what does not work, and for flags
            that are taken apart further.
        ignored: The notice, where the flag does nothing here.
        refused: The reason, where only the default is accepted.
        alias: The flag of which this one is another name.
        choices: The words that a `choice` takes.
        low: Smallest integer allowed.
        high: Largest integer allowed.
        group: Heading under which the usage and the reference page show it.
    """

    name: str
    kind: Kind
    default: Value
    help: str
    option: str = ""
    ignored: str = ""
    refused: str = ""
    alias: str = ""
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = _MAX_INT
    group: str = ""

    @property
    def status(self) -> Status:
        """Whether it works, is ignored with a notice, or is refused by name."""
        return "ignored" if self.ignored else "refused" if self.refused else "works"

    @property
    def note(self) -> str:
        """Why a flag does not work; empty where it does."""
        return self.ignored or self.refused


_NO_GPU: Final = "there is no GPU memory to manage"
_NO_POOL: Final = "requests run on the network threads and need no pool of their own"
_KEEPALIVE: Final = "connections are kept as the HTTP/2 library keeps them"
_NO_RESTRICTION: Final = "no endpoint can be restricted yet, and an open one must not be taken for a closed one"
_NO_TLS: Final = "encrypted connections are not offered yet; put a TLS proxy in front"
_NO_TRACE: Final = "requests are not traced yet"
_NO_CACHE: Final = "answers are not cached yet"

_TABLE: Final[dict[str, tuple[Flag, ...]]] = {
    "Models": (
        Flag(
            "model-repository",
            "list",
            (),
            "Folder of models; the positional REPOSITORY too.",
            option="repository.paths",
        ),
        Flag(
            "model-store",
            "list",
            (),
            "Another name of --model-repository.",
            alias="model-repository",
            option="repository.paths",
        ),
        Flag(
            "model-control-mode",
            "choice",
            "none",
            "`none` loads every model at start; `poll` also follows every later change of the repository; `explicit` "
            "loads those named by --load-model, and more on request.",
            option="repository.control_mode",
            choices=("none", "poll", "explicit"),
        ),
        Flag(
            "load-model",
            "list",
            (),
            "Model to load at start in explicit mode; `*` alone means all.",
            option="repository.load_models",
        ),
        Flag(
            "repository-poll-secs",
            "int",
            15,
            "Seconds between two looks at the repository, in the mode `poll`.",
            low=1,
            option="repository.poll_interval_s",
        ),
        Flag(
            "exit-on-error",
            "bool",
            False,
            "Leave when a model fails at start. Triton's default is true; here a broken model stops no other.",
            option="repository.exit_on_error",
        ),
        Flag(
            "strict-readiness", "bool", True, "Ready only while every model is.", option="repository.strict_readiness"
        ),
        Flag(
            "disable-auto-complete-config",
            "bool",
            False,
            "Take configurations as they are written: nothing is completed from the model.",
            option="model.strict_config",
        ),
        Flag(
            "strict-model-config",
            "bool",
            False,
            "Older name of --disable-auto-complete-config.",
            alias="disable-auto-complete-config",
            option="model.strict_config",
        ),
        Flag(
            "model-config-name",
            "str",
            "",
            "Read `configs/<name>.pbtxt` of a model where it exists.",
            option="model.config_name",
        ),
        Flag(
            "model-load-thread-count",
            "int",
            4,
            "Models that load at the same time.",
            low=1,
            option="repository.load_threads",
        ),
        Flag(
            "model-load-retry-count",
            "int",
            0,
            "Further attempts at a model version that does not load.",
            option="repository.load_retries",
        ),
        Flag("model-load-gpu-limit", "list", (), "Share of a GPU's memory, `device:fraction`.", ignored=_NO_GPU),
        Flag(
            "model-namespacing",
            "bool",
            False,
            "Allow one model name in several repositories. A request for a name that several of them serve is refused.",
            option="repository.namespacing",
        ),
        Flag(
            "gpu-fallback",
            "choice",
            "cpu",
            "What KIND_GPU means without a GPU: `cpu` loads on the CPU with a notice, `refuse` fails the load. "
            "Not a flag of Triton, which refuses.",
            choices=("cpu", "refuse"),
            option="model.gpu_fallback",
        ),
    ),
    "Server": (
        Flag("id", "str", "triton", "Name that the server metadata gives.", option="id"),
        Flag("exit-timeout-secs", "int", 30, "Seconds to finish what is in before leaving.", option="exit_timeout_s"),
    ),
    "HTTP": (
        Flag("allow-http", "bool", True, "Offer HTTP.", option="http.enabled"),
        Flag("http-address", "str", "0.0.0.0", "Address of the HTTP endpoint.", option="http.address"),
        Flag(
            "http-port",
            "int",
            8000,
            "Port of the HTTP endpoint; 0 asks the system for one.",
            high=_MAX_PORT,
            option="http.port",
        ),
        Flag(
            "reuse-http-port",
            "bool",
            False,
            "Share the HTTP port with another process.",
            refused="a port belongs to one server",
        ),
        Flag(
            "http-thread-count",
            "int",
            0,
            "Network threads, HTTP and gRPC together; 0 takes half the cores, at least two. "
            "Triton's default is 8, for HTTP alone.",
            option="network_threads",
        ),
        Flag(
            "http-header-forward-pattern",
            "str",
            "",
            "Headers to hand to models as parameters: a regular expression that matches anywhere in a name.",
            option="http_header_forward_pattern",
        ),
        Flag(
            "http-max-input-size",
            "int",
            1 << 26,
            "Largest JSON body, or raw input, in bytes.",
            low=1,
            option="http_max_input_bytes",
            high=_MAX_BYTES,
        ),
        Flag(
            "http-restricted-api",
            "list",
            (),
            "Endpoints that need a header, `<api,...>:<key>=<value>`.",
            refused=_NO_RESTRICTION,
        ),
    ),
    "gRPC": (
        Flag("allow-grpc", "bool", True, "Offer gRPC.", option="grpc.enabled"),
        Flag("grpc-address", "str", "0.0.0.0", "Address of the gRPC endpoint.", option="grpc.address"),
        Flag(
            "grpc-port",
            "int",
            8001,
            "Port of the gRPC endpoint; 0 asks the system for one.",
            high=_MAX_PORT,
            option="grpc.port",
        ),
        Flag(
            "reuse-grpc-port",
            "bool",
            False,
            "Share the gRPC port with another process.",
            refused="a port belongs to one server",
        ),
        Flag(
            "grpc-header-forward-pattern",
            "str",
            "",
            "Metadata to hand to models as parameters: a regular expression that matches anywhere in a key.",
            option="grpc_header_forward_pattern",
        ),
        Flag("grpc-infer-thread-count", "int", 2, "Threads that handle inference calls.", low=2, ignored=_NO_POOL),
        Flag("grpc-infer-allocation-pool-size", "int", 8, "Request objects kept for reuse.", ignored=_NO_POOL),
        Flag("grpc-max-response-pool-size", "int", _MAX_INT, "Response objects kept for reuse.", ignored=_NO_POOL),
        Flag(
            "grpc-infer-response-compression-level",
            "choice",
            "none",
            "Work that is spent on compressing answers, for clients that read gzip or deflate.",
            option="grpc_compression_level",
            choices=("none", "low", "medium", "high"),
        ),
        Flag(
            "grpc-max-request-bytes",
            "int",
            _MAX_INT,
            "Largest request message, in bytes.",
            low=1,
            option="grpc_max_request_bytes",
        ),
        Flag(
            "grpc-max-expanded-bytes",
            "int",
            1 << 26,
            "Largest request message that came compressed, in bytes, once it is expanded.",
            low=1,
            option="grpc_max_expanded_bytes",
        ),
        Flag("grpc-use-ssl", "bool", False, "Encrypt gRPC connections.", refused=_NO_TLS),
        Flag("grpc-use-ssl-mutual", "bool", False, "Ask gRPC clients for a certificate.", refused=_NO_TLS),
        Flag("grpc-server-cert", "str", "", "File of the server's certificate.", refused=_NO_TLS),
        Flag("grpc-server-key", "str", "", "File of the server's key.", refused=_NO_TLS),
        Flag("grpc-root-cert", "str", "", "File of the root certificate.", refused=_NO_TLS),
        Flag("grpc-keepalive-time", "int", 7200000, "Milliseconds of silence before a ping.", ignored=_KEEPALIVE),
        Flag("grpc-keepalive-timeout", "int", 20000, "Milliseconds to wait for a ping's answer.", ignored=_KEEPALIVE),
        Flag(
            "grpc-keepalive-permit-without-calls", "bool", False, "Ping connections without calls.", ignored=_KEEPALIVE
        ),
        Flag(
            "grpc-http2-max-pings-without-data", "int", 2, "Pings sent without data between them.", ignored=_KEEPALIVE
        ),
        Flag(
            "grpc-http2-min-recv-ping-interval-without-data",
            "int",
            300000,
            "Milliseconds between pings of a client.",
            ignored=_KEEPALIVE,
        ),
        Flag("grpc-http2-max-ping-strikes", "int", 2, "Early pings that a client may send.", ignored=_KEEPALIVE),
        Flag(
            "grpc-max-connection-age", "int", 0, "Milliseconds before a connection is asked to go.", ignored=_KEEPALIVE
        ),
        Flag("grpc-max-connection-age-grace", "int", 0, "Milliseconds between asking and closing.", ignored=_KEEPALIVE),
        Flag(
            "grpc-restricted-protocol",
            "list",
            (),
            "Calls that need metadata, `<protocol,...>:<key>=<value>`.",
            refused=_NO_RESTRICTION,
        ),
    ),
    "Metrics": (
        Flag("allow-metrics", "bool", True, "Offer metrics.", option="metrics.enabled"),
        Flag(
            "metrics-address",
            "str",
            None,
            "Address of the metrics endpoint; the HTTP address where not given.",
            option="metrics.address",
        ),
        Flag(
            "metrics-port",
            "int",
            8002,
            "Port of the metrics endpoint; 0 asks the system for one.",
            high=_MAX_PORT,
            option="metrics.port",
        ),
        Flag("allow-cpu-metrics", "bool", True, "Show the nv_cpu_* gauges.", option="cpu_metrics"),
        Flag("allow-gpu-metrics", "bool", True, "Show the nv_gpu_* gauges.", ignored="no GPU is watched"),
        Flag(
            "metrics-interval-ms",
            "int",
            2000,
            "Milliseconds between two readings.",
            ignored="gauges are read when they are asked for",
        ),
        Flag("metrics-config", "list", (), "Setting of the metrics, `<key>=<value>`; see the table of settings."),
    ),
    "Log": (
        Flag(
            "log-verbose",
            "level",
            0,
            "Level of verbose messages; 0 turns them off.",
            high=16,
            option="log.verbose_level",
        ),
        Flag("log-info", "bool", True, "Write informational messages.", option="log.info"),
        Flag("log-warning", "bool", True, "Write warnings.", option="log.warning"),
        Flag("log-error", "bool", True, "Write errors.", option="log.error"),
        Flag(
            "log-format",
            "choice",
            "default",
            "Form of a line's time and level.",
            choices=("default", "ISO8601"),
            option="log.format",
        ),
        Flag("log-file", "str", "", "File to write to; standard error where not given.", option="log.file"),
    ),
    "Backends": (
        Flag(
            "backend-config",
            "list",
            (),
            "Setting of a backend, `<backend>,<key>=<value>`, or of all, `<key>=<value>`; see the table of settings.",
        ),
        Flag(
            "backend-directory",
            "str",
            "",
            "Folder of backend libraries.",
            ignored="backends are Python packages, found by name",
        ),
        Flag(
            "repoagent-directory", "str", "", "Folder of repository agents.", ignored="no repository agent is offered"
        ),
    ),
    "Devices and memory": (
        Flag(
            "rate-limit",
            "choice",
            "off",
            "`execution_count` checks the resources of instance groups and refuses models that ask for some.",
            choices=("off", "execution_count"),
            option="model.rate_limit",
        ),
        Flag("rate-limit-resource", "list", (), "Resource of the rate limiter, `<name>:<count>[:<device>]`."),
        Flag(
            "host-policy",
            "list",
            (),
            "Placement of instances, `<name>,<key>=<value>`.",
            ignored="instances run where the system puts them",
        ),
        Flag(
            "pinned-memory-pool-byte-size", "int", 1 << 28, "Bytes of pinned memory.", ignored=_NO_GPU, high=_MAX_BYTES
        ),
        Flag("cuda-memory-pool-byte-size", "list", (), "Bytes of GPU memory, `<device>:<bytes>`.", ignored=_NO_GPU),
        Flag(
            "cuda-virtual-address-size", "list", (), "Bytes of GPU address space, `<device>:<bytes>`.", ignored=_NO_GPU
        ),
        Flag("min-supported-compute-capability", "str", "6.0", "Oldest GPU to use.", ignored=_NO_GPU),
        Flag(
            "buffer-manager-thread-count",
            "int",
            0,
            "Threads that copy tensors.",
            ignored="tensors are copied once, by the thread that runs the batch",
        ),
        Flag("enable-peer-access", "bool", True, "Let GPUs read each other's memory.", ignored=_NO_GPU),
        Flag(
            "allow-client-shm",
            "bool",
            False,
            "Let clients register shared memory, for tensors that need not travel. They are trusted with it: see "
            "SECURITY.md.",
            option="allow_client_shm",
        ),
        Flag(
            "shared-memory-max-regions",
            "int",
            4096,
            "Regions of shared memory that clients may have registered at a time.",
            option="shared_memory_max_regions",
            low=1,
            high=65_536,
        ),
    ),
    "Response cache": (
        Flag("cache-config", "list", (), "Setting of a cache, `<cache>,<key>=<value>`.", refused=_NO_CACHE),
        Flag("cache-directory", "str", "", "Folder of cache libraries.", ignored=_NO_CACHE),
        Flag(
            "response-cache-byte-size",
            "int",
            0,
            "Bytes of the response cache; older form of --cache-config.",
            refused=_NO_CACHE,
            high=_MAX_BYTES,
        ),
    ),
    "Tracing": (
        Flag("trace-config", "list", (), "Setting of tracing, `[<mode>,]<key>=<value>`.", refused=_NO_TRACE),
        Flag("trace-file", "str", "", "Older form of --trace-config triton,file.", refused=_NO_TRACE),
        Flag("trace-level", "list", (), "Older form of --trace-config level.", refused=_NO_TRACE),
        Flag("trace-rate", "int", 1000, "Older form of --trace-config rate.", refused=_NO_TRACE),
        Flag("trace-count", "int", -1, "Older form of --trace-config count.", refused=_NO_TRACE, low=-1),
        Flag("trace-log-frequency", "int", 0, "Older form of --trace-config triton,log-frequency.", refused=_NO_TRACE),
    ),
    "Cloud platforms": (
        Flag(
            "allow-sagemaker",
            "bool",
            False,
            "Offer the SageMaker routes.",
            refused="the SageMaker routes are not offered yet",
        ),
        Flag(
            "sagemaker-port", "int", 8080, "Port of the SageMaker routes.", ignored="only used with --allow-sagemaker"
        ),
        Flag(
            "sagemaker-safe-port-range",
            "str",
            "",
            "Ports that SageMaker may ask for.",
            ignored="only used with --allow-sagemaker",
        ),
        Flag(
            "sagemaker-thread-count",
            "int",
            8,
            "Threads of the SageMaker routes.",
            ignored="only used with --allow-sagemaker",
        ),
        Flag(
            "allow-vertex-ai",
            "bool",
            False,
            "Offer the Vertex AI routes.",
            refused="the Vertex AI routes are not offered yet",
        ),
        Flag(
            "vertex-ai-port", "int", 8080, "Port of the Vertex AI routes.", ignored="only used with --allow-vertex-ai"
        ),
        Flag(
            "vertex-ai-thread-count",
            "int",
            8,
            "Threads of the Vertex AI routes.",
            ignored="only used with --allow-vertex-ai",
        ),
        Flag(
            "vertex-ai-default-model",
            "str",
            "",
            "Model of the default Vertex AI route.",
            ignored="only used with --allow-vertex-ai",
        ),
    ),
}

FLAGS: Final = tuple(replace(flag, group=group) for group, flags in _TABLE.items() for flag in flags)
"""Every flag, in the order of the reference page."""

_BY_NAME: Final = {flag.name: flag for flag in FLAGS}


def find(name: str) -> Flag | None:
    """The row of a flag, given without dashes; None where there is none."""
    return _BY_NAME.get(name)


def environment_name(flag: Flag) -> str:
    """The environment variable that stands for a flag, for example `ALIPES_HTTP_PORT`."""
    return "ALIPES_" + flag.name.upper().replace("-", "_")
