"""A shadow gets copies of requests; its answers go to nobody and are compared with those that callers get."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alipes
import numpy as np
import pytest
from alipes.cli import main
from alipes.client import Shadow
from alipes.errors import InvalidArgument
from support.models import add_model, times
from support.notes import Notes
from support.python_models import add_python_model
from support.sequences import LONG_IDLE, SequenceStream, add_streaming
from support.server import ServerProcess
from support.waiting import until

CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
version_policy { all { } }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
ROW = np.array([[1, 100]], np.float32)

# Version 2 answers once the test has left a note for it, or fails.
WAITS = """
class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"]

    def execute(self, requests):
        if self.version == "2":
            note("begun")
            await_note("go on")
        return [answer(Y=given(request)) for request in requests]
"""
FAILS = """
class TritonPythonModel:
    def initialize(self, args):
        self.version = args["model_version"]

    def execute(self, requests):
        if self.version == "2":
            raise ValueError("no luck")
        return [answer(Y=given(request)) for request in requests]
"""


@pytest.fixture(scope="module")
def scales(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    """Models whose versions multiply by one, by a little more, and by two."""
    repository = tmp_path_factory.mktemp("repository")
    for name in ("close", "share", "words", "shown", "left"):
        folder = add_model(repository, name, times(1.0), config=CONFIG)
        for version, factor in ((2, 1.0 + 2**-18), (3, 2.0)):
            (folder / str(version)).mkdir()
            (folder / str(version) / "model.onnx").write_bytes(times(factor).SerializeToString())
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=*")


def comparison(client: alipes.Client, model: str, version: int) -> dict[str, Any]:
    return dict(client.traffic_outcomes(model)[version]["comparison"])


def await_compared(client: alipes.Client, model: str, version: int, count: int) -> dict[str, Any]:
    until(lambda: comparison(client, model, version)["compared"] == count)
    return comparison(client, model, version)


def test_answers_of_a_shadow_are_compared_over_every_protocol(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as over_http, alipes.Client(f"grpc://{scales.grpc}") as over_grpc:
        split = over_http.set_traffic("close", {}, shadow=3)
        assert (split.weights, split.shadow) == ({2: 1}, Shadow(3, 100.0, 1e-5))
        for client in (over_http, over_grpc):
            np.testing.assert_allclose(client.infer("close", {"X": ROW})["Y"], ROW, rtol=1e-5)
        found = await_compared(over_http, "close", 3, 2)
        assert (found["different"], found["failed"], found["dropped"]) == (2, 0, 0)
        assert found["largest_difference"]["Y"] == pytest.approx(0.5, abs=1e-3)
        outcomes = over_http.traffic_outcomes("close")
        assert (outcomes[2]["answered"], outcomes[3]["answered"]) == (2, 2)
        assert "comparison" not in outcomes[2]


def test_answers_within_the_tolerance_are_equal(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        for tolerance, different in ((1e-5, 0), (1e-6, 5)):
            client.set_traffic("close", {1: 1}, shadow=Shadow(2, tolerance=tolerance))
            for _ in range(5):
                client.infer("close", {"X": ROW})
            assert await_compared(client, "close", 2, 5)["different"] == different
        assert 0 < comparison(client, "close", 2)["largest_difference"]["Y"] < 1e-5


def test_a_share_of_the_requests_is_copied(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        client.set_traffic("share", {1: 1}, shadow=Shadow(3, percent=25))
        for _ in range(40):
            client.infer("share", {"X": ROW})
        client.infer("share", {"X": ROW}, version="3")
        client.infer("share", {"X": ROW}, version="2")
        until(lambda: comparison(client, "share", 3)["compared"] >= 8)
        assert comparison(client, "share", 3)["compared"] <= 12


def add_versions(repository: Path, name: str, source: str) -> None:
    folder = add_python_model(
        repository,
        name,
        source,
        signature="X: FP32[1] -> Y: FP32[1]",
        config="max_batch_size: 1 version_policy { all { } }",
    )
    (folder / "2").mkdir()
    (folder / "2" / "model.py").write_text((folder / "1" / "model.py").read_text())


def test_a_shadow_that_stands_still_slows_nobody_and_loses_copies(
    serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    notes = Notes(tmp_path / "notes")
    add_versions(tmp_path / "models", "waits", WAITS)
    server = serve(tmp_path / "models", environment=notes.environment)
    with alipes.Client(f"http://{server.http}") as client:
        client.set_traffic("waits", {1: 1}, shadow=2)
        for number in range(100):
            value = np.array([[number]], np.float32)
            assert client.infer("waits", {"X": value})["Y"].tolist() == [[number]]
        until(lambda: comparison(client, "waits", 2)["dropped"] == 36)
        assert comparison(client, "waits", 2)["compared"] == 0
        notes.write("go on")
        assert await_compared(client, "waits", 2, 64)["different"] == 0


def test_failures_of_a_shadow_are_counted_and_reach_nobody(serve: Callable[..., ServerProcess], tmp_path: Path) -> None:
    add_versions(tmp_path, "fails", FAILS)
    server = serve(tmp_path)
    with alipes.Client(f"http://{server.http}") as client:
        client.set_traffic("fails", {1: 1}, shadow=2)
        for _ in range(3):
            client.infer("fails", {"X": np.ones((1, 1), np.float32)})
        until(lambda: comparison(client, "fails", 2)["failed"] == 3)
        assert client.traffic_outcomes("fails")[2]["failed"] == 3


def test_requests_of_sequences_are_not_copied(serve: Callable[..., ServerProcess], tmp_path: Path) -> None:
    more = f"{LONG_IDLE} version_policy {{ all {{ }} }}"
    add_streaming(tmp_path, "flow", "snapshotter", more=more, stride_size=1, snapshot_size=3, channels="w:1")
    (tmp_path / "flow" / "2").mkdir()
    server = serve(tmp_path)
    with alipes.Client(f"http://{server.http}") as client, SequenceStream(server) as stream:
        client.set_traffic("flow", {1: 1}, shadow=2)
        stream.send("flow", "snapshot_update", np.ones((1, 1, 1), np.float32), 7, start=True)
        stream.receive()
        counts = {one["version"]: one["inference_stats"]["success"]["count"] for one in client.statistics("flow")}
        assert counts == {"1": 1, "2": 0}
        assert comparison(client, "flow", 2)["dropped"] == 0


def test_a_shadow_that_is_unloaded_loses_its_copies(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        client.set_traffic("left", {1: 1}, shadow=3)
        client.load("left", config={"version_policy": {"specific": {"versions": [1]}}})
        client.infer("left", {"X": ROW})
        assert comparison(client, "left", 3)["dropped"] == 1


def test_shadows_that_cannot_be_are_refused(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        for shadow, match in (
            (7, "version 7 of 'words' does not serve; those that do: 1, 2, 3"),
            (1, "version 1 has a weight, so it cannot be the shadow of others"),
            (Shadow(2, percent=0), "'percent' of the shadow must be above 0 and at most 100, got 0"),
            (Shadow(2, tolerance=-1), "'tolerance' of the shadow must be a number of at least 0, got -1"),
            ("two", "shadow: expected a version, or a Shadow with its settings, got 'two'"),
        ):
            with pytest.raises(InvalidArgument, match=match):
                client.set_traffic("words", {1: 1}, shadow=shadow)  # type: ignore[arg-type]
        assert client.traffic("words").shadow is None


def test_the_command_shows_how_a_shadow_compares(scales: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        assert main(["models", "traffic", "shown", *words, f"--url={scales.http}"]) == 0
        return capsys.readouterr().out

    assert "version 3 gets copies of 50 % of the requests" in printed("1=1", "--shadow=3", "--shadow-percent=50")
    with alipes.Client(f"http://{scales.http}") as client:
        for _ in range(4):
            client.infer("shown", {"X": ROW})
        await_compared(client, "shown", 3, 2)
    lines = printed().splitlines()
    assert lines[-2:] == [
        "copies: 2 compared, 2 different, 0 failed, 0 dropped",
        "largest difference: 0.5 in output 'Y'",
    ]
    document = json.loads(printed("--json"))
    assert document["shadow"] == {"version": 3, "percent": 50.0, "tolerance": 1e-5}
    assert document["comparison"]["compared"] == 2
    printed("--off")
    assert "copies" not in printed()
