"""What the parameters of a model say of how PyTorch runs it.

Source: the documented keys of Triton's PyTorch backend.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Final

import torch

from alipes.worker.frameworks.opened import Opening

__all__ = ["Settings", "apply", "read_settings"]


_COMPILE: Final = "TORCH_COMPILE_OPTIONAL_PARAMETERS"
_THREADS: Final = ("INTRA_OP_THREAD_COUNT", "NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Settings:
    """How PyTorch runs a model.

    Attributes:
        inference_mode: Whether tensors are without all that training needs; else they are only without gradients.
        optimizes: Whether the executor of TorchScript optimizes.
        shares: Whether weights are views of the file, which all instances share.
        compile: What `torch.compile` is given; `None` where the model runs as it is.
        states_threads: Whether the parameters say how many threads there are within an operator.
    """

    inference_mode: bool
    optimizes: bool
    shares: bool
    compile: dict[str, Any] | None
    states_threads: bool = False

    @property
    def adapts_threads(self) -> bool:
        """Whether executions may differ in their threads: what is compiled would be compiled again."""
        return not self.states_threads and self.compile is None

    def running(self) -> AbstractContextManager[object]:
        """What an execution is in."""
        mode: AbstractContextManager[object] = torch.inference_mode() if self.inference_mode else torch.no_grad()
        if self.optimizes:
            return mode
        stack = ExitStack()
        stack.enter_context(mode)
        stack.enter_context(torch.jit.optimized_execution(False))
        return stack


def read_settings(opening: Opening) -> Settings:
    """Reads a model's parameters.

    Raises:
        LoadError: If one has a value that cannot be read.
    """
    return Settings(
        inference_mode=opening.flag("INFERENCE_MODE", True),
        optimizes=not opening.flag("DISABLE_OPTIMIZED_EXECUTION", False),
        shares=opening.flag("ENABLE_WEIGHT_SHARING", False),
        compile=_compile(opening),
        states_threads=any(opening.parameter(key) for key in _THREADS),
    )


def apply(opening: Opening) -> None:
    """Sets what holds for the whole process: its threads, and the fusers of TorchScript.

    Raises:
        LoadError: If a parameter has a value that cannot be read, or there is no such device.
    """
    first, second = _THREADS
    threads = opening.number(first, opening.number(second, opening.threads))
    torch.set_num_threads(threads)
    between = opening.number("INTER_OP_THREAD_COUNT", opening.number("NUM_INTEROP_THREADS", 0, low=0), low=0)
    if between not in (0, torch.get_num_interop_threads()):  # it can be set once in a process
        torch.set_num_interop_threads(between)
    if opening.parameter("ENABLE_TENSOR_FUSER"):
        torch._C._jit_set_texpr_fuser_enabled(opening.flag("ENABLE_TENSOR_FUSER", True))
    if opening.parameter("ENABLE_JIT_EXECUTOR"):
        torch._C._jit_set_profiling_executor(opening.flag("ENABLE_JIT_EXECUTOR", True))
    if opening.parameter("ENABLE_JIT_PROFILING"):
        torch._C._jit_set_profiling_mode(opening.flag("ENABLE_JIT_PROFILING", True))
    if opening.flag("DISABLE_CUDNN", False):
        torch.backends.cudnn.enabled = False
    if opening.device != "cpu" and not torch.cuda.is_available():
        raise opening.refuse(
            f"it is to run on {opening.device}, and PyTorch {torch.__version__} finds no GPU here: set the kind of its "
            "instance_group to KIND_CPU, or install PyTorch with CUDA"
        )


def _compile(opening: Opening) -> dict[str, Any] | None:
    """What `torch.compile` is given: Triton's parameter is a JSON object, whose `disable` leaves the model as it is."""
    text = opening.parameter(_COMPILE)
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    known = {"fullgraph", "dynamic", "backend", "mode", "options", "disable"}
    if not isinstance(found, dict) or not set(found) <= known:
        raise opening.refuse(
            f"parameter {_COMPILE} must be a JSON object with what torch.compile takes ({', '.join(sorted(known))}), "
            f"got '{text[:100]}'"
        )
    off = str(found.pop("disable", False)).lower() in ("true", "1")
    return None if off else found
