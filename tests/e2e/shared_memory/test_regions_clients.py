"""Triton's own module for shared memory, with each of its four clients."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from typing import Any

import numpy as np
import pytest
import tritonclient.utils.shared_memory as shm
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)


async def done(answer: Any) -> Any:
    """The answer of a client, whether it has to be awaited or not."""
    return await answer if inspect.isawaitable(answer) else answer


def names(status: Any) -> list[str]:
    """The names in a status answer."""
    return [region["name"] for region in status] if isinstance(status, list) else sorted(status.regions)


@pytest.mark.parametrize("flavour", ["http", "grpc", "http.aio", "grpc.aio"])
def test_regions_are_registered_used_and_unregistered(server: ServerProcess, flavour: str) -> None:
    asyncio.run(play(flavour, getattr(server, flavour.partition(".")[0])))


async def play(flavour: str, address: str) -> None:
    module: Any = importlib.import_module(f"tritonclient.{flavour}")
    prefix = f"alipes_{flavour.replace('.', '_')}_{id(module)}"
    source = shm.create_shared_memory_region("given", f"{prefix}_given", ROW.nbytes)
    target = shm.create_shared_memory_region("taken", f"{prefix}_taken", 4096 + ROW.nbytes)
    client = module.InferenceServerClient(address)
    try:
        shm.set_shared_memory_region(source, [ROW])
        await done(client.register_system_shared_memory("given", f"{prefix}_given", ROW.nbytes))
        await done(client.register_system_shared_memory("taken", f"{prefix}_taken", ROW.nbytes, offset=4096))
        assert names(await done(client.get_system_shared_memory_status())) == ["given", "taken"]
        assert names(await done(client.get_system_shared_memory_status("taken"))) == ["taken"]
        tensor = module.InferInput("X", [1, 3], "FP32")
        tensor.set_shared_memory("given", ROW.nbytes)
        wanted = module.InferRequestedOutput("Y")
        wanted.set_shared_memory("taken", ROW.nbytes)
        await done(client.infer("times", [tensor], outputs=[wanted]))
        assert np.array_equal(shm.get_contents_as_numpy(target, np.float32, [1, 3], 4096), 2 * ROW)
        await done(client.unregister_system_shared_memory("given"))
        assert names(await done(client.get_system_shared_memory_status())) == ["taken"]
        await done(client.unregister_system_shared_memory())
        assert names(await done(client.get_system_shared_memory_status())) == []
        assert names(await done(client.get_cuda_shared_memory_status())) == []
        with pytest.raises(InferenceServerException, match="GPUs not supported"):
            await done(client.register_cuda_shared_memory("c", b"AAAA", 0, 16))
    finally:
        await done(client.close())
        shm.destroy_shared_memory_region(source)
        shm.destroy_shared_memory_region(target)
