"""Memory of GPUs that a client and a server on one machine share: registered, shown and unregistered."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from alipes.client.arguments import check_request, request_error

__all__ = ["CudaRegions"]

_HANDLE_BYTES: Final = 64
"""Length of a handle. Source: `cudaIpcMemHandle_t` of CUDA."""


class CudaRegions:
    """Regions on GPUs, under the names of tritonclient. An asynchronous client's calls are awaited.

    The memory is the caller's: allocated with `cudaMalloc`, by `tritonclient.utils.cuda_shared_memory` for instance. It
    may be freed once the server has unregistered it.
    """

    def register_cuda_shared_memory(
        self: Any,
        name: str,
        raw_handle: bytes | str,
        device_id: int,
        byte_size: int,
        *,
        timeout_s: float | None = None,
    ) -> Any:
        """Registers memory on a GPU, where tensors of requests may lie from then on.

        Args:
            name: Its name in requests.
            raw_handle: What `cudaIpcGetMemHandle` gives, 64 bytes, or that as base64, as tritonclient has it.
            device_id: The GPU, as the server numbers them.
            byte_size: Bytes from the begin of the allocation on.
            timeout_s: The longest wait.

        Raises:
            InferError: If the server refuses; it must run on this machine, have that GPU and allow it.
        """
        check_request("name", str, "the name of a region", name)
        for argument, value in (("device_id", device_id), ("byte_size", byte_size)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise request_error(argument, "a whole number from 0 on", value)
        return self._drive(self._share_cuda_steps(name, _handle(raw_handle), device_id, byte_size, timeout_s))

    def get_cuda_shared_memory_status(self: Any, region_name: str = "", *, timeout_s: float | None = None) -> Any:
        """The region on a GPU with this name, or all: for each a document of `name`, `device_id` and `byte_size`.

        Raises:
            NotFound: If there is no region on a GPU with this name.
        """
        check_request("region_name", str, "the name of a region", region_name)
        return self._drive(self._cuda_regions_steps(region_name, timeout_s))

    def unregister_cuda_shared_memory(self: Any, name: str = "", *, timeout_s: float | None = None) -> Any:
        """Unregisters the region on a GPU with this name, or all. A name that is not registered is no error.

        A region that requests still use stays until the last of them is answered.
        """
        check_request("name", str, "the name of a region", name)
        return self._drive(self._unshare_cuda_steps(name, timeout_s))


def _handle(raw: bytes | str) -> bytes:
    """A handle's 64 bytes, from these or from their base64."""
    expected = "the 64 bytes of a CUDA handle, or those as base64"
    if not isinstance(raw, (bytes, bytearray, str)):
        raise request_error("raw_handle", expected, raw)
    if isinstance(raw, (bytes, bytearray)) and len(raw) == _HANDLE_BYTES:
        return bytes(raw)
    try:
        handle = base64.b64decode(raw, validate=True)
    except (binascii.Error, ValueError):
        handle = b""
    if len(handle) != _HANDLE_BYTES:
        raise request_error("raw_handle", expected, raw)
    return handle
