"""Memory of a GPU that a tester and a server on one machine share, through NVIDIA's driver."""

from __future__ import annotations

import ctypes
import os
import secrets
from contextlib import ExitStack
from typing import Any, Final

from alipes.client import Client
from alipes.errors import AlipesError

__all__ = ["GpuFailed", "GpuRegion"]

_LIBRARY: Final = "libcuda.so.1"
_HANDLE_BYTES: Final = 64
_DEVICE: Final = 0
"""The GPU on which the memory lies: the first, as for the original."""
_RELEASE_S: Final = 5.0
"""Longest wait for a server to let go of the memory."""


class GpuFailed(Exception):
    """The driver is not there, or does not do what it is called for."""


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class GpuRegion:
    """An allocation on a GPU that the server has registered.

    Source: the CUDA driver API, "Context Management", "Memory Management".

    Attributes:
        name: The region's name at the server.
        byte_size: Its size.
    """

    def __init__(self, client: Client, byte_size: int) -> None:
        """Allocates the memory, and registers it with the server.

        Raises:
            GpuFailed: If there is no GPU with so much memory.
            AlipesError: If the server refuses.
        """
        self.name = f"alipes-{os.getpid()}-{secrets.token_hex(6)}"
        self.byte_size, self._used, self._client = byte_size, 0, client
        try:
            self._driver = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise GpuFailed(f"NVIDIA's driver cannot be loaded: {error}") from error
        self._address = ctypes.c_uint64()
        self._call("cuInit", ctypes.c_uint(0))
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), _DEVICE)
        with ExitStack() as undo:
            context = ctypes.c_void_p()
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            undo.callback(self._driver.cuDevicePrimaryCtxRelease_v2, device)
            self._call("cuCtxPushCurrent_v2", context)
            undo.callback(self._driver.cuCtxPopCurrent_v2, ctypes.byref(ctypes.c_void_p()))
            self._call("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(byte_size))
            undo.callback(self._driver.cuMemFree_v2, self._address)
            handle = _Handle()
            self._call("cuIpcGetMemHandle", ctypes.byref(handle), self._address)
            client.register_cuda_shared_memory(self.name, bytes(handle), _DEVICE, byte_size)
            self._undo = undo.pop_all()

    def put(self, content: bytes | int, alignment: int) -> dict[str, Any]:
        """Writes an input, or keeps room for an output: the request parameters that tell where it lies.

        Raises:
            GpuFailed: If the driver does not copy.
        """
        size = content if isinstance(content, int) else len(content)
        begin = -(-self._used // alignment) * alignment
        if begin + size > self.byte_size:
            raise ValueError(f"{size} bytes do not fit: {self.byte_size - begin} bytes are left")
        if isinstance(content, bytes) and content:
            there = ctypes.c_uint64(self._address.value + begin)
            self._call("cuMemcpyHtoD_v2", there, content, ctypes.c_size_t(size))
        self._used = begin + size
        return {
            "shared_memory_region": self.name,
            "shared_memory_offset": begin,
            "shared_memory_byte_size": size,
        }

    def close(self) -> None:
        """Unregisters the region and frees the memory, also where the server does not answer."""
        try:
            self._client.unregister_cuda_shared_memory(self.name, timeout_s=_RELEASE_S)
        except AlipesError:
            pass  # of a server that does not answer nothing more is wanted
        finally:
            self._undo.close()

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._driver, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorString(status, ctypes.byref(text))
            raise GpuFailed(f"{function} of NVIDIA's driver failed: {(text.value or b'').decode() or status}")
