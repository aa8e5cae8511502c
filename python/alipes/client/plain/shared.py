"""Memory that a client and a server on one machine both map: tensors in it never cross a socket."""

from __future__ import annotations

import mmap
import os
import secrets
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["SharedMemory"]

_FOLDER: Final = Path("/dev/shm")
_ALIGNMENT: Final = 64


class SharedMemory:
    """A region of memory that the server has registered. A context manager: leaving it releases the memory.

    Attributes:
        name: The region's name at the server.
        byte_size: Its size.
    """

    def __init__(self, byte_size: int) -> None:
        """Creates the memory; the server finds it by `key`."""
        if byte_size <= 0:
            raise ValueError(f"shared memory of {byte_size} bytes: expected at least one")
        self.name = f"alipes-{os.getpid()}-{secrets.token_hex(6)}"
        self.byte_size = byte_size
        self._used = 0
        path = _FOLDER / self.name
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._unlink = weakref.finalize(self, _unlink, path, os.getpid())
        try:
            os.ftruncate(descriptor, byte_size)
            self._memory = mmap.mmap(descriptor, byte_size)
        finally:
            os.close(descriptor)
        self._bytes: npt.NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self._start: int = self._bytes.__array_interface__["data"][0]
        self._on_close: Callable[[float | None], None] | None = None

    def __enter__(self) -> SharedMemory:
        """The region itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Releases the memory."""
        self.close()

    @property
    def key(self) -> str:
        """The name of the object of shared memory, until `remove_name`."""
        return f"/{self.name}"

    def empty(self, shape: Sequence[int], dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
        """An array in the region, after those that were made before; its elements are not initialized.

        Raises:
            ValueError: If there is no room left.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise ValueError("shared memory cannot hold objects: expected a numeric type")
        begin = -(-self._used // _ALIGNMENT) * _ALIGNMENT
        end = begin + prod(shape) * kind.itemsize
        if end > self.byte_size:
            raise ValueError(f"{end - begin} bytes do not fit: {max(self.byte_size - begin, 0)} bytes are left")
        self._used = end
        return self.view(begin, tuple(shape), kind)

    def view(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """An array over what lies at an offset."""
        return np.ndarray(shape, dtype, buffer=self._bytes, offset=offset)

    def place(self, array: npt.NDArray[Any]) -> dict[str, Any] | None:
        """The request parameters for an array in this region; `None` if it is elsewhere."""
        offset = array.__array_interface__["data"][0] - self._start
        if not 0 <= offset <= self.byte_size - max(array.nbytes, 1):
            return None
        return {
            "shared_memory_region": self.name,
            "shared_memory_offset": offset,
            "shared_memory_byte_size": array.nbytes,
        }

    def remove_name(self) -> None:
        """Removes the name, once the server maps the memory: then a killed process leaves nothing behind."""
        self._unlink()

    def on_close(self, forget: Callable[[float | None], None]) -> None:
        """Sets a callback for `close`, which unregisters the region within so many seconds."""
        self._on_close = forget

    def close(self, timeout_s: float | None = None) -> None:
        """Unregisters the region. The memory itself is released with the last array in it, here and at the server.

        Args:
            timeout_s: Longest wait for the server; the client's own by default.
        """
        forget, self._on_close = self._on_close, None
        # The name goes first, if it is still there: a process that is killed meanwhile leaves none behind.
        self._unlink()
        if forget is not None:
            forget(timeout_s)


def _unlink(path: Path, process: int) -> None:
    # A forked process has a copy of the region's object; the memory's name is its parent's.
    if os.getpid() == process:
        with suppress(FileNotFoundError):
            path.unlink()
