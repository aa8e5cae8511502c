"""A file of PyTorch that has been read, before its tensors have names."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from alipes.signature import Port, Signature
from alipes.worker.frameworks.opened import Opening
from alipes.worker.frameworks.pytorch.binding import Arguments, InputBinding, OutputBinding, Results
from alipes.worker.frameworks.releases import release_explained

__all__ = ["OpenedFile", "safe_pickles"]

_FORCED: Final = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What was read from a file.

    Attributes:
        module: What is called.
        arguments: What it takes.
        results: What it gives.
        signature: Inputs, in the order of the arguments, and outputs, where the file knows their datatypes and shapes.
        examples: What it was traced with, in the order of the arguments; empty where the file does not say.
        weights: Tensors that were read into memory of this process alone; empty where they are views of the file.
        owner: The module whose tensors a call may change; `None` for machine code.
        reload: Gives what is called, read again; for machine code.
    """

    module: Any
    arguments: Arguments
    results: Results
    signature: Signature | None = None
    examples: tuple[Port, ...] = ()
    weights: tuple[Any, ...] = ()
    owner: Any = None
    reload: Callable[[], Any] | None = None

    def named(self, inputs: InputBinding, outputs: OutputBinding) -> Signature | None:
        """The file's signature, with the tensors called as they are bound."""
        if self.signature is None:
            return None
        arguments = dict(inputs.order)
        ports = [replace(port, name=arguments[port.name]) for port in self.signature.inputs if port.name in arguments]
        results = self.signature.outputs
        found = [replace(results[position], name=name) for name, position in outputs.positions.items()]
        return Signature(tuple(ports), tuple(found))


@contextmanager
def safe_pickles(opening: Opening) -> Iterator[None]:
    """Has torch read nothing but tensors from pickles, unless the operator allows the file to run code.

    Raises:
        LoadError: If there is more in them, and the text says how to allow it; or another release wrote them.
    """
    if not opening.allows_pickles:
        os.environ[_FORCED] = "1"  # for calls, too, that would fall back to reading anything
    try:
        with release_explained(opening, again="as TorchScript or as ONNX"):
            yield
    except pickle.UnpicklingError as error:
        if not opening.allows_pickles and "weights_only" in str(error):
            opening.need_pickles("a pickle of more than tensors")
        raise
    finally:
        os.environ.pop(_FORCED, None)
