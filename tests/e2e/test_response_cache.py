"""Cached answers: an equal request gets them without the model, and no other request does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from support.endpoints import GrpcEndpoint, HttpEndpoint, Refusal
from support.models import add_model, times
from support.python_models import add_python_model
from support.server import ServerProcess
from tritonclient.utils import shared_memory

Serve = Callable[..., ServerProcess]

CACHED = "response_cache { enable: true }\n"
LOCAL = "--cache-config=local,size=1048576"

# Y is X, and N counts the executions.
COUNTS = """
class TritonPythonModel:
    def initialize(self, args):
        self.executions = 0

    def execute(self, requests):
        self.executions += len(requests)
        return [answer(Y=given(request), N=np.array([self.executions], np.int32)) for request in requests]
"""
SIGNATURE = "X: INT32[-1] -> Y: INT32[-1], N: INT32[1]"


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    return serve(repository, LOCAL, "--allow-client-shm=true")


@pytest.fixture
def endpoint(server: ServerProcess) -> Iterator[HttpEndpoint]:
    with HttpEndpoint(server) as opened:
        yield opened


def cache_counts(endpoint: HttpEndpoint, model: str) -> tuple[int, int, int]:
    """Hits, misses, executions."""
    statistics = endpoint.statistics(model)
    tallies = statistics["inference_stats"]
    return tallies["cache_hit"]["count"], tallies["cache_miss"]["count"], statistics["execution_count"]


def exposition(server: ServerProcess) -> str:
    connection = HTTPConnection(server.metrics)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def metric(server: ServerProcess, name: str) -> float:
    text = exposition(server)
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_what_one_endpoint_has_answered_the_other_answers_again(server: ServerProcess, endpoint: HttpEndpoint) -> None:
    first = endpoint.ask("counts", {"X": [1, 2]})
    with GrpcEndpoint(server) as other:
        again = other.ask("counts", {"X": [1, 2]}, request_id="another")
    assert (first["N"].tolist(), again["N"].tolist(), again["Y"].tolist()) == ([1], [1], [1, 2])
    assert cache_counts(endpoint, "counts") == (1, 1, 1)
    assert metric(server, "nv_cache_num_hits_per_model") == metric(server, "nv_cache_num_misses_per_model") == 1
    assert metric(server, "alipes_response_cache_entries") == 1


def test_a_request_that_differs_in_anything_is_another_one(endpoint: HttpEndpoint) -> None:
    bodies = [
        endpoint.ask("counts", {"X": [1, 2]}),
        endpoint.ask("counts", {"X": [1, 3]}),
        endpoint.ask("counts", {"X": [1, 2, 0]}),
        endpoint.ask("counts", {"X": [1, 2]}, parameters={"p": 1}),
        endpoint.ask("counts", {"X": [1, 2]}, parameters={"p": 2}),
        endpoint.ask("counts", {"X": [7]}, outputs=["N"]),
        endpoint.ask("counts", {"X": [7]}, outputs=["Y", "N"]),
    ]
    assert [reply["N"].tolist() for reply in bodies] == [[number] for number in range(1, 8)]
    assert cache_counts(endpoint, "counts")[0] == 0


def test_an_error_is_not_cached(repository: Path, serve: Serve) -> None:
    source = """
    class TritonPythonModel:
        def initialize(self, args):
            self.failed = False

        def execute(self, requests):
            if not self.failed:
                self.failed = True
                raise ValueError("the first time")
            return [answer(Y=given(request)) for request in requests]
    """
    add_python_model(repository, "m", source, config=CACHED)
    with HttpEndpoint(serve(repository, LOCAL)) as endpoint:
        with pytest.raises(Refusal, match="the first time"):
            endpoint.ask("m", {"X": [1]})
        assert endpoint.ask("m", {"X": [1]})["Y"].tolist() == [1]
        assert endpoint.ask("m", {"X": [1]})["Y"].tolist() == [1]
        assert cache_counts(endpoint, "m") == (1, 1, 2)


def test_a_reload_forgets_what_the_old_model_answered(repository: Path, serve: Serve) -> None:
    folder = add_model(repository, "m", times(2.0), config=f"max_batch_size: 8 {CACHED}")
    x = {"X": np.ones((1, 2), np.float32)}
    server = serve(repository, LOCAL, "--model-control-mode=explicit", "--load-model=m")
    with HttpEndpoint(server) as endpoint:
        assert [endpoint.ask("m", x)["Y"].tolist() for _ in range(2)] == [[[2, 2]]] * 2
        (folder / "1" / "model.onnx").write_bytes(times(3.0).SerializeToString())
        endpoint.load("m")
        assert [endpoint.ask("m", x)["Y"].tolist() for _ in range(2)] == [[[3, 3]]] * 2
        assert metric(server, "alipes_response_cache_entries") == 2, "the answer, and the body that came twice"
        endpoint.unload("m")
        assert metric(server, "alipes_response_cache_bytes") == 0


def test_batches_are_cached_request_by_request(repository: Path, serve: Serve) -> None:
    # All eight come long before the first has waited for so long.
    batching = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 20000000 }"
    add_model(repository, "m", config=batching + CACHED)
    server = serve(repository, LOCAL)

    def ask(value: int) -> list[list[float]]:
        with HttpEndpoint(server) as endpoint:
            return list(endpoint.ask("m", {"X": np.full((1, 2), value, np.float32)})["Y"].tolist())

    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            assert list(pool.map(ask, range(8))) == [[[2 * value] * 2] for value in range(8)]
    with HttpEndpoint(server) as endpoint:
        hits, misses, executions = cache_counts(endpoint, "m")
    assert (hits, misses, executions) == (8, 8, 1)


def test_it_never_holds_more_than_it_may(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    server = serve(repository, "--response-cache-byte-size=20000")
    with HttpEndpoint(server) as endpoint:
        for value in range(20):
            endpoint.ask("counts", {"X": np.full(250, value, np.int32)})
        assert 0 < metric(server, "alipes_response_cache_bytes") <= 20_000
        assert metric(server, "alipes_response_cache_evictions_total") > 0
        assert endpoint.ask("counts", {"X": np.full(250, 19, np.int32)})["N"].tolist() == [20], "the newest is kept"
        assert endpoint.ask("counts", {"X": np.full(250, 0, np.int32)})["N"].tolist() == [21], "the oldest is not"
        before = metric(server, "alipes_response_cache_entries")
        endpoint.ask("counts", {"X": np.zeros(10_000, np.int32)})
        assert metric(server, "alipes_response_cache_entries") == before, "too large to be kept, and sends nobody away"


def test_an_ensemble_and_its_step_keep_answers_each(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(
        """
        platform: "ensemble"
        input { name: "A" data_type: TYPE_INT32 dims: -1 }
        output [ { name: "B" data_type: TYPE_INT32 dims: -1 }, { name: "C" data_type: TYPE_INT32 dims: 1 } ]
        ensemble_scheduling { step { model_name: "counts" model_version: -1
            input_map { key: "X" value: "A" }
            output_map [ { key: "Y" value: "B" }, { key: "N" value: "C" } ] } }
        """
        + CACHED
    )
    with HttpEndpoint(serve(repository, LOCAL)) as endpoint:
        assert [endpoint.ask("chain", {"A": [5]})["C"].tolist() for _ in range(3)] == [[1]] * 3
        assert endpoint.ask("counts", {"X": [5]})["N"].tolist() == [1]
        assert cache_counts(endpoint, "chain")[:2] == (2, 1)
        assert cache_counts(endpoint, "counts") == (1, 1, 1)


def test_an_ensemble_around_state_is_not_cached(repository: Path, serve: Serve) -> None:
    add_python_model(
        repository, "counts", COUNTS, signature=SIGNATURE, config="max_batch_size: 1 sequence_batching { oldest { } }"
    )
    (repository / "chain" / "1").mkdir(parents=True)
    (repository / "chain" / "config.pbtxt").write_text(
        """
        platform: "ensemble" max_batch_size: 1
        input { name: "A" data_type: TYPE_INT32 dims: -1 }
        output { name: "C" data_type: TYPE_INT32 dims: 1 }
        ensemble_scheduling { step { model_name: "counts" model_version: -1
            input_map { key: "X" value: "A" } output_map { key: "N" value: "C" } } }
        """
        + CACHED
    )
    with HttpEndpoint(serve(repository, LOCAL)) as endpoint:
        a = {"name": "A", "datatype": "INT32", "shape": [1, 1], "data": [5]}
        body = json.dumps({"inputs": [a], "parameters": {"sequence_id": 5, "sequence_start": True}}).encode()
        answers = [json.loads(endpoint.call("POST", "/v2/models/chain/infer", body)[1]) for _ in range(3)]
        assert [answer["outputs"][0]["data"] for answer in answers] == [[1], [2], [3]]
        assert cache_counts(endpoint, "chain")[:2] == (0, 0)


def test_quantiles_of_searches_stand_where_triton_has_them(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    server = serve(repository, LOCAL, "--metrics-config=summary_latencies=true")
    with HttpEndpoint(server) as endpoint:
        for _ in range(3):
            endpoint.ask("counts", {"X": [1]}, request_id="r")
    assert metric(server, "nv_cache_hit_summary_per_model_count") == 2
    assert metric(server, "nv_cache_miss_summary_per_model_count") == 1
    assert metric(server, "nv_inference_queue_summary_us_count") == 3
    assert "nv_inference_request_summary_us" not in exposition(server), "as in Triton, where answers are kept"


def test_changes_of_client_memory_change_no_cached_answer(server: ServerProcess, endpoint: HttpEndpoint) -> None:
    key = f"/alipes-cache-{os.getpid()}"
    handle = shared_memory.create_shared_memory_region("x", key, 8)
    try:
        with http_client.InferenceServerClient(server.http) as client:
            client.register_system_shared_memory("x", key, 8)
            x = http_client.InferInput("X", [2], "INT32")
            x.set_shared_memory("x", 8)
            for values, executions in (([1, 2], 1), ([3, 4], 2), ([1, 2], 1)):
                shared_memory.set_shared_memory_region(handle, [np.array(values, np.int32)])
                answer = client.infer("counts", [x])
                assert answer.as_numpy("Y").tolist() == values
                assert answer.as_numpy("N").tolist() == [executions]
            client.unregister_system_shared_memory("x")
    finally:
        shared_memory.destroy_shared_memory_region(handle)
    assert endpoint.ask("counts", {"X": [3, 4]})["N"].tolist() == [2]


def test_without_a_cache_a_model_that_wants_one_runs_and_the_log_says_so(repository: Path, serve: Serve) -> None:
    add_python_model(repository, "counts", COUNTS, signature=SIGNATURE, config=CACHED)
    server = serve(repository)
    with HttpEndpoint(server) as endpoint:
        assert [endpoint.ask("counts", {"X": [1]})["N"].tolist() for _ in range(2)] == [[1], [2]]
        assert cache_counts(endpoint, "counts")[:2] == (0, 0)
    assert "response_cache of model 'counts' does nothing" in server.output
