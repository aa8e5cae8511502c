"""What the server makes of GPUs that fail, are slow, or are not there: with the stub of the driver alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.gpu_memory import GpuDriver, GpuMemory, GpuRegionClient
from support.models import add_model, times
from support.regions import ALLOWED, CLIENTS, NO_GPUS, ask
from support.server import ServerProcess
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)


def with_gpus(library: Path, devices: int = 2) -> dict[str, str]:
    """The environment of a server on a machine with so many GPUs."""
    return {"LD_LIBRARY_PATH": str(library.parent), "GPU_STUB_DEVICES": str(devices)}


@pytest.fixture(scope="module")
def server(library: Path, tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server with two GPUs and one network thread, which must never wait for a GPU."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    return serve_module(repository, ALLOWED, "--http-thread-count=1", environment=with_gpus(library))


@pytest.mark.parametrize("kind", CLIENTS)
def test_nobody_else_waits_for_a_slow_gpu(server: ServerProcess, driver: GpuDriver, kind: str) -> None:
    client = GpuRegionClient(kind, server)
    with GpuMemory.of(driver, ROW) as source, GpuMemory(driver, 64) as target:
        client.register_gpu("given", source)
        client.register_gpu("taken", target)
        for slow in (source, target):
            slow.hold_copies(True)
            waiting = client.later(
                lambda own: own.infer("times", [own.place("X", ROW, "given")], [own.into("Y", "taken", ROW.nbytes)])
            )
            until(slow.is_waited_for, "the copy has not begun")
            for _ in range(20):
                assert np.array_equal(client.infer("times", [client.send("X", ROW)]).as_numpy("Y"), 2 * ROW)
            assert waiting.is_under_way()
            slow.hold_copies(False)
            waiting.result()
        assert np.array_equal(target.read(np.float32, ROW.shape), 2 * ROW)
        client.unregister_gpu()
    client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_gpu_that_fails_costs_its_request_alone(server: ServerProcess, driver: GpuDriver, kind: str) -> None:
    client = GpuRegionClient(kind, server)
    with GpuMemory.of(driver, ROW) as broken, GpuMemory.of(driver, ROW) as whole:
        client.register_gpu("broken", broken)
        client.register_gpu("whole", whole)
        broken.break_copies()
        text = "GPU memory of shared memory region 'broken' cannot be {}: an illegal memory access was encountered"
        with pytest.raises(InferenceServerException, match=text.format("read")):
            client.infer("times", [client.place("X", ROW, "broken")])
        with pytest.raises(InferenceServerException, match=text.format("written")):
            client.infer("times", [client.place("X", ROW, "whole")], [client.into("Y", "broken", ROW.nbytes)])
        client.infer("times", [client.place("X", ROW, "whole")], [client.into("Y", "whole", ROW.nbytes)])
        assert np.array_equal(whole.read(np.float32, ROW.shape), 2 * ROW)
        client.unregister_gpu()
    client.close()


def test_memory_is_closed_before_unregister_is_answered(server: ServerProcess, driver: GpuDriver) -> None:
    client = GpuRegionClient("http", server)
    with GpuMemory(driver, 64) as memory:
        memory.watch_opens()
        for name in ("a", "b", "c"):
            client.register_gpu(name, memory)
        assert memory.opens() == 3
        client.unregister_gpu("a")
        assert memory.opens() == 2
        client.unregister_gpu()
        assert memory.opens() == 0
        with pytest.raises(InferenceServerException, match="the memory lies on device 0, not on device 1"):
            client.register_handle("d", memory.handle, 1, 64)
        assert memory.opens() == 0
    with GpuMemory(driver, 64, device=1) as memory:
        client.register_gpu("d", memory)
        assert client.gpu_regions() == {"d": (1, 64)}
        client.unregister_gpu()
    client.close()


def test_a_region_behind_an_escape_is_found(server: ServerProcess, driver: GpuDriver) -> None:
    client = GpuRegionClient("http", server)
    with GpuMemory.of(driver, ROW) as memory:
        client.register_gpu("r", memory)
        tensor = r'{"name":"X","shape":[1,3],"datatype":"FP32","parameters":{"\u0073hared_memory_region":"r",'
        tensor += r'"shared_memory_byte_size":12}}'
        status, answer = ask(server, "POST", "/v2/models/times/infer", '{"inputs":[' + tensor + "]}")
        assert (status, answer["outputs"][0]["data"]) == (200, (2 * ROW).ravel().tolist())
        client.unregister_gpu()
    client.close()


def test_many_clients_share_one_gpu(server: ServerProcess, driver: GpuDriver) -> None:
    def play(index: int) -> Callable[[Any], None]:
        def calls(own: GpuRegionClient) -> None:
            row = (index + 1) * ROW
            for factor in range(20):
                own.infer("times", [own.send("X", factor * row)], [own.into("Y", "r", ROW.nbytes, 64 * index)])
                given = [own.place("X", ROW, "r", 64 * index)]
                assert np.array_equal(own.infer("times", given).as_numpy("Y"), 4 * factor * row)

        return calls

    client = GpuRegionClient("grpc", server)
    with GpuMemory(driver, 64 * 8) as memory:
        client.register_gpu("r", memory)
        for calls in [client.later(play(index)) for index in range(8)]:
            calls.result()
        client.unregister_gpu()
    client.close()


def test_without_a_gpu_the_answer_is_the_same_with_and_without_a_driver(
    repository: Path, serve: Serve, library: Path
) -> None:
    add_model(repository, "times", times())
    body = json.dumps({"raw_handle": {"b64": base64.b64encode(bytes(64)).decode()}, "device_id": 0, "byte_size": 8})
    text = "failed to register CUDA shared memory region: 'r', GPUs not supported"
    for environment in (with_gpus(library, devices=0), NO_GPUS):
        server = serve(repository, ALLOWED, environment=environment)
        for sent in (body, "no JSON", ""):
            assert ask(server, "POST", "/v2/cudasharedmemory/region/r/register", sent) == (400, {"error": text})
        assert ask(server, "GET", "/v2/cudasharedmemory/status") == (200, [])
        assert ask(server, "POST", "/v2/cudasharedmemory/unregister") == (200, None)


def test_gpu_memory_is_shared_as_the_operator_says(repository: Path, serve: Serve, library: Path) -> None:
    add_model(repository, "times", times())
    server = serve(repository, environment=with_gpus(library))
    for path in ("region/r/register", "region/r/unregister", "unregister"):
        status, answer = ask(server, "POST", f"/v2/cudasharedmemory/{path}", "{}")
        assert (status, "--allow-client-shm" in answer["error"]) == (501, True)
    limited = serve(repository, ALLOWED, "--shared-memory-max-regions=2", environment=with_gpus(library))
    client = GpuRegionClient("http", limited)
    with GpuMemory(GpuDriver(library), 64) as memory:
        client.register_gpu("a", memory)
        client.register_gpu("b", memory)
        with pytest.raises(InferenceServerException, match="--shared-memory-max-regions"):
            client.register_gpu("c", memory)
        client.unregister_gpu("b")
        client.register_gpu("c", memory)
        until(lambda: list(client.gpu_regions()) == ["a", "c"])
        client.unregister_gpu()
    client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_is_copied_from_a_gpu_counts_as_in_flight(
    repository: Path, serve: Serve, library: Path, driver: GpuDriver, kind: str
) -> None:
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    server = serve(repository, ALLOWED, "--max-inflight-bytes=1000000", environment=with_gpus(library))
    client = GpuRegionClient(kind, server)
    large = np.ones((1, 300_000), np.float32)
    with GpuMemory.of(driver, large) as memory:
        client.register_gpu("r", memory)
        with pytest.raises(InferenceServerException, match=r"a body of 12000\d\d bytes does not fit beside"):
            client.infer("times", [client.place("X", large, "r")], [client.into("Y", "r", large.nbytes)])
        row = large[:, :3]
        client.infer("times", [client.place("X", row, "r")], [client.into("Y", "r", row.nbytes)])
        assert np.array_equal(memory.read(np.float32, (4,)), [2, 2, 2, 1])
        client.unregister_gpu()
    client.close()


def test_a_server_stops_while_memory_is_registered(
    repository: Path, serve: Serve, library: Path, driver: GpuDriver
) -> None:
    add_model(repository, "times", times())
    server = serve(repository, ALLOWED, environment=with_gpus(library))
    client = GpuRegionClient("grpc", server)
    with GpuMemory(driver, 64) as memory:
        client.register_gpu("r", memory)
        client.close()
        assert server.stop() == 0
