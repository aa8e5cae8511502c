"""Memory of GPUs as a client has it: allocated through NVIDIA's driver, or through the stub of that driver."""

from __future__ import annotations

import base64
import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import tritonclient.grpc as grpc_client

from support.regions import RegionClient

LIBRARY: Final = "libcuda.so.1"
HANDLE_BYTES: Final = 64

_SOURCE: Final = Path(__file__).with_name("gpu_stub") / "cuda.c"


def build_stub(folder: Path) -> Path:
    """Compiles the stub of the driver into a folder, for `LD_LIBRARY_PATH`, and returns the library."""
    library = folder / LIBRARY
    words = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-pthread", "-shared", "-o", str(library)]
    subprocess.run([*words, str(_SOURCE)], check=True)
    return library


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * HANDLE_BYTES),)


class GpuDriver:
    """The driver in this process. Source: the CUDA driver API."""

    def __init__(self, library: Path | str) -> None:
        """Loads and starts a driver, by a path or a name."""
        self._library = ctypes.CDLL(str(library))
        self("cuInit", ctypes.c_uint(0))

    def __call__(self, function: str, *arguments: Any) -> None:
        """Calls a function, which has to succeed."""
        outcome = getattr(self._library, function)(*arguments)
        assert outcome == 0, f"{function}: {outcome}"

    def enter(self, device: int) -> None:
        """Makes the device's primary context current on this thread."""
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxPushCurrent_v2", context)

    def leave(self, device: int) -> None:
        """Undoes `enter`."""
        self("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        self("cuDevicePrimaryCtxRelease_v2", device)


class GpuMemory:
    """An allocation on a GPU, freed at the end of the context."""

    def __init__(self, driver: GpuDriver, byte_size: int, device: int = 0) -> None:
        """Memory full of zeroes."""
        self._driver, self.byte_size, self.device = driver, byte_size, device
        self._address = ctypes.c_uint64()
        driver.enter(device)
        driver("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(byte_size))
        self.write(bytes(byte_size))
        handle = _Handle()
        driver("cuIpcGetMemHandle", ctypes.byref(handle), self._address)
        self.handle = bytes(handle)

    @classmethod
    def of(cls, driver: GpuDriver, *arrays: np.ndarray[Any, Any]) -> Self:
        """Memory that holds these arrays, one behind the other."""
        content = b"".join(array.tobytes() for array in arrays)
        made = cls(driver, len(content))
        made.write(content)
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._driver("cuMemFree_v2", self._address)
        self._driver.leave(self.device)
        for suffix in ("broken", "held", "open"):
            self._mark(suffix).unlink(missing_ok=True)

    def write(self, content: bytes, offset: int = 0) -> None:
        """Changes bytes of it."""
        self._driver("cuMemcpyHtoD_v2", self._at(offset), content, ctypes.c_size_t(len(content)))

    def read(self, datatype: type[np.generic], shape: tuple[int, ...], offset: int = 0) -> np.ndarray[Any, Any]:
        """A tensor that lies in it."""
        content = ctypes.create_string_buffer(int(np.prod(shape)) * np.dtype(datatype).itemsize)
        self._driver("cuMemcpyDtoH_v2", content, self._at(offset), ctypes.c_size_t(len(content)))
        return np.frombuffer(content.raw, datatype).reshape(shape)

    def _at(self, offset: int) -> ctypes.c_uint64:
        return ctypes.c_uint64(self._address.value + offset)

    # What follows is the stub's alone.

    def break_copies(self) -> None:
        """Lets the server's copies fail from now on."""
        self._mark("broken").touch()

    def hold_copies(self, held: bool) -> None:
        """Lets the server's copies wait, or go on."""
        if held:
            self._mark("held").touch()
        else:
            self._mark("held").unlink()

    def is_waited_for(self) -> bool:
        """Whether a copy of the server waits now."""
        return self._mark("held").read_text() == "1"

    def watch_opens(self) -> None:
        """Lets the server's stub write down from now on how often it has this memory open."""
        self._mark("open").touch()

    def opens(self) -> int:
        """How often the server has it open."""
        return int(self._mark("open").read_text() or "0")

    def _mark(self, suffix: str) -> Path:
        name = self.handle[12:].partition(b"\0")[0]
        # The handle of a real GPU has no name: nothing is there.
        readable = name.decode("ascii", "replace") if self.handle.startswith(b"GPUSTUB\0") else f"none-{os.getpid()}"
        return Path("/dev/shm") / f"{readable}.{suffix}"


class GpuRegionClient(RegionClient):
    """One of Triton's clients, over HTTP or gRPC, with regions on GPUs."""

    def register_gpu(self, name: str, memory: GpuMemory, byte_size: int | None = None) -> None:
        """Registers memory, or the begin of it."""
        self.register_handle(name, memory.handle, memory.device, memory.byte_size if byte_size is None else byte_size)

    def register_handle(self, name: str, handle: bytes, device: int, byte_size: int) -> None:
        """Registers what a handle stands for."""
        self._client.register_cuda_shared_memory(name, base64.b64encode(handle), device, byte_size)

    def unregister_gpu(self, name: str = "") -> None:
        """Takes a region on a GPU away, or all of them."""
        self._client.unregister_cuda_shared_memory(name)

    def gpu_regions(self, name: str = "") -> dict[str, tuple[int, int]]:
        """Device and size of the regions on GPUs, by name."""
        status = self._client.get_cuda_shared_memory_status(name)
        if self.module is grpc_client:
            return {region.name: (region.device_id, region.byte_size) for region in status.regions.values()}
        return {region["name"]: (region["device_id"], region["byte_size"]) for region in status}
