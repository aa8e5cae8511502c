"""The table of settings inside flags: the keys that `--backend-config` and `--metrics-config` take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from alipes.config.flags import Kind, Status, Value
from alipes.config.nearest import nearest
from alipes.config.values import parse_value
from alipes.errors import ConfigError

__all__ = ["SETTINGS", "Setting", "read_settings"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: a key that a flag takes.

    Attributes:
        flag: The flag that takes it.
        scope: The backend that it belongs to; empty for all of them and for metrics.
        key: The key.
        kind: How its value is read.
        default: Its value where nobody gives one.
        help: What it does, in one line.
        option: Where the value lands in `ServerOptions`, as a dotted path; empty for what does not work.
        ignored: The notice, where the setting does nothing here.
        high: Largest integer allowed.
        low: Smallest integer allowed.
        choices: The words that a `choice` takes.
    """

    flag: str
    scope: str
    key: str
    kind: Kind
    default: Value
    help: str
    option: str = ""
    ignored: str = ""
    high: int = 2**31 - 1
    low: int = 0
    choices: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        """Whether it works or is ignored with a notice."""
        return "ignored" if self.ignored else "works"


_BACKEND: Final = "backend-config"
_METRICS: Final = "metrics-config"
_CACHE: Final = "cache-config"
_TRACE: Final = "trace-config"
_OTEL: Final = "opentelemetry"
_ORT: Final = "onnxruntime"
_BATCH: Final = "default-max-batch-size"
_BATCH_HELP: Final = "Largest batch in rows for completed configurations of models that allow batches"
_PYTHON: Final = "python"
_MAX_BYTES: Final = 2**63 - 1
_NO_SHM: Final = "tensors reach Python models through memory that needs no setting"
_OWN_THREADS: Final = "each model has threads of its own, set by its parameters"

SETTINGS: Final = (
    Setting(
        _CACHE,
        "local",
        "size",
        "int",
        0,
        "Bytes of answers, with the requests that they answer, that are kept for models that want it.",
        option="response_cache_bytes",
        high=_MAX_BYTES,
    ),
    Setting(_BACKEND, "", _BATCH, "int", 4, f"{_BATCH_HELP}.", option="model.default_max_batch_size"),
    Setting(
        _BACKEND,
        _ORT,
        _BATCH,
        "int",
        None,
        f"{_BATCH_HELP}, for ONNX Runtime alone.",
        option="model.onnxruntime_default_max_batch_size",
    ),
    Setting(
        _BACKEND,
        "",
        "auto-complete-config",
        "bool",
        True,
        "Set by Triton itself.",
        ignored="use --disable-auto-complete-config",
    ),
    Setting(
        _BACKEND,
        "",
        "min-compute-capability",
        "str",
        "6.0",
        "Oldest GPU to use.",
        ignored="there is no GPU memory to manage",
    ),
    Setting(
        _BACKEND,
        "",
        "backend-directory",
        "str",
        "",
        "Folder of backend libraries.",
        ignored="backends are Python packages, found by name",
    ),
    Setting(
        _BACKEND,
        _ORT,
        "enable-global-threadpool",
        "bool",
        False,
        "Share one set of threads among models.",
        ignored=_OWN_THREADS,
    ),
    Setting(
        _BACKEND, _ORT, "intra_op_thread_count", "int", 0, "Shared threads within an operator.", ignored=_OWN_THREADS
    ),
    Setting(
        _BACKEND, _ORT, "inter_op_thread_count", "int", 0, "Shared threads across operators.", ignored=_OWN_THREADS
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "start-timeout-seconds",
        "seconds",
        0.0,
        "Longest start of a Python model, `initialize` included; 0 sets no limit.",
        option="worker.start_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "execute-timeout-seconds",
        "seconds",
        0.0,
        "Longest `execute` of a Python model; its process is then started again. 0 sets no limit.",
        option="worker.execute_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "stop-timeout-seconds",
        "seconds",
        30.0,
        "Longest `finalize` of a Python model; its process is then killed. 0 sets no limit.",
        option="worker.stop_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "auto-complete-timeout-seconds",
        "seconds",
        120.0,
        "Longest `auto_complete_config` of a Python model, imports included; 0 sets no limit.",
        option="worker.complete_timeout_s",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "max-worker-memory-bytes",
        "int",
        0,
        "Resident memory of one process of a Python model, which is started again above it; 0 sets no limit.",
        option="worker.max_memory_bytes",
        high=_MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "max-leased-bytes",
        "int",
        1 << 30,
        "Inputs that one process of a Python model may keep after it has answered; 0 sets no limit.",
        option="worker.max_leased_bytes",
        high=_MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "stub-timeout-seconds",
        "int",
        30,
        "Longest start of a process, without `initialize`.",
        ignored="a process that ends is seen at once; start-timeout-seconds limits a start as a whole",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-default-byte-size",
        "int",
        1 << 20,
        "Shared memory of a process at its start.",
        ignored=_NO_SHM,
        high=_MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-growth-byte-size",
        "int",
        1 << 20,
        "Step in which shared memory grows.",
        ignored=_NO_SHM,
        high=_MAX_BYTES,
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        "shm-region-prefix-name",
        "str",
        "triton_python_backend_shm_region_",
        "Name of shared memory.",
        ignored="it has no name: nothing is put into /dev/shm",
    ),
    Setting(_BACKEND, _PYTHON, "shm_message_queue_size", "int", 1000, "Messages in shared memory.", ignored=_NO_SHM),
    Setting(
        _BACKEND,
        _PYTHON,
        "thread-pool-size",
        "int",
        32,
        "Threads that answer calls of a model.",
        ignored="calls of a model wait without threads of their own",
    ),
    Setting(
        _BACKEND,
        _PYTHON,
        _BATCH,
        "int",
        None,
        f"{_BATCH_HELP}, for Python models.",
        ignored="auto_complete_config says what a Python model takes",
    ),
    Setting(
        _METRICS,
        "",
        "counter_latencies",
        "bool",
        True,
        "Show the nv_inference_*_duration_us counters.",
        option="counter_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "histogram_latencies",
        "bool",
        False,
        "Show Triton's histogram of the time to the first response.",
        option="histogram_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "summary_latencies",
        "bool",
        False,
        "Show quantiles of latencies.",
        option="summary_latencies",
    ),
    Setting(
        _METRICS,
        "",
        "summary_quantiles",
        "str",
        "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001",
        "The quantiles to show, with errors, which are read and not needed: values are off by one per cent at most.",
        option="summary_quantiles",
    ),
    Setting(
        _METRICS,
        "",
        "request_histograms",
        "bool",
        True,
        "Show the alipes_inference_* histograms. Not a setting of Triton.",
        option="request_histograms",
    ),
    Setting(
        _TRACE,
        "",
        "mode",
        "choice",
        "triton",
        "Where traces go: `triton` writes Triton's trace file, `opentelemetry` sends spans to a collector.",
        option="trace.mode",
        choices=("triton", _OTEL),
    ),
    Setting(
        _TRACE,
        "",
        "level",
        "list",
        (),
        "What is recorded: OFF, TIMESTAMPS, TENSORS; may be given several times. Spans have no tensors.",
        option="trace.level",
    ),
    Setting(
        _TRACE,
        "",
        "rate",
        "int",
        1000,
        "Every so manieth request is traced. 0 with `opentelemetry`: only requests whose callers trace them.",
        option="trace.rate",
    ),
    Setting(_TRACE, "", "count", "int", -1, "Requests to trace; -1 for any number.", option="trace.count", low=-1),
    Setting(_TRACE, "triton", "file", "str", "", "The trace file.", option="trace.file"),
    Setting(
        _TRACE,
        "triton",
        "log-frequency",
        "int",
        0,
        "So many traces go into a file of their own, `<file>.<number>`; 0 writes all into one.",
        option="trace.log_frequency",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "url",
        "str",
        "http://localhost:4318/v1/traces",
        "Where the collector takes OTLP over HTTP, encrypted where this begins with https://.",
        option="trace.url",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "certificate",
        "str",
        "",
        "File of the roots that an encrypted collector's certificate leads to, as PEM; those that the system trusts "
        "where not given. OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE and OTEL_EXPORTER_OTLP_CERTIFICATE are read too. "
        "Not a setting of Triton.",
        option="trace.certificate",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "resource",
        "list",
        (),
        "What spans say about the server, `<key>=<value>`; may be given several times. OTEL_RESOURCE_ATTRIBUTES is "
        "read too. service.name is triton-inference-server where nobody says otherwise.",
        option="trace.resource",
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_max_queue_size",
        "int",
        2048,
        "Spans that wait at most; also OTEL_BSP_MAX_QUEUE_SIZE.",
        option="trace.max_queue_size",
        low=1,
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_schedule_delay",
        "int",
        5000,
        "Longest time until spans are sent, in milliseconds; also OTEL_BSP_SCHEDULE_DELAY.",
        option="trace.schedule_delay_ms",
        low=1,
    ),
    Setting(
        _TRACE,
        _OTEL,
        "bsp_max_export_batch_size",
        "int",
        512,
        "Spans that are sent at once at most; also OTEL_BSP_MAX_EXPORT_BATCH_SIZE.",
        option="trace.max_export_batch_size",
        low=1,
    ),
)
"""Every setting, in the order of the reference page."""


def read_settings(flag: str, given: Sequence[str]) -> tuple[dict[str, Value], list[str]]:
    """Take the values of a flag apart.

    Args:
        flag: `backend-config`, `metrics-config`, `trace-config` or `cache-config`.
        given: The values in the order given, `<key>=<value>` or `<scope>,<key>=<value>`; a later one wins, unless the
            setting is a list.

    Returns:
        The value of each option that a setting of this flag fills, defaults included, and the notices.

    Raises:
        ConfigError: If a value has another form, or names no known key.
    """
    values = {row.option: row.default for row in SETTINGS if row.flag == flag and row.option}
    notices: list[str] = []
    for text in given:
        row, value = _read_setting(flag, text)
        if row is None:
            notices.append(f"--{flag}={text} is ignored: no such backend is offered")
        elif row.ignored:
            notices.append(f"--{flag}={text} is ignored: {row.ignored}")
        elif row.kind == "list":
            before = values[row.option]
            values[row.option] = (*(before if isinstance(before, tuple) else ()), str(value))
        else:
            values[row.option] = value
    return values, notices


def _read_setting(flag: str, text: str) -> tuple[Setting | None, Value]:
    """The row and value of one setting; no row for the setting of a backend that is not offered."""
    name, equals, value = text.partition("=")
    scope, _, key = name.rpartition(",")
    if not equals or not key:
        raise ConfigError(f"Bad option: \"--{flag}\".\nexpected <key>=<value>, got '{text}'", key=flag)
    rows = [row for row in SETTINGS if row.flag == flag and row.scope == scope]
    for row in rows:
        if row.key == key:
            return row, parse_value(f"--{flag}", row.kind, value, choices=row.choices, low=row.low, high=row.high)
    if scope and not rows:
        return None, value
    close = nearest(key, [row.key for row in rows])
    raise ConfigError(
        f"Bad option: \"--{flag}\".\nunknown setting '{name}'",
        key=name,
        hint=f"did you mean '{close}'?" if close else None,
    )
