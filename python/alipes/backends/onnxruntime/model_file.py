"""An ONNX file that a load asks for its inputs and outputs, and runs on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from alipes.datatypes import array_type, pack_texts, unpack_texts
from alipes.signature import Port, Signature

if TYPE_CHECKING:
    import numpy as np

__all__ = ["OnnxFile", "run_arrays"]


class OnnxFile(Protocol):
    """A loaded file, as `alipes._core.OnnxProbe` is one."""

    def signature(self) -> str:
        """Its inputs and outputs as JSON."""

    def run(self, inputs: Sequence[tuple[Sequence[int], bytes]]) -> Sequence[tuple[str, Sequence[int], bytes]]:
        """Datatype, shape and bytes of each output, for shape and bytes of each input."""


def run_arrays(file: OnnxFile, signature: Signature, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of a file by name.

    Args:
        file: The file.
        signature: What it says of itself.
        arrays: Its inputs by name; texts are `bytes` objects, BF16 is float32.

    Raises:
        ModelLoadError: If the file does not run on them.
    """
    found = file.run([(arrays[port.name].shape, _packed(port, arrays[port.name])) for port in signature.inputs])
    return {port.name: _array(*output) for port, output in zip(signature.outputs, found, strict=True)}


def _packed(port: Port, array: np.ndarray) -> bytes:
    if port.datatype == "BYTES":
        return pack_texts(array.ravel().tolist())
    if port.datatype == "BF16":
        return (array.view("u4") >> 16).astype("u2").tobytes()
    return bytes(array.tobytes())


def _array(datatype: str, shape: Sequence[int], data: bytes) -> Any:
    import numpy as np

    if datatype == "BYTES":
        return np.array(unpack_texts(data), object).reshape(shape)
    if datatype == "BF16":
        return (np.frombuffer(data, "u2").astype("u4") << 16).view("f4").reshape(shape)
    return np.frombuffer(data, array_type(datatype)).reshape(shape)
