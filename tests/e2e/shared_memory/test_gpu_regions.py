"""Tensors in memory of GPUs that client and server share.

With the stub of the driver everywhere; marked `gpu`, the same with the driver and a GPU of this machine.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from alipes import AsyncClient, Client
from alipes.errors import InvalidArgument, NotFound
from support.gpu_memory import LIBRARY, GpuDriver, GpuMemory, GpuRegionClient, build_stub
from support.models import add_model, times
from support.processes import metric
from support.python_models import add_python_model
from support.regions import ALLOWED, CLIENTS, SharedObject
from support.server import ServerProcess
from support.waiting import TIMEOUT_S, until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)

# A request waits until another one joins it.
PAIRS = "max_batch_size: 2 dynamic_batching { max_queue_delay_microseconds: 60000000 }"


@pytest.fixture(scope="module", params=["stub", pytest.param("real", marks=pytest.mark.gpu)])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The driver's library, where it is the stub."""
    return build_stub(tmp_path_factory.mktemp("driver")) if request.param == "stub" else None


@pytest.fixture(scope="module")
def driver(library: Path | None) -> GpuDriver:
    """The driver in the client's process."""
    return GpuDriver(library or LIBRARY)


@pytest.fixture(scope="module")
def server(library: Path | None, tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server on a machine with a GPU, and a model of each kind that looks at tensors in a way of its own."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    add_model(repository, "pairs", times(columns="columns"), config=PAIRS)
    add_python_model(repository, "numbers", signature="X: INT32[-1] -> Y: INT32[-1]")
    add_python_model(repository, "texts", signature="X: BYTES[-1] -> Y: BYTES[-1]")
    return serve_module(repository, ALLOWED, environment={"LD_LIBRARY_PATH": str(library.parent)} if library else None)


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[GpuRegionClient]:
    """A client of the server, once for each protocol; it leaves no region behind."""
    made = GpuRegionClient(request.param, server)
    yield made
    made.unregister()
    made.unregister_gpu()
    until(lambda: not made.gpu_regions() and not made.regions(), "a region is still held")
    made.close()


def test_a_tensor_lies_on_a_gpu_and_its_answer_goes_to_a_gpu(client: GpuRegionClient, driver: GpuDriver) -> None:
    with GpuMemory.of(driver, np.zeros(5, np.float32), ROW) as source, GpuMemory(driver, 64) as target:
        client.register_gpu("given", source)
        client.register_gpu("taken", target)
        assert client.gpu_regions() == {"given": (0, 32), "taken": (0, 64)}
        assert client.gpu_regions("taken") == {"taken": (0, 64)}
        result = client.infer("times", [client.place("X", ROW, "given", 20)], [client.into("Y", "taken", 16, 8)])
        assert np.array_equal(target.read(np.float32, ROW.shape, 8), 2 * ROW)
        output = result.get_output("Y")
        assert (output["shape"] if isinstance(output, dict) else list(output.shape)) == [1, 3]
        assert target.read(np.uint8, (8,)).tolist() == [0] * 8
        assert target.read(np.uint8, (44,), 20).tolist() == [0] * 44
        client.unregister_gpu()


def test_system_memory_and_a_gpu_serve_one_request(client: GpuRegionClient, driver: GpuDriver) -> None:
    with GpuMemory.of(driver, ROW) as source, SharedObject(64) as target:
        client.register_gpu("given", source)
        client.register("taken", target)
        for factor in range(1, 10):
            source.write((factor * ROW).tobytes())
            client.infer("times", [client.place("X", ROW, "given")], [client.into("Y", "taken", ROW.nbytes)])
            assert np.array_equal(target.read(np.float32, ROW.shape), 2 * factor * ROW)
        client.infer("times", [client.place("X", ROW, "taken")], [client.into("Y", "given", ROW.nbytes)])
        assert np.array_equal(source.read(np.float32, ROW.shape), 4 * 9 * ROW)
        assert (list(client.gpu_regions()), client.regions()) == (["given"], ["taken"])
        # Each kind is unregistered by its own call.
        client.unregister()
        client.unregister("given")
        assert (list(client.gpu_regions()), client.regions()) == (["given"], [])
        client.unregister_gpu("given")
        assert not client.gpu_regions()


def test_a_model_in_a_process_of_its_own_gets_the_same(client: GpuRegionClient, driver: GpuDriver) -> None:
    numbers = np.arange(100_000, dtype=np.int32)
    texts = np.frombuffer(b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c", np.uint8)
    with GpuMemory.of(driver, numbers) as source, GpuMemory(driver, numbers.nbytes) as target:
        client.register_gpu("given", source)
        client.register_gpu("taken", target)
        client.infer("numbers", [client.place("X", numbers, "given")], [client.into("Y", "taken", numbers.nbytes)])
        assert np.array_equal(target.read(np.int32, numbers.shape), numbers)
        source.write(texts.tobytes())
        given = client.module.InferInput("X", [3], "BYTES")
        given.set_shared_memory("given", texts.nbytes)
        client.infer("texts", [given], [client.into("Y", "taken", 32, 100)])
        assert np.array_equal(target.read(np.uint8, texts.shape, 100), texts)
        client.unregister_gpu()


def test_requests_of_a_stream_use_memory_on_a_gpu(server: ServerProcess, driver: GpuDriver) -> None:
    client = GpuRegionClient("grpc", server)
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    with GpuMemory.of(driver, ROW) as source, grpc_client.InferenceServerClient(server.grpc) as streaming:
        client.register_gpu("r", source)
        streaming.start_stream(lambda result, error: answers.put((result, error)))
        for factor in (2, 4, 8):
            given, into = [client.place("X", ROW, "r")], [client.into("Y", "r", ROW.nbytes)]
            streaming.async_stream_infer("times", given, outputs=into)
            assert answers.get(timeout=TIMEOUT_S)[1] is None
            assert np.array_equal(source.read(np.float32, ROW.shape), factor * ROW)
        streaming.stop_stream()
        client.unregister_gpu()
    client.close()


def test_a_region_in_use_is_removed_after_its_last_request(
    client: GpuRegionClient, driver: GpuDriver, server: ServerProcess
) -> None:
    with GpuMemory.of(driver, ROW) as memory:
        client.register_gpu("r", memory)
        waiting = client.later(
            lambda own: own.infer("pairs", [own.place("X", ROW, "r")], [own.into("Y", "r", ROW.nbytes)])
        )
        until(lambda: metric(server, "nv_inference_pending_request_count", model="pairs") == 1)
        client.unregister_gpu("r")
        assert list(client.gpu_regions()) == ["r"]
        with pytest.raises(InferenceServerException, match="already in manager"):
            client.register_gpu("r", memory)
        client.infer("pairs", [client.send("X", ROW)])
        waiting.result()
        assert np.array_equal(memory.read(np.float32, ROW.shape), 2 * ROW)
        until(lambda: not client.gpu_regions())


def test_memory_that_cannot_be_opened_is_one_error(client: GpuRegionClient, driver: GpuDriver) -> None:
    with GpuMemory(driver, 64) as memory:
        begin = r"failed to register CUDA shared memory region 'r': "
        for handle, device, size, text in [
            (b"\xff" * 64, 0, 64, "failed to open CUDA IPC handle: "),
            (memory.handle, 1 << 20, 64, "there is no device 1048576: devices 0 to "),
            (memory.handle, 0, 0, "invalid args: 0 bytes were given as its size"),
            (memory.handle, 0, 1 << 40, "invalid args: 1099511627776 bytes were given as its size"),
        ]:
            with pytest.raises(InferenceServerException, match=begin + text) as refused:
                client.register_handle("r", handle, device, size)
            assert refused.value.status() in ("400", "StatusCode.INVALID_ARGUMENT")
        with pytest.raises(InferenceServerException, match=r"has 63 bytes|valid base64 encoded cudaIpcMemHandle_t"):
            client.register_handle("r", b"\xff" * 63, 0, 64)
        with pytest.raises(InferenceServerException, match="Unable to find cuda shared memory region: 'r'"):
            client.gpu_regions("r")
        client.register_gpu("r", memory, 32)
        with pytest.raises(InferenceServerException, match=r"Invalid offset \+ byte size"):
            client.infer("times", [client.place("X", ROW, "r", 24)])
        with pytest.raises(InferenceServerException, match="should be at least 12 bytes to hold the results"):
            client.infer("times", [client.send("X", ROW)], [client.into("Y", "r", 8)])
        with SharedObject(64) as shared, pytest.raises(InferenceServerException, match="already in manager"):
            client.register("r", shared)
        client.unregister_gpu()


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("protocol", ["http", "grpc", ""])
def test_our_clients_register_show_and_unregister(
    server: ServerProcess, driver: GpuDriver, kind: type, protocol: str
) -> None:
    async def play() -> None:
        address = getattr(server, protocol or "http")
        ours = kind(f"{protocol}://{address}" if protocol else address)

        async def call(name: str, *arguments: Any) -> Any:
            answer = getattr(ours, f"{name}_cuda_shared_memory{'_status' * (name == 'get')}")(*arguments)
            return await answer if inspect.isawaitable(answer) else answer

        with GpuMemory(driver, 64) as memory:
            await call("register", "a", memory.handle, 0, 64)
            assert await call("get", "a") == [{"name": "a", "device_id": 0, "byte_size": 64}]
            await call("register", "c", base64.b64encode(memory.handle).decode(), 0, 8)
            assert [region["name"] for region in await call("get")] == ["a", "c"]
            await call("unregister", "a")
            with pytest.raises(NotFound, match="Unable to find cuda shared memory region"):
                await call("get", "a")
            await call("unregister")
            assert await call("get") == []
            with pytest.raises(InvalidArgument, match="raw_handle: expected the 64 bytes of a CUDA handle"):
                await call("register", "d", b"short", 0, 8)
            with pytest.raises(InvalidArgument, match="byte_size: expected a whole number"):
                await call("register", "d", memory.handle, 0, -8)
        ours.close()

    asyncio.run(play())
