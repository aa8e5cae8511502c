"""Changes of models that serve, by polling and by request: no request is lost, and a mistake changes nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as http_client
from support.folders import touch
from support.models import add_model, times
from support.server import ServerProcess
from support.traffic import Traffic, answer_of
from support.waiting import until
from tritonclient.utils import InferenceServerException

Serve = Callable[..., ServerProcess]
Client = http_client.InferenceServerClient

CONFIG = """
backend: "onnxruntime"
max_batch_size: 4
input [ { name: "X" data_type: TYPE_FP32 dims: [ 2 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" } ]
"""
ROW = np.array([[2.0, 1.0]], np.float32)
ONE, TWO = "instance_group [ { kind: KIND_CPU count: 1 } ]", "instance_group [ { kind: KIND_CPU count: 2 } ]"

MODES = {
    "poll": ("--model-control-mode=poll", "--repository-poll-secs=1"),
    "explicit": ("--model-control-mode=explicit", "--load-model=*"),
}


def add(repository: Path, name: str) -> Path:
    """A model that doubles in version 1 and has no other."""
    folder = add_model(repository, name, times(2.0), config=CONFIG + ONE)
    (folder / "labels.txt").write_text("old\nlow\n")
    return folder


def add_version(folder: Path, content: bytes) -> None:
    made = folder.parent.parent / f"new {folder.name}"
    made.mkdir()
    (made / "model.onnx").write_bytes(content)
    made.rename(folder / "2")


def write_config(folder: Path, text: str) -> None:
    made = folder.parent.parent / f"config {folder.name}"
    made.write_text(text)
    made.replace(folder / "config.pbtxt")


def label_of(server: ServerProcess, model: str) -> str:
    with Client(server.http) as client:
        x = http_client.InferInput("X", [1, 2], "FP32")
        x.set_data_from_numpy(ROW)
        wanted = http_client.InferRequestedOutput("Y", class_count=1)
        return str(client.infer(model, [x], outputs=[wanted]).as_numpy("Y")[0][0].decode()).rsplit(":", 1)[1]


def config_of(server: ServerProcess, model: str) -> dict[str, object]:
    with Client(server.http) as client:
        return dict(client.get_model_config(model))


def counted(server: ServerProcess, model: str) -> int:
    with Client(server.http) as client:
        return int(client.get_inference_statistics(model)["model_stats"][0]["inference_count"])


# What is changed, by what it is seen, which answers there are meanwhile, and whether the version is loaded again.
CHANGES: dict[str, tuple[Callable[[Path], object], Callable[[ServerProcess, str], bool], set[float], bool]] = {
    "batch": (
        lambda folder: write_config(folder, CONFIG.replace("size: 4", "size: 3") + ONE),
        lambda server, model: config_of(server, model)["max_batch_size"] == 3,
        {2.0},
        True,
    ),
    "labels": (
        lambda folder: (folder / "labels.txt").write_text("new\nlow\n"),
        lambda server, model: label_of(server, model) == "new",
        {2.0},
        True,
    ),
    "version": (
        lambda folder: add_version(folder, times(5.0).SerializeToString()),
        lambda server, model: answer_of(server, model) == 5.0,
        {2.0, 5.0},
        True,
    ),
    "policy": (
        lambda folder: write_config(folder, CONFIG + ONE + "version_policy { specific { versions: 1 } }"),
        lambda server, model: "specific" in str(config_of(server, model)["version_policy"]),
        {2.0},
        False,
    ),
    "instances": (
        lambda folder: write_config(folder, CONFIG + TWO),
        lambda server, model: '"count": 2' in json.dumps(config_of(server, model)["instance_group"]),
        {2.0},
        False,
    ),
}


@pytest.mark.parametrize("mode", MODES)
def test_each_change_is_followed_and_no_request_is_lost(repository: Path, serve: Serve, mode: str) -> None:
    folders = {name: add(repository, name) for name in CHANGES}
    server = serve(repository, *MODES[mode])
    traffic = {name: Traffic(server, name, callers=1) for name in CHANGES}
    with ExitStack() as stack, Client(server.http) as client:
        for one in traffic.values():
            stack.enter_context(one)
        # What was counted before a model is loaded again is how its statistics tell of it.
        until(lambda: all(one.answers for one in traffic.values()))
        for name, (change, _, _, _) in CHANGES.items():
            change(folders[name])
        for name, (_, is_seen, _, _) in CHANGES.items():
            if mode == "explicit":
                client.load_model(name)
                assert is_seen(server, name), name
            until(lambda is_seen=is_seen, name=name: is_seen(server, name), name)
    for name, (_, _, answers, loaded_again) in CHANGES.items():
        assert traffic[name].failures == []
        assert set(traffic[name].answers) == answers
        # Its statistics go on where it was not loaded again.
        assert (counted(server, name) < len(traffic[name].answers)) == loaded_again, name


BROKEN: dict[str, Callable[[Path], object]] = {
    "text": lambda folder: write_config(folder, "max_batch_size: ["),
    "check": lambda folder: write_config(folder, CONFIG + ONE + "dynamic_batching { preferred_batch_size: 9 }"),
    "other_inputs": lambda folder: write_config(folder, CONFIG.replace('"X"', '"Z"') + ONE),
    "file": lambda folder: add_version(folder, b"no model"),
    "no_backend": lambda folder: write_config(folder, CONFIG.replace("onnxruntime", "absent") + ONE),
    "no_versions": lambda folder: shutil.rmtree(folder / "1"),
}


# What the log says of them: the folder cannot be read, no version is there, or one does not load.
SAID = (
    "Poll failed for model directory '{0}'|failed to load model '{0}': |"
    "(?s:failed to load '{0}' version .*'{0}' goes on serving what was loaded before)"
)


@pytest.mark.slow("the folders are polled twice")
@pytest.mark.parametrize("mode", MODES)
def test_a_broken_change_leaves_what_serves_until_it_is_mended(repository: Path, serve: Serve, mode: str) -> None:
    folders = {name: add(repository, name) for name in BROKEN}
    server = serve(repository, *MODES[mode])
    traffic = {name: Traffic(server, name, callers=1) for name in BROKEN}
    with ExitStack() as stack, Client(server.http) as client:
        for one in traffic.values():
            stack.enter_context(one)
        for name, break_it in BROKEN.items():
            break_it(folders[name])
        for name in BROKEN:
            if mode == "explicit":
                with pytest.raises(InferenceServerException, match=f"load(ed)? .*'{name}'"):
                    client.load_model(name)
            else:
                server.wait_for_output(SAID.format(name))
            assert answer_of(server, name) == 2.0
            assert client.is_model_ready(name, "1")
        for folder in folders.values():
            write_config(folder, CONFIG + ONE)
            for version in (1, 2):
                (folder / str(version)).mkdir(exist_ok=True)
                (folder / str(version) / "model.onnx").write_bytes(times(5.0).SerializeToString())
            touch(folder)
        for name in BROKEN:
            if mode == "explicit":
                client.load_model(name)
            until(lambda name=name: answer_of(server, name) == 5.0, name)
    for name in BROKEN:
        assert traffic[name].failures == []
        assert set(traffic[name].answers) == {2.0, 5.0}
