"""A client that truncates memory which the server uses harms only its own requests."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc_client
from support.models import add_model, times
from support.processes import metric
from support.regions import ALLOWED, Later, RegionClient, SharedObject
from support.server import ServerProcess
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)
# More than a thousand pages: an engine and a copy meet the end of the memory far inside.
LARGE = np.ones((1, 1 << 20), np.float32)
LOST = "shared memory region 'r' has lost its memory"


@contextmanager
def cut_off(client: RegionClient, row: np.ndarray) -> Iterator[SharedObject]:
    """The region `r`, of which the client leaves the server the first half."""
    with SharedObject.of(row) as shared:
        client.register("r", shared)
        shared.resize(row.nbytes // 2)
        yield shared


def assert_well(client: RegionClient) -> None:
    """The server answers others as ever, and the client whose memory was lost may begin again."""
    assert np.array_equal(client.infer("times", [client.send("X", ROW)]).as_numpy("Y"), 2 * ROW)
    client.unregister("r")
    # The thread that computed may release the memory a moment after the answer has left.
    until(lambda: "r" not in client.regions(), "the region is still held")
    with SharedObject.of(ROW) as shared:
        client.register("r", shared)
        assert np.array_equal(client.infer("times", [client.place("X", ROW, "r")]).as_numpy("Y"), 2 * ROW)


def test_an_engine_that_reads_it_goes_on_and_the_request_fails(client: RegionClient) -> None:
    with cut_off(client, LARGE):
        for _ in range(3):  # the engine meets it once, later requests are refused at once
            with pytest.raises(InferenceServerException, match=LOST):
                client.infer("times", [client.place("X", LARGE, "r")])
        assert_well(client)


@pytest.mark.parametrize(("model", "datatype"), [("floats", np.float32), ("numbers", np.int32)])
def test_the_same_where_it_is_copied_for_a_worker(client: RegionClient, model: str, datatype: type[np.generic]) -> None:
    row = LARGE[0].astype(datatype)
    with cut_off(client, row):
        with pytest.raises(InferenceServerException, match=LOST):
            client.infer(model, [client.place("X", row, "r")])
        assert_well(client)


def test_the_same_where_an_output_is_written(client: RegionClient) -> None:
    with cut_off(client, LARGE) as shared:
        before = shared.read(np.float32, (1, LARGE.size // 2))
        with pytest.raises(InferenceServerException, match=LOST):
            client.infer("times", [client.send("X", LARGE)], [client.into("Y", "r", LARGE.nbytes)])
        assert shared.read(np.float32, (1, LARGE.size // 2)).shape == before.shape
        assert_well(client)


def test_only_the_request_of_the_cut_region_fails(client: RegionClient, server: ServerProcess) -> None:
    with SharedObject.of(LARGE) as shared:
        client.register("r", shared)
        waiting = client.later(lambda own: own.infer("pairs", [own.place("X", LARGE, "r")]))
        until(lambda: metric(server, "nv_inference_pending_request_count", model="pairs") == 1)
        shared.resize(0)
        company = RegionClient("grpc", server)
        answer = company.infer("pairs", [company.send("X", 3 * LARGE)]).as_numpy("Y")
        company.close()
        assert np.array_equal(answer, 6 * LARGE)
        with pytest.raises(InferenceServerException, match=LOST):
            waiting.result()
        assert_well(client)


def test_a_stream_tells_of_it_and_goes_on(server: ServerProcess) -> None:
    client = RegionClient("grpc", server)
    with cut_off(client, LARGE), grpc_client.InferenceServerClient(server.grpc) as streaming:
        answers: list[tuple[object, object]] = []
        came = threading.Semaphore(0)

        def take(result: object, error: object) -> None:
            answers.append((result, error))
            came.release()

        streaming.start_stream(take)
        streaming.async_stream_infer("times", [client.place("X", LARGE, "r")])
        streaming.async_stream_infer("times", [client.send("X", ROW)])
        assert came.acquire(timeout=60) and came.acquire(timeout=60)
        streaming.stop_stream()
        assert LOST in str(answers[0][1])
        assert answers[1][1] is None
    assert_well(client)
    client.unregister()
    client.close()


def test_cutting_again_and_again_under_load_costs_others_nothing(server: ServerProcess) -> None:
    """Engines and copies are at work in the memory at any moment; another client beside sees no error."""
    over = threading.Event()
    outcomes: list[str] = []

    def press() -> None:
        client = RegionClient("http", server)
        while not over.is_set():
            try:
                client.infer("times", [client.place("X", LARGE, "r")], [client.into("Y", "r", LARGE.nbytes)])
            except InferenceServerException as error:
                outcomes.append(str(error.message()))
        client.close()

    def live_well() -> int:
        client = RegionClient("grpc", server)
        answers = 0
        while not over.is_set():
            assert np.array_equal(client.infer("times", [client.send("X", ROW)]).as_numpy("Y"), 2 * ROW)
            answers += 1
        client.close()
        return answers

    hostile = [Later(press) for _ in range(3)]
    good_client = Later(live_well)
    client = RegionClient("http", server)
    with SharedObject.of(LARGE) as shared:
        for size in [0, LARGE.nbytes // 2, LARGE.nbytes - 4096, 4096, 0] * 3:
            client.register("r", shared)
            seen = len(outcomes)
            shared.resize(size)
            until(lambda seen=seen: any(LOST in text for text in outcomes[seen:]))
            client.unregister("r")
            until(lambda: client.regions() == [])
            shared.resize(LARGE.nbytes)
    over.set()
    for one in hostile:
        one.result()
    assert good_client.result() > 0
    assert {text.partition("'")[0] for text in outcomes} <= {
        "shared memory region ",
        "Unable to find shared memory region: ",
    }
    assert_well(client)
    client.unregister()
    client.close()


@pytest.mark.parametrize("python", ["0", "1"], ids=["alone", "beside Python's fault handler"])
def test_a_bus_error_of_its_own_ends_the_server_as_ever(repository: Path, serve: Serve, python: str) -> None:
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    server = serve(repository, ALLOWED, environment={"PYTHONFAULTHANDLER": "1"} if python == "1" else None)
    client = RegionClient("http", server)
    with cut_off(client, LARGE):
        with pytest.raises(InferenceServerException, match=LOST):
            client.infer("times", [client.place("X", LARGE, "r")])
        assert_well(client)
    client.close()
    server.signal(signal.SIGBUS)
    assert server.wait() == -signal.SIGBUS
    assert ("Fatal Python error: Bus error" in server.output) == (python == "1")
