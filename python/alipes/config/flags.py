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
_UNIX: Final = "`unix:<path>` is a Unix socket"
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
        Flag(
            "http-address",
            "str",
            "0.0.0.0",
            f"Address of the HTTP endpoint; {_UNIX}.",
            option="http.address",
        ),
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
            "Share the HTTP port with other processes that do so too; the system deals connections out to them.",
            option="http.reuse_port",
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
            "Groups of requests that need a header, `<api,...>:<key>=<value>`.",
        ),
        Flag(
            "http-use-ssl",
            "bool",
            False,
            "Encrypt HTTP connections; needs --http-server-cert and --http-server-key. Not a flag of Triton.",
            option="http.tls.enabled",
        ),
        Flag(
            "http-use-ssl-mutual",
            "bool",
            False,
            "Encrypt HTTP connections and ask clients for a certificate that leads to --http-root-cert. "
            "Not a flag of Triton.",
            option="http.tls.mutual",
        ),
        Flag(
            "http-server-cert",
            "str",
            "",
            "File of the server's certificate and those between it and a root, as PEM. Not a flag of Triton.",
            option="http.tls.certificate",
        ),
        Flag(
            "http-server-key",
            "str",
            "",
            "File of the server's key, as PEM, without a password. Not a flag of Triton.",
            option="http.tls.key",
        ),
        Flag(
            "http-root-cert",
            "str",
            "",
            "File of the roots that certificates of clients lead to, as PEM. Not a flag of Triton.",
            option="http.tls.roots",
        ),
    ),
    "gRPC": (
        Flag("allow-grpc", "bool", True, "Offer gRPC.", option="grpc.enabled"),
        Flag(
            "grpc-address",
            "str",
            "0.0.0.0",
            f"Address of the gRPC endpoint; {_UNIX}.",
            option="grpc.address",
        ),
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
            "Share the gRPC port with other processes that do so too; the system deals connections out to them.",
            option="grpc.reuse_port",
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
        Flag(
            "grpc-use-ssl",
            "bool",
            False,
            "Encrypt gRPC connections; needs --grpc-server-cert and --grpc-server-key.",
            option="grpc.tls.enabled",
        ),
        Flag(
            "grpc-use-ssl-mutual",
            "bool",
            False,
            "Encrypt gRPC connections and ask clients for a certificate that leads to --grpc-root-cert.",
            option="grpc.tls.mutual",
        ),
        Flag(
            "grpc-server-cert",
            "str",
            "",
            "File of the server's certificate and those between it and a root, as PEM.",
            option="grpc.tls.certificate",
        ),
        Flag(
            "grpc-server-key",
            "str",
            "",
            "File of the server's key, as PEM, without a password.",
            option="grpc.tls.key",
        ),
        Flag(
            "grpc-root-cert",
            "str",
            "",
            "File of the roots that certificates of clients lead to, as PEM.",
            option="grpc.tls.roots",
        ),
        Flag(
            "grpc-keepalive-time",
            "int",
            7200000,
            "Milliseconds between two pings of the server; 0, and the default or more, leave that to TCP.",
            option="keepalive.time_ms",
        ),
        Flag(
            "grpc-keepalive-timeout",
            "int",
            20000,
            "Milliseconds to wait for a ping's answer before a connection is given up.",
            low=1,
            option="keepalive.timeout_ms",
        ),
        Flag(
            "grpc-keepalive-permit-without-calls",
            "bool",
            False,
            "Let clients without calls ping as often as those with; otherwise every two hours.",
            option="keepalive.permit_without_calls",
        ),
        Flag(
            "grpc-http2-max-pings-without-data",
            "int",
            2,
            "Pings sent without data between them.",
            ignored="the server pings as often as --grpc-keepalive-time says",
        ),
        Flag(
            "grpc-http2-min-recv-ping-interval-without-data",
            "int",
            300000,
            "Milliseconds that have to pass between two pings of a client while nothing is sent to it.",
            option="keepalive.min_recv_ping_interval_ms",
        ),
        Flag(
            "grpc-http2-max-ping-strikes",
            "int",
            2,
            "Early pings after which a client is told `too_many_pings` and disconnected; 0 takes any number.",
            option="keepalive.max_ping_strikes",
        ),
        Flag(
            "grpc-max-connection-age",
            "int",
            0,
            "Milliseconds until a connection is asked to go after its calls; 0 asks none.",
            option="keepalive.max_connection_age_ms",
        ),
        Flag(
            "grpc-max-connection-age-grace",
            "int",
            0,
            "Milliseconds after which a connection that was asked to go is closed; 0 closes none.",
            option="keepalive.max_connection_age_grace_ms",
        ),
        Flag(
            "grpc-restricted-protocol",
            "list",
            (),
            "Groups of calls that need metadata, `<protocol,...>:<key>=<value>`; "
            "the metadata is called `triton-grpc-protocol-<key>`.",
        ),
    ),
    "Metrics": (
        Flag("allow-metrics", "bool", True, "Offer metrics.", option="metrics.enabled"),
        Flag(
            "metrics-address",
            "str",
            None,
            "Address of the metrics endpoint; the HTTP address where not given, 127.0.0.1 where that is a path. "
            f"{_UNIX}.",
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
        Flag(
            "metrics-use-ssl",
            "bool",
            False,
            "Encrypt metrics connections; needs --metrics-server-cert and --metrics-server-key. Not a flag of Triton.",
            option="metrics.tls.enabled",
        ),
        Flag(
            "metrics-use-ssl-mutual",
            "bool",
            False,
            "Encrypt metrics connections and ask clients for a certificate that leads to --metrics-root-cert. "
            "Not a flag of Triton.",
            option="metrics.tls.mutual",
        ),
        Flag(
            "metrics-server-cert",
            "str",
            "",
            "File of the server's certificate and those between it and a root, as PEM. Not a flag of Triton.",
            option="metrics.tls.certificate",
        ),
        Flag(
            "metrics-server-key",
            "str",
            "",
            "File of the server's key, as PEM, without a password. Not a flag of Triton.",
            option="metrics.tls.key",
        ),
        Flag(
            "metrics-root-cert",
            "str",
            "",
            "File of the roots that certificates of clients lead to, as PEM. Not a flag of Triton.",
            option="metrics.tls.roots",
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
    "Connections": (
        Flag(
            "max-connections",
            "int",
            0,
            "Connections of all clients together; further ones are told to come later. 0 takes three quarters of the "
            "descriptors that the process may open. Connections to the metrics endpoint do not count. "
            "Not a flag of Triton.",
            option="connections.max_connections",
        ),
        Flag(
            "max-header-bytes",
            "int",
            65536,
            "Largest head of a request in bytes: line and headers. Not a flag of Triton.",
            low=1024,
            high=1 << 20,
            option="connections.max_header_bytes",
        ),
        Flag(
            "max-header-count",
            "int",
            100,
            "Most headers of a request. Not a flag of Triton.",
            low=10,
            high=10_000,
            option="connections.max_header_count",
        ),
        Flag(
            "header-timeout-secs",
            "seconds",
            30.0,
            "Longest time until a new connection is set up and has sent its first request's head, and, later, until a "
            "head of which something has come is whole; 0 sets no limit. Not a flag of Triton.",
            option="connections.header_timeout_s",
        ),
        Flag(
            "idle-timeout-secs",
            "seconds",
            3600.0,
            "Longest time that a connection is kept without a request; 0 sets no limit. Not a flag of Triton.",
            option="connections.idle_timeout_s",
        ),
        Flag(
            "stall-timeout-secs",
            "seconds",
            60.0,
            "Longest time in which less than 4096 bytes of a body come, or nothing of an answer is taken; 0 sets no "
            "limit. Not a flag of Triton.",
            option="connections.stall_timeout_s",
        ),
        Flag(
            "http2-max-control-frames",
            "int",
            1000,
            "Frames that carry nothing (pings, settings, resets), a second, that one HTTP/2 connection may send on "
            "average, in bursts of ten seconds' worth; 0 sets no limit. Not a flag of Triton.",
            option="connections.http2_control_frames_per_s",
        ),
        Flag(
            "ssl-reload-secs",
            "seconds",
            10.0,
            "Seconds between two looks at certificates and keys, which are read again when their files change; 0 looks "
            "at them once. Not a flag of Triton.",
            option="connections.tls_reload_s",
        ),
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
            "Form of a line: Triton's own, with the time as ISO 8601 has it, or a JSON document (not one of Triton's).",
            choices=("default", "ISO8601", "JSON"),
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
        Flag(
            "trace-config",
            "list",
            (),
            "Setting of tracing, `<key>=<value>` or `<mode>,<key>=<value>`; see the table of settings.",
        ),
        Flag("trace-file", "str", "", "Older form of --trace-config triton,file.", option="trace.file"),
        Flag("trace-level", "list", (), "Older form of --trace-config level.", option="trace.level"),
        Flag("trace-rate", "int", 1000, "Older form of --trace-config rate.", option="trace.rate"),
        Flag("trace-count", "int", -1, "Older form of --trace-config count.", option="trace.count", low=-1),
        Flag(
            "trace-log-frequency",
            "int",
            0,
            "Older form of --trace-config triton,log-frequency.",
            option="trace.log_frequency",
        ),
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
