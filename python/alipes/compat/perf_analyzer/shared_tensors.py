"""Requests whose tensors lie in memory that the server maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.client import Client
from alipes.client.plain.shared import SharedMemory
from alipes.compat.perf_analyzer.dataset import Array, Dataset
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.gpu_region import GpuFailed, GpuRegion
from alipes.compat.perf_analyzer.model import Model, Port, server_words
from alipes.compat.perf_analyzer.requests import Prepared, empty_requests, tensor
from alipes.compat.perf_analyzer.settings import Load, Settings
from alipes.datatypes import pack_texts
from alipes.errors import AlipesError

__all__ = ["prepare_shared"]

_Put: TypeAlias = Callable[[bytes | int], dict[str, Any]]
"""Places an input's content, or room for an output: the parameters that tell where it lies."""

_MAX_BYTES: Final = 1 << 30
"""Most memory that is shared."""
_ALIGNMENT: Final = 64
_RELEASE_S: Final = 5.0
"""Longest wait for a server to let go of the memory."""
_AREAS: Final = 2
"""Areas for outputs for each request under way, so that an answer seldom lands in one that is in use."""
_OPEN_IN_FLIGHT: Final = 64
"""Areas for outputs of an open loop."""


def prepare_shared(client: Client, model: Model, settings: Settings, dataset: Dataset, stack: ExitStack) -> Prepared:
    """The requests; the memory is released with the stack.

    Raises:
        Failed: If the server does not map the memory, or it would be too much.
    """
    data = settings.data
    rows = data.batch if model.max_batch else 1
    batches = dataset.batches(data.batch, model.max_batch > 0)
    tensors = [[tensor(model, name, array) for name, array in step.items()] for step, _ in batches]
    contents = [[_content(array) for *_, array in batch] for batch in tensors]
    sizes = {port.name: _output_bytes(port, rows, data.output_bytes) for port in model.outputs.values()}
    count = max(len(batches), _AREAS * _in_flight(settings.load))
    whole = sum(_aligned(len(content)) for batch in contents for content in batch)
    whole += count * sum(map(_aligned, sizes.values()))
    put = _region(client, settings, whole, stack)
    inputs = [
        [(name, datatype, shape, None, put(content)) for (name, datatype, shape, _), content in described]
        for described in (zip(*pair, strict=True) for pair in zip(tensors, contents, strict=True))
    ]
    requests = empty_requests(settings.target)
    for number in range(count):
        outputs = [(name, put(size)) for name, size in sizes.items()]
        requests.infer(model.name, model.version, inputs[number % len(inputs)], outputs, "", dict(data.parameters))
    return Prepared(requests, [], dataset.message)


def _region(client: Client, settings: Settings, size: int, stack: ExitStack) -> _Put:
    """What places tensors in a new region, which is released with the stack."""
    if size > _MAX_BYTES:
        raise Failed(
            f"error: Unable to init infer data manager: {size} bytes of shared memory are more than {_MAX_BYTES}: "
            "lower --output-shared-memory-size, the batch, or the concurrency\n"
        )
    try:
        if settings.data.shared_memory == "cuda":
            on_gpu = GpuRegion(client, max(size, 1))
            stack.callback(_release_gpu, on_gpu)
            return partial(on_gpu.put, alignment=_ALIGNMENT)
        region = client.share(max(size, 1))
        stack.callback(_release, region)
        return partial(_placed, region)
    except AlipesError as error:
        words = server_words(error, settings.target)
        raise Failed(f"error: Unable to init infer data manager: {words}\n") from error
    except GpuFailed as error:
        raise Failed(f"error: Unable to init infer data manager: no memory of a GPU: {error}\n") from error
    except OSError as error:
        raise Failed(f"error: Unable to init infer data manager: no shared memory: {error.strerror}\n") from error


def _release(region: SharedMemory) -> None:
    # The memory is removed all the same: of a server that does not answer nothing more is wanted. Ctrl-C ends the wait.
    with suppress(AlipesError, KeyboardInterrupt):
        region.close(_RELEASE_S)


def _release_gpu(region: GpuRegion) -> None:
    with suppress(KeyboardInterrupt):
        region.close()


def _placed(region: SharedMemory, content: bytes | int) -> dict[str, Any]:
    """Room for an output, or an input's content: the parameters that tell where it lies."""
    size = content if isinstance(content, int) else len(content)
    area = region.empty((size,), np.uint8)
    if isinstance(content, bytes):
        area[:] = np.frombuffer(content, np.uint8)
    return dict(region.place(area) or {})


def _in_flight(load: Load) -> int:
    return int(max(load.start, load.end)) if load.mode in ("concurrency", "periodic") else _OPEN_IN_FLIGHT


def _output_bytes(port: Port, rows: int, unknown: int) -> int:
    """What an output may need: its own size where that is known."""
    if port.spec.datatype == "BYTES" or min(port.shape, default=1) < 0:
        return max(unknown * rows, 1)
    size = 2 if port.spec.datatype == "BF16" else port.spec.dtype.itemsize
    return max(rows * math.prod(port.shape) * size, 1)


def _aligned(size: int) -> int:
    return -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT


def _content(array: Array) -> bytes:
    """The bytes of an input; of text, each element behind its length."""
    if array.dtype.kind != "O":
        return np.ascontiguousarray(array).tobytes()
    return pack_texts(array.flat)
