"""Requests whose tensors lie in memory that the server maps too, so that only their places are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from alipes.client import Client, Tls
from alipes.datatypes import pack_texts
from alipes.errors import AlipesError, ConfigError
from alipes.loadtest.inputs import Call, ModelRequests

if TYPE_CHECKING:
    from alipes._core import LoadTestRequests
    from alipes.client import SharedMemory

__all__ = ["SharedMemoryRequests"]

_Place: TypeAlias = dict[str, Any]
_MAX_BYTES: Final = 1 << 30
"""Most shared memory of one load."""
_ALIGNMENT: Final = 64
"""To which multiple of bytes each tensor begins."""
_RELEASE_S: Final = 5.0
"""Longest wait for a server to let go of the region."""


class SharedMemoryRequests:
    """Inference requests whose inputs, and if wanted outputs, lie in one region of system shared memory.

    A context manager: the region is registered with the server where the block begins; it is unregistered and removed
    where the block is left, whatever ends it. Each of the requests that differ has places of its own, so outputs of
    requests under way beyond these are written over each other.
    """

    def __init__(
        self,
        requests: ModelRequests,
        address: str,
        *,
        output_bytes: int = 0,
        headers: Mapping[str, str] | None = None,
        tls: Tls | None = None,
    ) -> None:
        """Checks the size; nothing is created yet.

        Args:
            requests: What is sent.
            address: The server, on this machine.
            output_bytes: Room for each output of a request; 0 has outputs sent.
            headers: Of the calls that register the region.
            tls: How connections are encrypted.

        Raises:
            ConfigError: If the room is less than 0.
        """
        if output_bytes < 0:
            raise ConfigError(f"output_bytes is {output_bytes}: expected bytes, 0 or more", key="output_bytes")
        self._requests = requests
        self._output_bytes = output_bytes
        self._client = Client(address, headers=dict(headers or {}), tls=tls)
        self._region: SharedMemory | None = None
        self._calls: list[Call] = []
        self._how: dict[str, bool] = {}

    def __enter__(self) -> Self:
        """Creates the region, writes the inputs into it, and registers it.

        Raises:
            ConfigError: If a shape stays open, data does not fit, or the tensors take too much memory.
            AlipesError: If the server does not know the model, or refuses the region.
        """
        try:
            self._how = self._requests.how(self._client)
            signature = self._client.signature(self._requests.model, self._requests.version)
            outputs = tuple(signature.outputs) if self._output_bytes else ()
            tensors = self._requests.tensors(self._client)
            self._region = self._client.share(self._size(tensors, len(outputs)))
            self._calls = [self._place(self._region, inputs, outputs) for inputs in tensors]
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Unregisters and removes the region."""
        self.close()

    def close(self) -> None:
        """Unregisters and removes the region; a server that is gone needs no word of it."""
        region, self._region = self._region, None
        try:
            if region is not None:
                region.close(_RELEASE_S)
        except AlipesError:
            pass  # the memory is removed all the same, and a server that answers nothing maps nothing for long
        finally:
            self._client.close()

    @property
    def region(self) -> str:
        """The region's name at the server; empty outside the block."""
        return self._region.name if self._region is not None else ""

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._requests.model

    @property
    def version(self) -> str:
        """Its version; empty where the server chooses."""
        return self._requests.version

    @property
    def parameters(self) -> Mapping[str, bool | int | float | str]:
        """Of each request."""
        return self._requests.parameters

    @property
    def stream(self) -> bool:
        """Whether requests go over streams of gRPC."""
        return self._requests.stream

    @property
    def shares_outputs(self) -> bool:
        """Whether outputs lie in the region, and not in the answers."""
        return self._output_bytes > 0

    def fill(self, requests: LoadTestRequests, client: Client) -> None:
        """Adds the requests.

        Raises:
            ConfigError: Outside the block.
        """
        for inputs, outputs in self.calls(client):
            requests.infer(self.model, self.version, inputs, outputs, "", dict(self.parameters), **self.how(client))

    def calls(self, client: Client) -> list[Call]:
        """The places of the inputs and outputs of each request.

        Raises:
            ConfigError: Outside the block.
        """
        if self._region is None:
            raise ConfigError("requests in shared memory exist inside of their with block")
        return self._calls

    def how(self, client: Client) -> dict[str, bool]:
        """How requests travel, as the engine takes it."""
        return self._how

    def _size(self, tensors: Sequence[Sequence[tuple[Any, ...]]], outputs: int) -> int:
        inputs = sum(_aligned(len(_content(tensor[3]))) for one in tensors for tensor in one)
        size = inputs + len(tensors) * outputs * _aligned(self._output_bytes)
        if size > _MAX_BYTES:
            raise ConfigError(
                f"the tensors take {size:,} bytes of shared memory, more than {_MAX_BYTES:,}",
                hint="use a smaller variety",
            )
        return max(size, _ALIGNMENT)

    def _place(self, region: SharedMemory, inputs: Sequence[tuple[Any, ...]], outputs: Sequence[str]) -> Call:
        placed = []
        for name, datatype, shape, array in inputs:
            content = _content(array)
            room = region.empty(content.shape, np.uint8)
            room[:] = content
            placed.append((name, datatype, shape, None, _of(region, room)))
        wanted = [(name, _of(region, region.empty((self._output_bytes,), np.uint8))) for name in outputs]
        return placed, wanted or None


def _of(region: SharedMemory, room: npt.NDArray[np.uint8]) -> _Place:
    if not room.nbytes:
        raise ConfigError("an input is empty: shared memory cannot hold it")
    place = region.place(room)
    assert place is not None, "the room was made in this region"
    return place


def _content(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """The bytes of a tensor; each element of BYTES behind its length."""
    if array.dtype.kind != "O":
        return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    elements = (element.encode() if isinstance(element, str) else bytes(element) for element in array.ravel())
    return np.frombuffer(pack_texts(elements), np.uint8)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
