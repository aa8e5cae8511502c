"""Inputs that are copied out of regions take memory of the server, which is charged before it is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.models import add_model, times
from support.python_models import add_python_model
from support.regions import ALLOWED, CLIENTS, NO_GPUS, RegionClient, SharedObject
from support.server import ServerProcess
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ADDS = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(Y=(given(request, "A") + given(request, "B"))[:1]) for request in requests]
"""
NUMBERS = np.arange(1, 150_001, dtype=np.int32)  # 600,000 bytes


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> ServerProcess:
    """A server with room for a million bytes of requests: numbers are copied out of regions, and floats are not."""
    repository: Path = tmp_path_factory.mktemp("models")
    add_model(repository, "times", times(columns="columns"), config="max_batch_size: 0")
    add_python_model(repository, "adds", ADDS, signature="A: INT32[-1], B: INT32[-1] -> Y: INT32[1]")
    return serve_module(repository, ALLOWED, "--max-inflight-bytes=1000000", environment=NO_GPUS)


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_is_copied_from_a_region_counts_as_in_flight(small: ServerProcess, kind: str) -> None:
    client = RegionClient(kind, small)
    try:
        with SharedObject.of(NUMBERS, NUMBERS) as shared:
            client.register("r", shared)
            halves = client.place("A", NUMBERS, "r"), client.place("B", NUMBERS, "r", NUMBERS.nbytes)
            refusal = "a body of 1200000 bytes does not fit beside"
            for _ in range(3):
                with pytest.raises(InferenceServerException, match=refusal):
                    client.infer("adds", halves)
            few = NUMBERS[:100_000]  # two fit, and again and again: what was charged is given back
            for _ in range(3):
                answer = client.infer("adds", [client.place("A", few, "r"), client.place("B", few, "r")])
                assert answer.as_numpy("Y").tolist() == [2]
            client.unregister("r")
    finally:
        client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_body_and_what_is_copied_count_together(small: ServerProcess, kind: str) -> None:
    client = RegionClient(kind, small)
    try:
        with SharedObject.of(NUMBERS) as shared:
            client.register("r", shared)
            with pytest.raises(InferenceServerException, match=r"a body of 1200\d\d\d bytes does not fit beside"):
                client.infer("adds", [client.place("A", NUMBERS, "r"), client.send("B", NUMBERS)])
            few = NUMBERS[:100_000]
            answer = client.infer("adds", [client.place("A", few, "r"), client.send("B", few)])
            assert answer.as_numpy("Y").tolist() == [2]
            client.unregister("r")
    finally:
        client.close()


@pytest.mark.parametrize("kind", CLIENTS)
def test_what_stays_in_its_region_takes_no_room(small: ServerProcess, kind: str) -> None:
    client = RegionClient(kind, small)
    try:
        row = np.ones((1, 300_000), np.float32)
        with SharedObject.of(row) as source, SharedObject(row.nbytes) as target:
            client.register("given", source)
            client.register("taken", target)
            client.infer("times", [client.place("X", row, "given")], [client.into("Y", "taken", row.nbytes)])
            assert np.array_equal(target.read(np.float32, row.shape), 2 * row)
            client.unregister()
    finally:
        client.close()
