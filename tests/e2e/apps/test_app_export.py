"""`export_version` of what `@alipes.model` stands above: the folder of `alipes serve app.py`, with its source."""

from __future__ import annotations

import dataclasses
import http.client
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import alipes
import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from numpy.typing import NDArray
from support.server import ServerProcess

WEIGHTS = np.arange(3, dtype=np.float32)
LABELS = ["low", "high"]


@dataclasses.dataclass
class Reading:
    """Is written along: the class uses it."""

    label: str
    values: list[float]


def weighted(x: np.ndarray) -> NDArray[np.float32]:
    found: NDArray[np.float32] = x * WEIGHTS
    return found


@alipes.model
class Meter:
    """Reads a meter."""

    def __init__(self) -> None:
        self.calls = 0

    def predict(self, readings: list[Reading], scale: float = 1.0) -> Reading:
        """Joins the readings."""
        self.calls += 1
        values = [scale * value for reading in readings for value in reading.values]
        return Reading(LABELS[len(values) > 2], values)


@alipes.model(max_batch_size=4)
def weigh(x: Annotated[np.ndarray, np.float32, (None, 3)]) -> NDArray[np.float32]:
    return weighted(x)


@alipes.model
def count(n: int) -> Iterator[int]:
    yield from range(n)


@alipes.model(before=len)
def stepped(x: int) -> int:
    return x


def around(factor: float) -> Callable[..., Any]:
    @alipes.model
    def inner(x: float) -> float:
        return x * factor

    return inner


def answer(server: ServerProcess, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/{path}", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_functions_classes_and_generators_are_written_with_what_they_use(
    tmp_path: Path, serve: Callable[..., ServerProcess]
) -> None:
    repository = qv.ModelRepository(tmp_path / "models")
    for name, thing in (("meter", Meter), ("weigh", weigh), ("counting", count)):
        repository.add(name, "python").export_version(thing)
    meter = repository.models["meter"]
    assert meter.fs.list("meter/1") == ["app.json", "app.py", "model.py"]
    assert "class Reading" in (tmp_path / "models" / "meter" / "1" / "app.py").read_text()
    assert repository.models["weigh"].inputs["x"].shape == (None, 3)
    server = serve(tmp_path / "models")
    readings = [{"label": "a", "values": [1, 2]}, {"label": "b", "values": [3]}]
    assert answer(server, "meter", {"readings": readings, "scale": 2}) == (
        200,
        b'{"label":"high","values":[2.0,4.0,6.0]}',
    )
    assert answer(server, "weigh", {"x": [1, 1, 1]}) == (200, b"[0.0,1.0,2.0]")
    assert answer(server, "counting", {"n": 2}) == (200, b"data: 0\n\ndata: 1\n\n")
    with alipes.Client(server.grpc) as client:
        assert client.infer("weigh", {"x": np.ones((2, 3), np.float32)})["output_0"].tolist() == [[0, 1, 2]] * 2


@pytest.mark.parametrize(
    ("thing", "options", "said"),
    [
        (stepped, {}, "are models of their own"),
        (around(2.0), {}, "of the function around it"),
        (weigh, {"input_shapes": {"x": (None, 3)}}, "leave out input_shapes="),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, thing: Any, options: dict[str, Any], said: str) -> None:
    model = qv.ModelRepository(tmp_path / "models").add("m", "python")
    with pytest.raises(ExportError, match=said):
        model.export_version(thing, **options)
    assert not list((tmp_path / "models" / "m").glob("1/*"))
