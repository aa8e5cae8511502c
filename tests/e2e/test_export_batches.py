"""Exported functions batch: requests that wait are one call on the rows of all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from alipes import repository as qv
from support.endpoints import Refusal
from support.held_requests import HeldRequests, held_requests
from support.notes import Notes
from support.server import ServerProcess
from support.waiting import TIMEOUT_S


def recorded(x: np.ndarray) -> np.ndarray:
    """Notes how many rows each call has. 7 waits for the test, more than 100 is an error, 50 loses all rows but one."""
    import os
    import time
    from pathlib import Path

    notes = Path(os.environ["NOTES"])
    with (notes / "calls").open("a") as calls:
        calls.write(f"{len(x)} ")
    if x.flat[0] == 7:
        (notes / "holding").touch()
        while not (notes / "go on").exists():
            time.sleep(0.002)
    if (x > 100).any():
        raise ValueError("too large")
    return x[: 1 if 50 in x else None] * np.float32(2)


def worded(text: np.ndarray) -> np.ndarray:
    """The same of texts: `hold` waits."""
    import os
    import time
    from pathlib import Path

    notes = Path(os.environ["NOTES"])
    with (notes / "calls").open("a") as calls:
        calls.write(f"{len(text)} ")
    if text.flat[0] == b"hold":
        (notes / "holding").touch()
        while not (notes / "go on").exists():
            time.sleep(0.002)
    return np.array([[one.upper() for one in row] for row in text], object)


def centred(x: np.ndarray) -> np.ndarray:
    return x - x.mean()


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notes]:
    made = Notes(tmp_path_factory.mktemp("batches") / "notes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOTES", str(made.folder))  # an export calls the function too
        yield made


@pytest.fixture(scope="module")
def server(
    notes: Notes, serve_module: Callable[..., ServerProcess], tmp_path_factory: pytest.TempPathFactory
) -> ServerProcess:
    """Serves `recorded` as f and o, and `worded` as t."""
    repo = qv.ModelRepository(tmp_path_factory.mktemp("repository"))
    for name in "fo":
        repo.add(name, "python", max_batch_size=64).export_version(recorded, input_shapes={"x": (None, 2)})
    repo.add("t", "python").export_version(
        worded, input_shapes={"text": (None, 1)}, input_dtypes={"text": "BYTES"}, max_batch_size=64
    )
    return serve_module(str(repo.fs), environment=notes.environment)


@pytest.fixture
def held(server: ServerProcess, notes: Notes) -> Iterator[HeldRequests]:
    for name in notes.names():
        notes.remove(name)
    with held_requests(server, notes) as made:
        yield made


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    return qv.ModelRepository(tmp_path / "models")


def row(*values: float) -> dict[str, Any]:
    return {"x": np.array([[value, value] for value in values], np.float32)}


def statistics(server: ServerProcess) -> Counter[str]:
    """What was counted of the model f."""
    with urlopen(f"http://{server.http}/v2/models/f/stats", timeout=TIMEOUT_S) as answer:
        found = json.load(answer)["model_stats"][0]
    eights = [one["compute_infer"]["count"] for one in found["batch_stats"] if one["batch_size"] == 8]
    return Counter(
        {"requests": found["inference_count"], "executions": found["execution_count"], "executions of 8": sum(eights)}
    )


def test_eight_waiting_requests_are_one_call_on_their_rows(held: HeldRequests, notes: Notes) -> None:
    before = statistics(held.server)
    first = held.hold("f", row(7))
    waiting = [held.wait_behind("f", row(number)) for number in range(8)]
    held.go_on(first)
    for number, one in enumerate(waiting):
        assert one.result(TIMEOUT_S)["output_0"].tolist() == [[2 * number] * 2]
    assert notes.read("calls") == "1 8 "
    assert statistics(held.server) - before == {"requests": 9, "executions": 2, "executions of 8": 1}


def test_requests_of_several_rows_get_their_own_back(held: HeldRequests, notes: Notes) -> None:
    first = held.hold("f", row(7))
    waiting = [held.wait_behind("f", row(*range(count))) for count in (3, 1, 2)]
    held.go_on(first)
    assert [one.result(TIMEOUT_S)["output_0"][:, 0].tolist() for one in waiting] == [[0, 2, 4], [0], [0, 2]]
    assert notes.read("calls") == "1 6 "


def test_a_bad_request_among_those_of_a_call_fails_alone(held: HeldRequests, notes: Notes) -> None:
    first = held.hold("f", row(7))
    waiting = [held.wait_behind("f", row(number)) for number in (1, 1000, 2)]
    held.go_on(first)
    assert waiting[0].result(TIMEOUT_S)["output_0"].tolist() == [[2, 2]]
    with pytest.raises(Refusal, match="ValueError: too large"):
        waiting[1].result(TIMEOUT_S)
    assert waiting[2].result(TIMEOUT_S)["output_0"].tolist() == [[4, 4]]
    assert notes.read("calls") == "1 3 1 1 1 "


def test_a_function_that_loses_rows_is_called_one_by_one_from_then_on(held: HeldRequests, notes: Notes) -> None:
    first = held.hold("o", row(7))
    waiting = [held.wait_behind("o", row(number)) for number in (1, 50, 2)]
    held.go_on(first)
    assert [one.result(TIMEOUT_S)["output_0"].tolist() for one in waiting] == [[[2, 2]], [[100, 100]], [[4, 4]]]
    assert notes.read("calls") == "1 3 1 1 1 "
    held.server.wait_for_output(r"function 'recorded' got 3 rows of 3 requests and returned 1 row: from now on it is")


def test_texts_of_several_requests_are_one_call(held: HeldRequests, notes: Notes) -> None:
    first = held.hold("t", {"text": [["hold"]]})
    waiting = [held.wait_behind("t", {"text": [[word]]}) for word in ("to", "be", "or not")]
    held.go_on(first)
    assert [one.result(TIMEOUT_S)["output_0"].tolist() for one in waiting] == [[[b"TO"]], [[b"BE"]], [[b"OR NOT"]]]
    assert notes.read("calls") == "1 3 "


def test_rows_that_depend_on_each_other_are_never_joined(
    repo: qv.ModelRepository, serve: Callable[..., ServerProcess], caplog: pytest.LogCaptureFixture
) -> None:
    model = repo.add("c", "python", max_batch_size=8)
    model.export_version(centred, input_shapes={"x": (None, 4)})
    reason = "is called once a request: what it returns for a row depends on the other rows of the call"
    assert f"model 'c': function 'centred' {reason}" in caplog.text
    server = serve(str(repo.fs))
    server.wait_for_output(f"function 'centred' {reason}")


def test_a_function_without_a_batch_axis_says_nothing(
    repo: qv.ModelRepository, caplog: pytest.LogCaptureFixture
) -> None:
    repo.add("c", "python").export_version(centred, input_shapes={"x": (None, 4)})
    repo.add("d", "python").export_version(centred, input_shapes={"x": (4,)})
    assert caplog.text == ""


@pytest.mark.parametrize("largest", [1, 2, 3])
def test_small_batches_keep_their_batch_axis(repo: qv.ModelRepository, notes: Notes, largest: int) -> None:
    model = repo.add("f", "python", max_batch_size=largest)
    model.export_version(recorded, input_shapes={"x": (None, 2)})
    assert (model.inputs["x"].shape, model.outputs["output_0"].shape) == ((None, 2), (None, 2))


def test_outputs_of_a_dictionary_are_called_by_its_keys(repo: qv.ModelRepository) -> None:
    model = repo.add("m", "python")
    model.export_version(by_name, input_shapes={"x": (None, 2)})
    assert list(model.outputs) == ["minus", "plus"]
    swapped = repo.add("swapped", "python")
    swapped.export_version(by_name, input_shapes={"x": (None, 2)}, output_names=["plus", "minus"])
    assert {name: tensor.shape for name, tensor in swapped.outputs.items()} == {"plus": (None, 2), "minus": (None, 1)}


def by_name(x: np.ndarray) -> dict[str, np.ndarray]:
    return {"minus": -x[:, :1], "plus": x}
