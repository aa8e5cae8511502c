"""Calls a module of PyTorch: views of the request in, arrays out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from alipes.signature import Signature
from alipes.worker.frameworks.opened import OpenedModel
from alipes.worker.frameworks.pytorch.binding import InputBinding, OutputBinding
from alipes.worker.frameworks.pytorch.settings import Settings

if TYPE_CHECKING:
    from alipes.worker.frameworks.pytorch.hidden_state import HiddenState

__all__ = ["TORCH_TYPES", "Binding", "TorchModel", "v2_datatype"]

TORCH_TYPES: Final[Mapping[str, torch.dtype]] = {
    "BOOL": torch.bool,
    "UINT8": torch.uint8,
    "UINT16": torch.uint16,
    "UINT32": torch.uint32,
    "UINT64": torch.uint64,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "FP16": torch.float16,
    "FP32": torch.float32,
    "FP64": torch.float64,
}
"""The datatypes that PyTorch and numpy both have."""

# Views of requests are not written to: see `TorchModel._note_writes`.
warnings.filterwarnings("ignore", "The given NumPy array is not writable")

_NAMES: Final = {kind: name for name, kind in TORCH_TYPES.items()}


def v2_datatype(kind: torch.dtype) -> str:
    """The V2 name of an element type; torch's own, such as `bfloat16`, where numpy lacks it."""
    return _NAMES.get(kind, str(kind).removeprefix("torch."))


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the tensors of a model go to and come from.

    Attributes:
        inputs: The argument of each input.
        outputs: The result of each output.
        datatypes: The datatype of each output.
    """

    inputs: InputBinding
    outputs: OutputBinding
    datatypes: Mapping[str, str]


class TorchModel(OpenedModel):
    """A module, and where its tensors go to and come from.

    Attributes:
        signature: What the file says of inputs and outputs.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        binding: Binding,
        settings: Settings,
        *,
        device: str,
        signature: Signature | None,
        state: HiddenState | None = None,
    ) -> None:
        """Takes the module, its bindings, the settings that it runs with, the device that it is on, and its state."""
        self.signature = signature
        self._state = state
        self.hidden = f"the model writes to {state.names}" if state is not None else ""
        self.steps = state is not None and state.whole
        self._module = module
        self._inputs = binding.inputs
        self._outputs = binding.outputs
        self._datatypes = binding.datatypes
        self._settings = settings
        self._device = device
        self._takes_views = False
        self._writes = False

    @property
    def adapts_threads(self) -> bool:
        """Whether nothing says how many: compiled code is compiled again for another number."""
        return self._settings.adapts_threads and self._device == "cpu"

    def set_threads(self, count: int) -> None:
        """Sets the threads within an operator."""
        torch.set_num_threads(count)

    def run(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Runs one batch."""
        values = {name: self._value(array) for name, array in inputs.items()}
        arguments, named = self._inputs.arguments(values)
        with self._settings.running():
            found = self._module(*arguments, **named)
            results = self._outputs.results(found)
            answer = {name: self._array(name, result) for name, result in results.items()}
        self._note_writes(values)
        return answer

    def step(self, inputs: Mapping[str, np.ndarray], state: Any) -> tuple[Mapping[str, np.ndarray], Any]:
        """Runs one batch from a state: the tensors that the module writes to; its outputs may be those very tensors."""
        if self._state is None:
            raise NotImplementedError
        with torch.no_grad():  # a tensor that is made in inference mode cannot be written to outside
            self._state.put(self._state.begins if state is None else state)
            answer = {name: array.copy() for name, array in self.run(inputs).items()}
            return answer, self._state.take()

    def _value(self, array: np.ndarray) -> Any:
        """An array as a tensor: of the same memory, unless the model writes into what it is given."""
        if array.dtype == object:
            return [_text(one) for one in array.reshape(-1)]
        tensor = torch.from_numpy(array)
        if self._device != "cpu":
            return tensor.to(self._device)
        return tensor if self._takes_views else tensor.clone()

    def _note_writes(self, values: Mapping[str, Any]) -> None:
        """Keeps views from a module that works in place, such as one that begins with `ReLU(inplace=True)`.

        torch counts how often a tensor was written to. The first batch is run on copies to see that; a module that
        writes gets copies for ever.
        """
        if self._writes:
            return
        self._writes = any(getattr(value, "_version", 0) for value in values.values())
        self._takes_views = not self._writes

    def _array(self, name: str, result: Any) -> np.ndarray:
        expected = self._datatypes[name]
        if isinstance(result, torch.Tensor):
            found = v2_datatype(result.dtype)
            if found == expected:
                array: np.ndarray = result.detach().cpu().numpy()
                return array
        elif isinstance(result, (list, tuple)) and all(isinstance(one, str) for one in result):
            found = "BYTES"
            if expected == found:
                return np.array([one.encode() for one in result], object)
        else:
            found = type(result).__name__
        raise ValueError(f"output '{name}' of the model is {found}, its configuration says {expected}")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
