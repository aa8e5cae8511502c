"""Typical mistakes in Python: what a newcomer types, and the message that puts it right, in at most four lines."""

from __future__ import annotations

import gc
import re
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import alipes
import pytest
from support.models import add_model, times

NAMES = "import numpy as np; import alipes; from alipes import *"


def louder(sound):  # type: ignore[no-untyped-def]
    return 2 * sound


# What is typed in a folder with the repositories `models` and `broken`, and a part of the message.
WITHOUT_A_SERVER = [
    ('serve("modles")', "did you mean '.*/models'?"),
    ('serve("models/digits")', "is a model, not a repository: name the folder that it is in, '.*/models'"),
    ('serve("models/digits/1/model.onnx")', "is a file: name the folder that holds the models' folders"),
    ("Server(louder, image='x')", "image= cannot be used here: functions run in this process, and need no image"),
    ('serve("models").wait()', "write `with serve(...) as instance:`"),
    ('serve("models").url', "there is no 'url' before the block begins: write `with serve"),
    ('serve("models", 8080)', "image=8080 cannot be used: .* a port is given as port="),
    ('serve("models", http_prot=8080)', "http_prot= is no flag of the server: did you mean http_port=?"),
    ('serve("models", http_port="abc")', "http_port='abc' cannot be used: it takes an integer from 0 to 65535"),
    ('serve("models", server_args={"http_port": 1})', "it takes words, as in .* keywords do the same"),
    ('serve("models", runtime="singularity")', "runtime='singularity' .* one of 'apptainer', 'docker', 'podman'"),
    ('serve("models", log_file=3)', "log_file=3 cannot be used: it takes the name of a file"),
    ('Server(["models"])', "list is no repository: name the folder"),
    ('Server("models", gpus="0")', "gpus='0' cannot be used: it takes the number of a GPU"),
    ('Server("models", timeout="3")', "timeout='3' cannot be used: it takes a number of seconds"),
    ('Server("models", port=0, host="300.1.1.1")', "no server can listen at '300.1.1.1'"),
    ('Server("models", http_port=TAKEN)', "port .* is already in use: name another port, or none"),
    ('launch("models", 3)', 'handle=3 cannot be used: it takes the name of a file .* as in "server.json"'),
    ('launch("models", "server.json", modle_control_mode="explicit")', "did you mean model_control_mode=?"),
    ('attach("server.json")', "there is no handle .*: no server was launched with it"),
    ('ModelRepository("models").add("x", "onix")', "there is no platform 'onix'; there are 'onnx'"),
    ('ModelRepository("models").add("x/y", "onnx")', "'x/y': expected the name of a folder"),
    ('ModelRepository("models").models["digit"]', "has no model 'digit'; it has 'digits'"),
    ('ModelRepository("models").remove("digit")', "there is no model 'digit'"),
    ('Platform("keras")', "there is no platform 'keras'; for a model of Keras or TensorFlow: take 'savedmodel'"),
    ('Client("ftp://localhost")', "'ftp' is unknown"),
    ('Client("localhost:port")', "'localhost:port' is no address: expected host:port"),
    ('Client("localhost:1").models()', "cannot connect to localhost:1"),
    ('ServerMonitor("digits", [], "rows.csv")', "there is no server to watch: ips is empty"),
    ('ServerMonitor("digits", "localhost", "rows.csv", max_request_rate=0)', "expected more than 0 looks a second"),
]

# The same with a running `server`.
WITH_A_SERVER = [
    ('Server("broken", port=0, host="127.0.0.1")', "will not be ready: digits version 1: .*"),
    ('Server("broken", port=0, host="127.0.0.1", exit_on_error=True)', "failed to load 'digits' version 1: "),
    ('Server("models", port=0, load_model=["digits"])', "add --model-control-mode=explicit: without it"),
    (
        'Server("models", port=0, host="127.0.0.1", model_control_mode="explicit", load_model=["nope"])',
        "failed to poll model 'nope': model not found",
    ),
    ('server.infer("digits", [[1, 2]])', "its client does: write `with server.client() as client: client.infer"),
    ('server.load("digits")', 'start the server with model_control_mode="explicit"'),
    ('server.client().infer("digit", [[1, 2]])', "'digit'"),
    ('server.client().infer("digits", {"Z": [[1, 2]]})', "Z.*X"),
    ('server.client().infer("digits", [[1, 2, 3]])', "shape"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    for name in ("models", "broken"):
        (folder / name).mkdir()
        add_model(folder / name, "digits", times())
    (folder / "broken" / "digits" / "1" / "model.onnx").write_bytes(b"no model")
    (folder / "models" / "digits" / "config.pbtxt").touch()
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[alipes.Server]:
    with alipes.Server(folder / "models", host="127.0.0.1", port=0) as server:
        yield server


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        yield listener.getsockname()[1]


def shown(typed: str, **names: object) -> str:
    """What Python prints below the traceback."""
    scope: dict[str, object] = {"louder": louder, **names}
    exec(NAMES, scope)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a block that never began says so besides
        try:
            exec(typed, scope)
        except Exception as error:
            return "".join(traceback.format_exception_only(error)).rstrip("\n")
        finally:
            scope.clear()
            gc.collect()
    pytest.fail("it is no mistake")


def as_pattern(told: str) -> str:
    """The text, in which `.*` stands for anything."""
    return ".*".join(re.escape(part) for part in told.split(".*"))


def check(text: str, told: str) -> None:
    assert re.search(as_pattern(told), text), text
    assert len(text.splitlines()) <= 4
    assert "bad argument type" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("typed", "told"), WITHOUT_A_SERVER, ids=[typed for typed, _ in WITHOUT_A_SERVER])
def test_a_mistake_is_answered_with_its_mend(
    typed: str, told: str, folder: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    check(shown(typed, TAKEN=taken), told)


@pytest.mark.parametrize(("typed", "told"), WITH_A_SERVER, ids=[typed for typed, _ in WITH_A_SERVER])
def test_a_mistake_beside_a_server_is_answered_with_its_mend(
    typed: str, told: str, folder: Path, server: alipes.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    check(shown(typed, server=server), told)


def test_a_server_that_was_stopped_says_so(folder: Path) -> None:
    with alipes.Server(folder / "models", host="127.0.0.1", port=0) as server:
        check(shown("server.stop(); server.client()", server=server), "the server .* does not run: it was stopped")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            "import alipes; alipes.Clent",
            "AttributeError: module 'alipes' has no attribute 'Clent'. Did you mean: 'Client'?",
        ),
        (
            "from alipes import serve; serve('models')",
            "serve(...) started no server: write `with serve(...) as instance:`",
        ),
        (
            "from alipes import Server; Server('models', prt=1)",
            "alipes.ServeError: prt= is no flag of the server: did you",
        ),
    ],
)
def test_a_mistake_in_a_script_ends_with_its_mend(typed: str, told: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", typed], cwd=folder, capture_output=True, text=True, env={"NO_COLOR": "1"}, check=False
    )
    assert told in done.stderr.splitlines()[-1]
    assert "\x1b" not in done.stderr
