"""Tensors that `alipes.Client` names by their place: on a GPU, by the stub of the driver, and in system memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from alipes import AsyncClient, Client
from alipes.client import RegionTensor
from alipes.errors import InferError, InvalidArgument, NotFound
from support.gpu_memory import GpuDriver, GpuMemory
from support.models import add_model, times
from support.regions import ALLOWED, RegionClient, SharedObject
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)


@pytest.fixture(scope="module")
def server(library: Path, tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server with a GPU."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    environment = {"LD_LIBRARY_PATH": str(library.parent), "GPU_STUB_DEVICES": "1"}
    return serve_module(repository, ALLOWED, environment=environment)


@pytest.fixture(params=["http", "grpc"])
def address(request: pytest.FixtureRequest, server: ServerProcess) -> str:
    """The server's address over each protocol."""
    return f"{request.param}://{getattr(server, request.param)}"


def test_inputs_and_outputs_lie_on_a_gpu(address: str, driver: GpuDriver) -> None:
    with Client(address) as client, GpuMemory(driver, 64 + ROW.nbytes) as given, GpuMemory(driver, 4096) as taken:
        given.write(ROW.tobytes(), 64)
        client.register_cuda_shared_memory("gpu given", given.handle, given.device, given.byte_size)
        client.register_cuda_shared_memory("taken", taken.handle, taken.device, taken.byte_size)
        source = RegionTensor("gpu given", ROW.shape, offset=64)
        room = RegionTensor("taken", offset=16, byte_size=1024)
        outputs = client.infer("times", {"X": source}, outputs={"Y": room})
        assert outputs == {"Y": RegionTensor("taken", ROW.shape, 16, ROW.nbytes)}
        assert np.array_equal(taken.read(np.float32, ROW.shape, 16), 2 * ROW)
        assert np.array_equal(client.infer("times", source), 2 * ROW)  # out by wire
        client.infer("times", ROW, outputs={"Y": RegionTensor("taken", ROW.shape)})  # in by wire
        assert np.array_equal(taken.read(np.float32, ROW.shape), 2 * ROW)
        given.write((3 * ROW).tobytes(), 64)
        assert np.array_equal(client.infer("times", {"X": source})["Y"], 6 * ROW)
        client.unregister_cuda_shared_memory("gpu given")
        with pytest.raises(NotFound, match="gpu given"):
            client.infer("times", source)
        client.unregister_cuda_shared_memory()


def test_room_that_is_too_small_is_named(address: str, driver: GpuDriver) -> None:
    with Client(address) as client, GpuMemory(driver, 64) as taken:
        client.register_cuda_shared_memory("taken", taken.handle, taken.device, taken.byte_size)
        with pytest.raises(InferError, match=r"output 'Y' \(4 bytes\) should be at least 12 bytes"):
            client.infer("times", ROW, outputs={"Y": RegionTensor("taken", byte_size=4)})
        with pytest.raises(InvalidArgument, match="'Y' of model 'times' needs its shape or its byte_size"):
            client.infer("times", ROW, outputs={"Y": RegionTensor("taken")})
        client.unregister_cuda_shared_memory()


def test_an_asynchronous_client_names_them_too(address: str, driver: GpuDriver) -> None:
    async def play(given: GpuMemory) -> None:
        async with AsyncClient(address) as client:
            await client.register_cuda_shared_memory("given", given.handle, given.device, given.byte_size)
            here = RegionTensor("given", ROW.shape)
            await client.infer("times", here, outputs={"Y": here})
            await client.unregister_cuda_shared_memory()

    with GpuMemory.of(driver, ROW) as given:
        asyncio.run(play(given))
        assert np.array_equal(given.read(np.float32, ROW.shape), 2 * ROW)


def test_a_region_of_system_memory_that_another_registered_is_named(server: ServerProcess, address: str) -> None:
    other = RegionClient("grpc", server)
    with Client(address) as client, SharedObject.of(ROW) as shared:
        other.register("theirs", shared)
        here = RegionTensor("theirs", ROW.shape)
        assert np.array_equal(client.infer("times", here), 2 * ROW)
        client.infer("times", here, outputs={"Y": here})
        assert np.array_equal(shared.read(np.float32, ROW.shape), 2 * ROW)
        other.unregister()
    other.close()
