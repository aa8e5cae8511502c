"""Requests that name no version are divided among the versions of a model, by weights that change while they come."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import alipes
import numpy as np
import pytest
from alipes.cli import main
from alipes.errors import InvalidArgument, NotFound, Unsupported
from support.models import add_model, counts_up, times
from support.sequences import LONG_IDLE, SequenceStream, add_streaming
from support.server import ServerProcess
from support.traffic import Traffic
from support.waiting import until

CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
version_policy { all { } }
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] } ]
"""
ROW = np.ones((1, 2), np.float32)


@pytest.fixture(scope="module")
def scales(tmp_path_factory: pytest.TempPathFactory, serve_module: Callable[..., ServerProcess]) -> ServerProcess:
    """Three versions of each of several models, which multiply by their number."""
    repository = tmp_path_factory.mktemp("repository")
    for name in ("wire", "sticky", "running", "words", "left", "crash"):
        folder = add_model(repository, name, times(1.0), config=CONFIG)
        for version in (2, 3):
            (folder / str(version)).mkdir()
            (folder / str(version) / "model.onnx").write_bytes(times(float(version)).SerializeToString())
    return serve_module(repository, "--model-control-mode=explicit", "--load-model=*")


def version_of(client: alipes.Client, model: str) -> int:
    return int(client.infer(model, {"X": ROW})["Y"][0, 0])


def posted(
    server: ServerProcess, path: str, document: object, headers: dict[str, str] | None = None
) -> dict[str, object]:
    with closing(http.client.HTTPConnection(server.http, timeout=60)) as connection:
        connection.request("POST", path, json.dumps(document), headers or {})
        return dict(json.loads(connection.getresponse().read()))


def v1_version(server: ServerProcess, model: str, headers: dict[str, str] | None = None) -> int:
    answer = posted(server, f"/v1/models/{model}:predict", {"instances": [[1, 1]]}, headers)
    return int(answer["predictions"][0][0])  # type: ignore[index]


def test_requests_follow_the_weights_over_every_protocol(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as over_http, alipes.Client(f"grpc://{scales.grpc}") as over_grpc:
        assert {version_of(over_http, "wire") for _ in range(5)} == {3}
        split = over_http.set_traffic("wire", {1: 3, 2: 1})
        assert (split.weights, split.versions) == ({1: 3, 2: 1}, (1, 2, 3))
        for ask in (
            lambda: version_of(over_http, "wire"),
            lambda: version_of(over_grpc, "wire"),
            lambda: v1_version(scales, "wire"),
        ):
            counts = Counter(ask() for _ in range(80))
            assert set(counts) == {1, 2}
            assert abs(counts[2] - 20) <= 2, counts
        # Who names a version gets it.
        assert int(over_http.infer("wire", {"X": ROW}, version="3")["Y"][0, 0]) == 3
        assert over_http.set_traffic("wire", {}).weights == {}
        assert {version_of(over_grpc, "wire") for _ in range(5)} == {3}


def test_requests_with_one_value_of_the_header_stay_together(scales: ServerProcess) -> None:
    def version(user: str, weights: dict[int, int]) -> int:
        with alipes.Client(f"http://{scales.http}", headers={"X-User": user}) as client:
            client.set_traffic("sticky", weights, sticky_header="X-User")
            found = {version_of(client, "sticky") for _ in range(4)} | {v1_version(scales, "sticky", {"X-User": user})}
        with alipes.Client(f"grpc://{scales.grpc}", headers={"x-user": user}) as client:
            found.add(version_of(client, "sticky"))
        assert len(found) == 1, (user, found)
        return found.pop()

    users = [f"user {number}" for number in range(12)]
    half = {user: version(user, {1: 50, 2: 50}) for user in users}
    assert set(half.values()) == {1, 2}
    # As the weight of the higher version grows, nobody who has it goes back.
    most = {user: version(user, {1: 20, 2: 80}) for user in users}
    assert all(most[user] == 2 for user in users if half[user] == 2)


def test_no_request_fails_while_the_weights_change(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client, Traffic(scales, "running") as traffic:
        for weight in (1, 10, 50, 90, 100, 0, 100):
            client.set_traffic("running", {1: 100 - weight, 2: weight})
            assert client.traffic("running").weights == {1: 100 - weight, 2: weight}
            if weight == 1:
                until(lambda: 1.0 in traffic.answers)
    assert traffic.failures == []
    assert set(traffic.answers) == {1.0, 2.0, 3.0} or set(traffic.answers) == {1.0, 2.0}
    # Every caller's last request came after the last change.
    assert {mine[-1] for mine in traffic.by_caller} == {2.0}


def test_requests_leave_a_version_that_is_unloaded(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        client.set_traffic("left", {1: 50, 2: 50})
        client.load("left", config={"version_policy": {"specific": {"versions": [1, 3]}}})
        assert {version_of(client, "left") for _ in range(10)} == {1}
        client.load("left", config={"version_policy": {"specific": {"versions": [3]}}})
        assert {version_of(client, "left") for _ in range(10)} == {3}
        client.load("left", config={"version_policy": {"all": {}}})
        assert {version_of(client, "left") for _ in range(10)} == {1, 2}


def test_weights_that_cannot_be_are_refused(scales: ServerProcess) -> None:
    with alipes.Client(f"http://{scales.http}") as client:
        with pytest.raises(InvalidArgument, match="version 7 of 'words' does not serve; those that do: 1, 2, 3"):
            client.set_traffic("words", {1: 1, 7: 1})
        with pytest.raises(InvalidArgument, match="'weights' needs a version with a weight above 0"):
            client.set_traffic("words", {1: 0})
        with pytest.raises(InvalidArgument, match="'sticky_header' must be the name of a header"):
            client.set_traffic("words", {1: 1}, sticky_header="a b")
        with pytest.raises(NotFound, match="'word' is not found"):
            client.set_traffic("word", {1: 1})
        assert client.traffic("words").weights == {}
    with alipes.Client(f"grpc://{scales.grpc}") as client, pytest.raises(Unsupported, match="over HTTP"):
        client.traffic("words")


@pytest.mark.parametrize("verb", ["traffic", "traffic_outcomes"])
def test_weights_are_read_at_an_address_without_a_scheme(scales: ServerProcess, verb: str) -> None:
    with alipes.Client(scales.http) as client:
        getattr(client, verb)("words")
    with alipes.Client(scales.http) as client:
        assert client.set_traffic("words", {}).weights == {}
    with alipes.Client(scales.grpc) as client, pytest.raises(Unsupported, match="over HTTP"):
        getattr(client, verb)("words")


def test_the_command_shows_and_changes_the_weights(scales: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*words: str) -> str:
        assert main(["models", "traffic", "words", *words, f"--url={scales.http}"]) == 0
        return capsys.readouterr().out

    assert printed().splitlines()[3].split() == ["3", "100", "%"]
    table = printed("1=90", "2=10", "--sticky-header=X-User")
    assert [line.split() for line in table.splitlines()[1:4]] == [
        ["1", "90", "90", "%"],
        ["2", "10", "10", "%"],
        ["3", "0", "0", "%"],
    ]
    assert "requests with the same x-user go to the same version" in table
    assert json.loads(printed("--json")) == {
        "weights": {"1": 90, "2": 10},
        "sticky_header": "x-user",
        "versions": [1, 2, 3],
    }
    printed("--off")
    assert json.loads(printed("--json"))["weights"] == {}


SUMS = """
backend: "onnxruntime"
max_batch_size: 4
version_policy { all { } }
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_INT32 dims: [ 1 ] } ]
sequence_batching {
  max_sequence_idle_microseconds: 600000000
  oldest { max_candidate_sequences: 64 }
  state [ { input_name: "OLD" output_name: "NEW" data_type: TYPE_INT32 dims: [ 1 ]
            initial_state { name: "zero" data_type: TYPE_INT32 dims: [ 1 ] zero_data: true } } ]
}
"""


def add_sums(repository: Path) -> None:
    folder = add_model(repository, "flow", counts_up(), config=SUMS)
    (folder / "2").mkdir()
    (folder / "2" / "model.onnx").write_bytes((folder / "1" / "model.onnx").read_bytes())


def add_windows(repository: Path) -> None:
    all_versions = f"{LONG_IDLE} version_policy {{ all {{ }} }}"
    add_streaming(repository, "flow", "snapshotter", more=all_versions, stride_size=1, snapshot_size=3, channels="w:1")
    (repository / "flow" / "2").mkdir()


# Where the state is -> the model, its input, the datatype and shape of one update, and what the last of three answers.
PLACES = {
    "in the queue": (add_sums, "X", np.full((1, 1), 1, np.int32), 3),
    "in the driver": (add_windows, "snapshot_update", np.full((1, 1, 1), 1, np.float32), [1, 1, 1]),
}


@pytest.mark.parametrize("place", PLACES)
def test_sequences_stay_with_the_version_where_they_began(
    place: str, serve: Callable[..., ServerProcess], tmp_path: Path
) -> None:
    add, name, update, last = PLACES[place]
    add(tmp_path)
    server = serve(tmp_path)

    def requests_of(client: alipes.Client) -> list[int]:
        statistics = {one["version"]: one for one in client.statistics("flow")}
        return [statistics[version]["inference_stats"]["success"]["count"] for version in ("1", "2")]

    with alipes.Client(f"http://{server.http}") as client, SequenceStream(server) as stream:
        client.set_traffic("flow", {1: 1})
        for sequence in (7, "text"):
            stream.send("flow", name, update, sequence, start=True)
            stream.receive()
        assert client.traffic_outcomes("flow")[1]["answered"] == 2
        client.set_traffic("flow", {2: 1})
        for sequence in (7, "text"):
            stream.send("flow", name, update, sequence)
            stream.receive()
            stream.send("flow", name, update, sequence)
            assert stream.receive().ravel().tolist() == np.ravel(last).tolist()
        assert requests_of(client) == [6, 0]
        # A sequence that begins now belongs to the other version, over HTTP too.
        request = {"name": name, "shape": update.shape, "datatype": "INT32" if name == "X" else "FP32", "data": [1]}
        flags = {"sequence_id": 8, "sequence_start": True}
        posted(server, "/v2/models/flow/infer", {"inputs": [request], "parameters": flags})
        # And so over HTTP does one that goes on.
        flags = {"sequence_id": 7, "sequence_end": True}
        posted(server, "/v2/models/flow/infer", {"inputs": [request], "parameters": flags})
        assert requests_of(client) == [7, 1]
