"""The table of `parameters` that a model of the ONNX Runtime backend may carry.

Source: the backend's documented keys, and ONNX Runtime's own `session.` entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from alipes.config.cuda_options import cuda_option
from alipes.config.limits import MAX_THREADS
from alipes.errors import ConfigError

__all__ = ["PARAMETERS", "EngineParameters", "Parameter", "read_parameters"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One row: a key, how its value is read, and what it does. A key that ends in `*` stands for all that begin so."""

    key: str
    kind: Literal["count", "switch", "bytes", "seconds", "text", "cuda"]
    status: Literal["works", "ignored"]
    help: str
    note: str = ""


PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter("intra_op_thread_count", "count", "works", "Threads within an operator; 0 takes cores ÷ instances."),
    Parameter(
        "inter_op_thread_count", "count", "works", "Threads across operators, in parallel mode; 0 takes the same."
    ),
    Parameter("execution_mode", "switch", "works", "1 runs operators in parallel, 0 one after the other."),
    Parameter("enable_mem_arena", "switch", "works", "0 gives memory back after each run instead of keeping it."),
    Parameter("session.*", "text", "works", "Session entry, handed to ONNX Runtime as it is."),
    Parameter(
        "enable_mem_pattern", "switch", "ignored", "Plan memory from earlier runs.", "ONNX Runtime's default stays"
    ),
    Parameter(
        "memory.enable_memory_arena_shrinkage",
        "text",
        "ignored",
        "Shrink the arena after each run.",
        "set enable_mem_arena to 0 instead",
    ),
    Parameter("cudnn_conv_algo_search", "cuda", "works", "Search for convolutions: 0 exhaustive, 1 heuristic, 2 none."),
    Parameter("gpu_mem_limit", "cuda", "works", "Most bytes of the arena in the GPU's memory."),
    Parameter("arena_extend_strategy", "cuda", "works", "That arena grows 0 by powers of two, 1 by what is asked for."),
    Parameter("do_copy_in_default_stream", "cuda", "works", "1 copies on the stream that computes, 0 on others."),
)


@dataclass(frozen=True, slots=True)
class EngineParameters:
    """The options of ONNX Runtime in a model's parameters.

    Attributes:
        intra_op_threads: Threads within an operator; 0 where the default is wanted.
        inter_op_threads: Threads across operators; 0 where the default is wanted.
        parallel: Whether operators run in parallel.
        memory_arena: Whether the engine keeps its own memory.
        session_config: Entries handed on as they are.
        notices: One line for each parameter that does nothing here.
        cuda: Options of the CUDA provider, in its own words, for instances on a GPU.
    """

    intra_op_threads: int
    inter_op_threads: int
    parallel: bool
    memory_arena: bool
    session_config: dict[str, str]
    notices: tuple[str, ...]
    cuda: dict[str, str] = field(default_factory=dict)


def read_parameters(parameters: Mapping[str, str], name: str) -> EngineParameters:
    """Read a model's parameters.

    Args:
        parameters: Key to text, as in the configuration.
        name: The model's name, for messages.

    Raises:
        ConfigError: If the value of a known key cannot be read.
    """
    numbers: dict[str, int] = {}
    session: dict[str, str] = {}
    cuda: dict[str, str] = {}
    notices: list[str] = []
    for key, text in sorted(parameters.items()):
        row = _find(key)
        if row is None:
            notices.append(f"parameter '{key}' of model '{name}' is ignored: the backend knows no such key")
        elif row.status == "ignored":
            notices.append(f"parameter '{key}' of model '{name}' is ignored: {row.note}")
        elif row.kind == "text":
            session[key] = text
        elif row.kind == "cuda":
            cuda[key] = cuda_option(key, text, name)
        else:
            numbers[key] = _number(row, text, name)
    return EngineParameters(
        intra_op_threads=numbers.get("intra_op_thread_count", 0),
        inter_op_threads=numbers.get("inter_op_thread_count", 0),
        parallel=numbers.get("execution_mode", 0) == 1,
        memory_arena=numbers.get("enable_mem_arena", 1) == 1,
        session_config=session,
        notices=tuple(notices),
        cuda=cuda,
    )


def _find(key: str) -> Parameter | None:
    for row in PARAMETERS:
        if key == row.key or (row.key.endswith("*") and key.startswith(row.key[:-1])):
            return row
    return None


def _number(row: Parameter, text: str, name: str) -> int:
    high = 1 if row.kind == "switch" else MAX_THREADS
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= high:
        return int(text)
    raise ConfigError(
        f"parameter '{row.key}' of model '{name}' must be an integer from 0 to {high}, got '{text}'",
        key=f"parameters.{row.key}",
    )
