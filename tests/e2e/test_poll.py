"""Mode poll: what is served follows the repository, and no request is lost on the way."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tritonclient.http as http_client
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import Traffic, answer_of
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]


@pytest.fixture
def server(repository: Path, serve: Serve) -> ServerProcess:
    add_model(repository, "first")
    return serve(repository, "--model-control-mode=poll", "--repository-poll-secs=1")


@pytest.fixture
def client(server: ServerProcess) -> Iterator[http_client.InferenceServerClient]:
    with http_client.InferenceServerClient(server.http) as made:
        yield made


def test_a_folder_that_comes_is_served_and_one_that_goes_is_not(
    repository: Path, server: ServerProcess, client: http_client.InferenceServerClient
) -> None:
    add_model(repository, "second", times(3.0))
    until(lambda: client.is_model_ready("second"))
    assert answer_of(server, "second") == 3.0
    shutil.rmtree(repository / "second")
    until(lambda: not client.is_model_ready("second"))
    until(lambda: [entry["name"] for entry in client.get_model_repository_index()] == ["first"])
    assert answer_of(server, "first") == 2.0


def test_a_model_that_is_copied_slowly_is_loaded_whole(
    repository: Path, server: ServerProcess, client: http_client.InferenceServerClient
) -> None:
    for number in range(10):
        name = f"slow{number}"
        if copy_slowly(times(7.0).SerializeToString(), repository / name / "1" / "model.onnx") < 0.9:
            break  # else the machine stood still for so long that the copy seemed to be over
    until(lambda: client.is_model_ready(name))
    assert answer_of(server, name) == 7.0
    assert f"failed to load '{name}'" not in server.output


def copy_slowly(content: bytes, file: Path) -> float:
    """Writes as a slow disk does, for longer than several looks take, and gives the longest pause in seconds."""
    pieces = [content[at : at + 16] for at in range(0, len(content), 16)]
    began_s = [time.monotonic()]
    file.parent.mkdir(parents=True)
    ended_s = []
    with file.open("wb", buffering=0) as half:
        for piece in pieces:
            began_s.append(time.monotonic())
            half.write(piece)
            ended_s.append(time.monotonic())
            threading.Event().wait(0.15)
    # From one change to the next, however long the machine stood still before and behind either.
    return max(after - before for before, after in zip(began_s, ended_s, strict=False))


def test_a_change_is_followed_without_a_lost_request(repository: Path, server: ServerProcess) -> None:
    with Traffic(server, "first") as traffic:
        add_model_file(repository, 5.0)
        until(lambda: answer_of(server, "first") == 5.0)
    assert traffic.failures == []
    assert set(traffic.answers) == {2.0, 5.0}


def add_model_file(repository: Path, factor: float) -> None:
    """Puts another file in place at once, as careful people do."""
    made = repository / "new"
    made.write_bytes(times(factor).SerializeToString())
    made.replace(repository / "first" / "1" / "model.onnx")


def test_a_broken_change_is_logged_and_leaves_what_serves(
    repository: Path, server: ServerProcess, client: http_client.InferenceServerClient
) -> None:
    (repository / "first" / "1" / "model.onnx").write_bytes(b"no model")
    server.wait_for_output("'first' goes on serving what was loaded before")
    assert answer_of(server, "first") == 2.0
    assert client.is_server_ready()
    add_model_file(repository, 4.0)
    until(lambda: answer_of(server, "first") == 4.0)


@pytest.mark.slow("waits for several polls")
def test_a_repository_that_comes_and_goes_leaves_the_others_alone(
    repository: Path, tmp_path: Path, serve: Serve
) -> None:
    add_model(repository, "first")
    late = tmp_path / "late"
    server = serve(repository, f"--model-repository={late}", "--model-control-mode=poll", "--repository-poll-secs=1")
    with http_client.InferenceServerClient(server.http) as client, Traffic(server, "first") as traffic:
        add_model(late, "second", times(3.0))
        until(lambda: client.is_model_ready("second"))
        assert answer_of(server, "second") == 3.0
        shutil.rmtree(late)
        add_model(repository, "third")
        until(lambda: client.is_model_ready("third") and not client.is_model_ready("second"))
        assert client.is_server_ready()
    assert traffic.failures == []
    server.wait_for_output(f"model repository '{late}' can be read now")


def test_load_requests_are_refused(client: http_client.InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException, match="not allowed if polling is enabled"):
        client.load_model("first")


def test_a_version_whose_folder_goes_is_not_at_ready_state(
    repository: Path, server: ServerProcess, client: http_client.InferenceServerClient
) -> None:
    shutil.copytree(repository / "first" / "1", repository / "first" / "2")
    until(lambda: client.is_model_ready("first", "2"))
    with pytest.raises(InferenceServerException, match="'first' version 1 is not at ready state") as failure:
        client.get_model_metadata("first", "1")
    assert failure.value.status() == "503"
    assert answer_of(server, "first") == 2.0
    shutil.rmtree(repository / "first")
    until(lambda: not client.is_model_ready("first"))
    with pytest.raises(InferenceServerException, match="'first' version 2 is not at ready state"):
        client.get_model_metadata("first", "2")
    with pytest.raises(InferenceServerException, match="'first' has no available versions") as failure:
        client.get_model_metadata("first")
    assert failure.value.status() == "404"


def test_a_new_version_of_a_policy_leaves_the_others_as_they_are(
    repository: Path, server: ServerProcess, client: http_client.InferenceServerClient
) -> None:
    (repository / "first" / "config.pbtxt").write_text("version_policy { all { } }")
    until(lambda: "all" in client.get_model_config("first")["version_policy"])
    assert answer_of(server, "first") == 2.0
    shutil.copytree(repository / "first" / "1", repository / "first" / "2")
    until(lambda: client.is_model_ready("first", "2"))
    statistics = client.get_inference_statistics("first", "1")["model_stats"]
    assert json.dumps(statistics[0]["inference_count"]) == "1", "version 1 was loaded again"
