"""The table of `parameters` that a model of the Python backend may carry; any other key belongs to the model itself.

Source: the documented keys of Triton's Python backend, in capitals as its users know them, and some of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from alipes.config.call_endpoint import PARAMETER
from alipes.config.options import WorkerOptions
from alipes.config.parameters import Parameter
from alipes.config.values import read_int, read_seconds
from alipes.errors import ConfigError

__all__ = ["WORKER_PARAMETERS", "WorkerParameters", "read_worker_parameters"]

_MAX_BYTES: Final = 2**63 - 1

WORKER_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        "EXECUTION_ENV_PATH",
        "text",
        "works",
        "Python to run the model with, 3.11 or newer and with numpy: the folder of a virtual or conda environment, an "
        "archive of conda-pack, or an interpreter. `$$TRITON_MODEL_DIRECTORY` in front stands for the model's folder. "
        "The server's own where not given.",
    ),
    Parameter(
        "FORCE_CPU_ONLY_INPUT_TENSORS",
        "text",
        "works",
        "Keep inputs in the memory of the CPU: they always are, so either value will do.",
    ),
    Parameter(
        PARAMETER,
        "text",
        "works",
        "An endpoint: plain HTTP requests to `/<name>` reach the model, as [HTTP](http.md) describes. A JSON object "
        'such as `{"methods": ["POST"], "stream": false}`; any other text is the model\'s own.',
    ),
    Parameter("START_TIMEOUT_SECONDS", "seconds", "works", "Longest start of a process, `initialize` included."),
    Parameter("EXECUTE_TIMEOUT_SECONDS", "seconds", "works", "Longest `execute`; the process is then started again."),
    Parameter("STOP_TIMEOUT_SECONDS", "seconds", "works", "Longest `finalize`; the process is then killed."),
    Parameter(
        "MAX_WORKER_MEMORY_BYTES",
        "bytes",
        "works",
        "Resident memory of one process, which is started again above it; 0 sets no limit.",
    ),
    Parameter(
        "MAX_LEASED_BYTES",
        "bytes",
        "works",
        "Inputs that one process may keep after it has answered; 0 sets no limit.",
    ),
    Parameter(
        "TRIAL_REQUEST",
        "text",
        "works",
        "Of models that a framework opens: `false` leaves out the request of zeros that one has to answer before it is "
        "ready.",
    ),
    Parameter(
        "enable_custom_tracing",
        "text",
        "ignored",
        "Let the model write spans of its own into traces.",
        "traces have the server's spans only",
    ),
)


@dataclass(frozen=True, slots=True)
class WorkerParameters:
    """What a model's parameters, and behind them the server's options, say of its processes. 0 sets no limit.

    Attributes:
        environment: `EXECUTION_ENV_PATH` as it is written; empty for the server's own interpreter.
        start_timeout_s: Seconds to start and to initialize.
        execute_timeout_s: Seconds for one execution.
        stop_timeout_s: Seconds to finalize.
        max_memory_bytes: Resident memory of one process.
        max_leased_bytes: Inputs that one process may keep after it has answered.
        notices: One line for each parameter that does nothing here.
    """

    environment: str
    start_timeout_s: float
    execute_timeout_s: float
    stop_timeout_s: float
    max_memory_bytes: int
    max_leased_bytes: int
    notices: tuple[str, ...]


def read_worker_parameters(parameters: Mapping[str, str], name: str, options: WorkerOptions) -> WorkerParameters:
    """Read a model's parameters.

    Args:
        parameters: Key to text, as in the configuration. Keys that are not in the table are the model's own.
        name: The model's name, for messages.
        options: The defaults of absent parameters.

    Raises:
        ConfigError: If the value of a known key cannot be read.
    """
    rows = [row for row in WORKER_PARAMETERS if row.key in parameters]
    seconds = {row.key: _seconds(row, parameters[row.key], name) for row in rows if row.kind == "seconds"}
    sizes = {row.key: _bytes(row, parameters[row.key], name) for row in rows if row.kind == "bytes"}
    ignored = (row for row in rows if row.status == "ignored")
    return WorkerParameters(
        environment=parameters.get("EXECUTION_ENV_PATH", ""),
        start_timeout_s=seconds.get("START_TIMEOUT_SECONDS", options.start_timeout_s),
        execute_timeout_s=seconds.get("EXECUTE_TIMEOUT_SECONDS", options.execute_timeout_s),
        stop_timeout_s=seconds.get("STOP_TIMEOUT_SECONDS", options.stop_timeout_s),
        max_memory_bytes=sizes.get("MAX_WORKER_MEMORY_BYTES", options.max_memory_bytes),
        max_leased_bytes=sizes.get("MAX_LEASED_BYTES", options.max_leased_bytes),
        notices=tuple(f"parameter '{row.key}' of model '{name}' is ignored: {row.note}" for row in ignored),
    )


def _seconds(row: Parameter, text: str, name: str) -> float:
    value = read_seconds(text)
    if value is None:
        raise _wrong(row, "seconds, such as 30 or 0.5", text, name)
    return value


def _bytes(row: Parameter, text: str, name: str) -> int:
    value = read_int(text, 0, _MAX_BYTES)
    if value is None:
        raise _wrong(row, f"an integer from 0 to {_MAX_BYTES}", text, name)
    return value


def _wrong(row: Parameter, expected: str, text: str, name: str) -> ConfigError:
    return ConfigError(
        f"parameter '{row.key}' of model '{name}' must be {expected}, got '{text}'", key=f"parameters.{row.key}"
    )
