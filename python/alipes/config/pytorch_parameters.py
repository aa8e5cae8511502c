"""The table of `parameters` that a model of the PyTorch backend may carry; workers read what they say.

Source: the documented keys of Triton's PyTorch backend, in capitals as its users know them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from alipes.config.parameters import Parameter

__all__ = ["PYTORCH_PARAMETERS", "pytorch_notices"]

PYTORCH_PARAMETERS: Final[tuple[Parameter, ...]] = (
    Parameter(
        "INFERENCE_MODE",
        "text",
        "works",
        "`false` runs the model without gradients only, and not in torch's inference mode.",
    ),
    Parameter(
        "DISABLE_OPTIMIZED_EXECUTION", "text", "works", "`true` keeps the executor of TorchScript from optimizing."
    ),
    Parameter(
        "INTRA_OP_THREAD_COUNT",
        "count",
        "works",
        "Threads within an operator; where not given what `OMP_NUM_THREADS` says, else one, and cores ÷ instances for "
        "long executions that they shorten.",
    ),
    Parameter("INTER_OP_THREAD_COUNT", "count", "works", "Threads that operators of TorchScript run in side by side."),
    Parameter("NUM_THREADS", "count", "works", "The same as `INTRA_OP_THREAD_COUNT`."),
    Parameter("NUM_INTEROP_THREADS", "count", "works", "The same as `INTER_OP_THREAD_COUNT`."),
    Parameter(
        "ENABLE_WEIGHT_SHARING",
        "text",
        "works",
        "`true` keeps one copy of the weights in memory for all instances; weights beside a factory have that anyway.",
    ),
    Parameter(
        "TORCH_COMPILE_OPTIONAL_PARAMETERS",
        "text",
        "works",
        'What `torch.compile` is given, as JSON, such as `{"mode": "reduce-overhead"}`; it needs a C++ compiler.',
    ),
    Parameter("ENABLE_JIT_EXECUTOR", "text", "works", "`false` takes TorchScript's simple executor."),
    Parameter("ENABLE_JIT_PROFILING", "text", "works", "`false` keeps the executor from profiling the first batches."),
    Parameter("ENABLE_TENSOR_FUSER", "text", "works", "`false` keeps the executor from fusing operators."),
    Parameter("DISABLE_CUDNN", "text", "works", "`true` runs without cuDNN, on a GPU."),
    Parameter("ENABLE_NVFUSER", "text", "ignored", "Fuse operators by nvFuser.", "PyTorch has it no more"),
    Parameter(
        "ENABLE_CACHE_CLEANING",
        "text",
        "ignored",
        "Empty PyTorch's cache of GPU memory after each execution.",
        "PyTorch keeps the memory for the next execution",
    ),
)


def pytorch_notices(keys: Iterable[str], name: str) -> list[str]:
    """One line for each parameter of a model that does nothing here."""
    ignored = {row.key: row.note for row in PYTORCH_PARAMETERS if row.status == "ignored"}
    return [f"parameter '{key}' of model '{name}' is ignored: {ignored[key]}" for key in sorted(keys) if key in ignored]
