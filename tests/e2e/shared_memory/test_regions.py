"""Tensors in memory that client and server share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.models import add_model, times
from support.processes import metric
from support.regions import ALLOWED, RegionClient, SharedObject, ask
from support.server import ServerProcess
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)


def test_a_tensor_lies_in_a_region_and_its_answer_goes_into_another(client: RegionClient) -> None:
    with SharedObject.of(np.zeros(5, np.float32), ROW) as source, SharedObject(64) as target:
        client.register("given", source)
        client.register("taken", target)
        result = client.infer("times", [client.place("X", ROW, "given", 20)], [client.into("Y", "taken", 16, 8)])
        assert np.array_equal(target.read(np.float32, ROW.shape, 8), 2 * ROW)
        output = result.get_output("Y")
        shape = output["shape"] if isinstance(output, dict) else list(output.shape)
        assert shape == [1, 3]
        assert target.read(np.uint8, (8,)).tolist() == [0] * 8
        assert target.read(np.uint8, (44,), 20).tolist() == [0] * 44


def test_only_the_input_or_only_the_output_may_lie_in_a_region(client: RegionClient) -> None:
    with SharedObject.of(ROW) as shared:
        client.register("r", shared)
        answer = client.infer("times", [client.place("X", ROW, "r")]).as_numpy("Y")
        assert np.array_equal(answer, 2 * ROW)
        client.infer("times", [client.send("X", 4 * ROW)], [client.into("Y", "r", ROW.nbytes)])
        assert np.array_equal(shared.read(np.float32, ROW.shape), 8 * ROW)


def test_the_next_request_sees_what_the_client_has_written_since(client: RegionClient) -> None:
    with SharedObject.of(ROW) as shared:
        client.register("r", shared)
        for factor in range(1, 20):
            shared.write((factor * ROW).tobytes())
            answer = client.infer("times", [client.place("X", ROW, "r")]).as_numpy("Y")
            assert np.array_equal(answer, 2 * factor * ROW)


def test_an_input_at_any_offset_reaches_the_model(client: RegionClient) -> None:
    """An engine takes no number that lies askew."""
    with SharedObject(64) as shared:
        client.register("r", shared)
        for offset in range(16):
            shared.write(ROW.tobytes(), offset)
            answer = client.infer("times", [client.place("X", ROW, "r", offset)]).as_numpy("Y")
            assert np.array_equal(answer, 2 * ROW)


@pytest.mark.parametrize("model", ["floats", "numbers"])
def test_a_model_in_a_process_of_its_own_gets_the_same(client: RegionClient, model: str) -> None:
    row = np.arange(100_000).astype(np.float32 if model == "floats" else np.int32)
    with SharedObject.of(row) as source, SharedObject(row.nbytes) as target:
        client.register("given", source)
        client.register("taken", target)
        client.infer(model, [client.place("X", row, "given")], [client.into("Y", "taken", row.nbytes)])
        assert np.array_equal(target.read(row.dtype.type, row.shape), row)


def test_texts_lie_in_regions_as_they_travel(client: RegionClient) -> None:
    texts = b"\x02\0\0\0ab\0\0\0\0\x01\0\0\0c"
    with SharedObject(64) as shared:
        shared.write(texts)
        client.register("r", shared)
        source = client.module.InferInput("X", [3], "BYTES")
        source.set_shared_memory("r", len(texts))
        client.infer("texts", [source], [client.into("Y", "r", 32, 32)])
        assert bytes(shared.read(np.uint8, (len(texts),), 32)) == texts


def test_a_region_outlives_the_name_of_its_object(client: RegionClient) -> None:
    with SharedObject.of(ROW) as shared:
        client.register("r", shared)
        shared.unlink()
        assert np.array_equal(client.infer("times", [client.place("X", ROW, "r")]).as_numpy("Y"), 2 * ROW)


def test_a_region_in_use_is_removed_after_its_last_request(client: RegionClient, server: ServerProcess) -> None:
    with SharedObject.of(ROW) as shared:
        client.register("r", shared)
        waiting = client.later(lambda own: own.infer("pairs", [own.place("X", ROW, "r")]).as_numpy("Y"))
        until(lambda: metric(server, "nv_inference_pending_request_count", model="pairs") == 1)
        other = RegionClient("http", server)
        ask(server, "POST", "/v2/logging", '{"log_verbose_level": 1}')
        other.unregister("r")
        server.wait_for_output("Shared memory region 'r' will be unregistered after in-flight requests complete.")
        ask(server, "POST", "/v2/logging", '{"log_verbose_level": 0}')
        assert other.regions() == ["r"]
        with pytest.raises(InferenceServerException, match="already in manager"):
            other.register("r", shared)
        other.infer("pairs", [other.send("X", ROW)])
        assert np.array_equal(waiting.result(), 2 * ROW)
        until(lambda: other.regions() == [])
        other.close()


def test_no_memory_is_shared_unless_the_operator_says_so(repository: Path, serve: Serve) -> None:
    add_model(repository, "times", times())
    server = serve(repository)
    text = "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
    body = json.dumps({"key": "/k", "byte_size": 1})
    for way in ("systemsharedmemory", "cudasharedmemory"):
        for path in (f"/v2/{way}/region/r/register", f"/v2/{way}/region/r/unregister", f"/v2/{way}/unregister"):
            assert ask(server, "POST", path, body) == (501, {"error": text}), path
        assert ask(server, "GET", f"/v2/{way}/status") == (200, [])


def test_no_more_regions_than_the_operator_says(repository: Path, serve: Serve) -> None:
    add_model(repository, "times", times())
    server = serve(repository, ALLOWED, "--shared-memory-max-regions=2")
    with SharedObject(64) as shared:
        body = json.dumps({"key": shared.key, "byte_size": 64})
        answers = [ask(server, "POST", f"/v2/systemsharedmemory/region/{name}/register", body) for name in "abc"]
        assert [status for status, _ in answers] == [200, 200, 503]
        assert "--shared-memory-max-regions" in answers[2][1]["error"]
        assert ask(server, "POST", "/v2/systemsharedmemory/region/a/unregister")[0] == 200
        assert ask(server, "POST", "/v2/systemsharedmemory/region/c/register", body)[0] == 200
