"""Names that no path may spell as they are: clients quote them, and the server finds what they mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import alipes
import numpy as np
import pytest
import tritonclient.http as http_client
from support.models import add_model, times
from support.regions import ALLOWED, NO_GPUS, RegionClient, SharedObject, ask
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

MODEL = "50% of a bär"
ROW = np.array([[1.5, -2.0, 3.25]], np.float32)


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "100%", "größe", "a+b?c#d"])
def test_a_region_is_found_by_its_name(server: ServerProcess, name: str) -> None:
    client = RegionClient("http", server)
    try:
        with SharedObject.of(ROW) as shared:
            client.register(name, shared)
            assert client.regions() == [name]
            assert client.status(name)["name"] == name
            answer = client.infer("times", [client.place("X", ROW, name)]).as_numpy("Y")
            assert np.array_equal(answer, 2 * ROW)
            client.unregister(name)
            assert client.regions() == []
    finally:
        client.close()


def test_http_and_grpc_mean_the_same_region(server: ServerProcess) -> None:
    http, grpc = RegionClient("http", server), RegionClient("grpc", server)
    try:
        with SharedObject.of(ROW) as shared:
            http.register("left right of it", shared)
            assert grpc.regions() == ["left right of it"]
            grpc.unregister("left right of it")
            assert http.regions() == []
    finally:
        http.close()
        grpc.close()


def test_a_model_is_found_by_a_name_that_is_quoted(tmp_path: Path, serve: Serve) -> None:
    add_model(tmp_path, MODEL, times())
    server = serve(tmp_path, ALLOWED, "--model-control-mode=explicit", environment=NO_GPUS)
    with alipes.Client(f"http://{server.http}") as ours:
        ours.load(MODEL)
        assert ours.is_model_ready(MODEL, "1")
        assert ours.metadata(MODEL)["name"] == MODEL
        row = np.array([[1.5, -2.0]], np.float32)
        assert np.array_equal(ours.infer(MODEL, {"X": row})["Y"], 2 * row)
        theirs = http_client.InferenceServerClient(server.http)
        assert theirs.get_model_config(MODEL)["name"] == MODEL
        assert theirs.get_inference_statistics(MODEL)["model_stats"][0]["name"] == MODEL
        theirs.close()
        ours.unload(MODEL)


@pytest.mark.parametrize("path", ["models/%FF", "models/%FF/infer", "systemsharedmemory/region/%C3/register"])
def test_a_name_that_is_no_text_is_refused(server: ServerProcess, path: str) -> None:
    for method in ("GET", "POST"):
        status, document = ask(server, method, f"/v2/{path}", "{}" if method == "POST" else None)
        assert (status, document) == (400, {"error": "the name in the path is no UTF-8 once it is percent-decoded"})
