"""What is the same for all frameworks: a file completes its configuration, rows are joined, bad files fail alone."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from alipes import Client, InferError
from support.framework_package import add_matrix, install_package
from support.server import ServerProcess

Serve = Callable[..., ServerProcess]

WEIGHTS = np.arange(6, dtype="f4").reshape(3, 2)
ROW = np.array([[1, 2, 3]], "f4")
BATCHED = "max_batch_size: 8\n"
TOGETHER = "dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 2000000 }\n"


def listed(x: str = "X", kind: str = "FP32", inputs: str = "3", y: str = "Y", outputs: str = "2") -> str:
    """A configuration that lists both tensors."""
    return (
        f'input [{{ name: "{x}" data_type: TYPE_{kind} dims: [{inputs}] }}]\n'
        f'output [{{ name: "{y}" data_type: TYPE_FP32 dims: [{outputs}] }}]\n'
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, serve_module: Serve) -> Iterator[ServerProcess]:
    """Good models beside bad ones."""
    repository = tmp_path_factory.mktemp("models")
    add_matrix(repository, "plain")
    add_matrix(repository, "single", more=listed(inputs="-1, 3", outputs="-1, 2"))
    add_matrix(repository, "listed", more=BATCHED + listed())
    add_matrix(repository, "speechless", kind="speechless")
    add_matrix(repository, "told", kind="speechless", more=BATCHED + listed())
    add_matrix(repository, "batches", kind="batches", more=BATCHED + TOGETHER + listed())
    add_matrix(repository, "halves", kind="batches", more="instance_group [{ kind: KIND_CPU count: 2 }]\n")
    add_matrix(repository, "lacks", kind="lacks")
    add_matrix(repository, "pickles", kind="pickles")
    add_matrix(repository, "allowed", kind="pickles")
    add_matrix(repository, "other_type", more=BATCHED + listed(kind="FP64"))
    add_matrix(repository, "other_shape", more=BATCHED + listed(inputs="4"))
    add_matrix(repository, "other_name", more=BATCHED + listed(y="Z"))
    (add_matrix(repository, "no_file") / "1" / "model.npz").unlink()
    (add_matrix(repository, "truncated") / "1" / "model.npz").write_bytes(b"PK\x03\x04")
    add_matrix(repository, "outside", more='default_model_filename: "../../plain/1/model.npz"\n')
    packages = install_package(tmp_path_factory.mktemp("packages"))
    flags = ("--exit-on-error=false", "--allow-pickles=allowed", "--allow-pickles=another")
    yield serve_module(repository, *flags, environment={"PYTHONPATH": str(packages), "OMP_NUM_THREADS": ""})


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.http) as found:
        yield found


def reason(server: ServerProcess, model: str) -> str:
    """Why a model is not ready."""
    asked = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}")
    with urllib.request.urlopen(asked) as answer:
        [row] = [row for row in json.load(answer) if row["name"] == model]
    assert row["state"] == "UNAVAILABLE"
    return str(row["reason"])


@pytest.mark.parametrize("model", ["plain", "listed", "told", "single", "allowed"])
def test_rows_are_answered(client: Client, model: str) -> None:
    assert np.array_equal(client.infer(model, {"X": ROW})["Y"], ROW @ WEIGHTS)


def test_the_file_completes_its_configuration(client: Client) -> None:
    config = client.config("plain")
    assert (config["max_batch_size"], config["input"][0]["dims"], config["output"][0]["dims"]) == (4, [3], [2])
    assert (config["default_model_filename"], "dynamic_batching" in config) == ("model.npz", True)


def test_requests_run_together_and_get_their_own_rows(client: Client) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.infer("batches", {"X": ROW})["Y"], range(4)))
    assert [answer[0, 0] for answer in answers] == [4] * 4


def test_a_row_that_fails_fails_alone(client: Client) -> None:
    bad = np.full((1, 3), np.nan, "f4")
    with pytest.raises(InferError, match="X has a number that is none"):
        client.infer("plain", {"X": bad})
    assert np.array_equal(client.infer("plain", {"X": ROW})["Y"], ROW @ WEIGHTS)


def test_instances_share_the_cores(client: Client) -> None:
    cores = len(os.sched_getaffinity(0))
    assert client.infer("halves", {"X": ROW})["Y"][0, 1] == max(1, cores // 2)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("speechless", "list them in config.pbtxt, each with name, data_type and dims"),
        ("lacks", "needs the package 'alipes_matrix_of_tomorrow'"),
        ("lacks", "pip install 'alipes-matrix'"),
        ("pickles", "start the server with --allow-pickles=pickles"),
        ("other_type", "input 'X': the configuration has datatype FP64, the file FP32"),
        ("other_shape", "input 'X': the configuration has shape [-1, 4], the file [-1, 3]"),
        ("other_name", "has output 'Z', the file's outputs are: Y"),
        ("no_file", "holds no model.npz"),
        ("truncated", "cannot be loaded from 'model.npz': the framework cannot read it (BadZipFile"),
        ("outside", "../../plain/1/model.npz"),
    ],
)
def test_what_cannot_be_served_says_why(server: ServerProcess, model: str, words: str) -> None:
    assert words in reason(server, model)
