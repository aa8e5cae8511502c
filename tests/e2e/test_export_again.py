"""Exports beside a running server, and scripts that are run again: nothing is left behind and nothing is in the way."""

from __future__ import annotations

from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, ClassVar

import pytest
from alipes import repository as qv
from alipes.errors import ExportError
from alipes.repository.export.request import ExportRequest
from support.blocks import Block
from support.exported import scaled
from support.reader import Reader
from support.server import ServerProcess
from support.waiting import until

SCRIPT = """
import numpy as np
from alipes import Client, ModelRepository, serve


def louder(sound):
    return sound * np.float32(2)


model = ModelRepository("functions").add("louder", platform="python")
model.export_version(louder, input_shapes={"sound": (None, 4)}, output_names=["louder"])
with serve("functions", wait=True), Client("localhost:8001") as client:
    print(client.infer("louder", np.arange(4, dtype=np.float32)[None]))
"""


class Late:
    """What `LateFailure` exports: something to do while the export is under way."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.meanwhile = meanwhile


class LateFailure(qv.Exporter):
    """Fails after a while."""

    platform: ClassVar[qv.Platform] = qv.Platform.ONNX

    @classmethod
    def handles(cls, source: Any) -> bool:
        return isinstance(source, Late)

    def export(self, source: Any, request: ExportRequest) -> None:
        (request.folder / "model.onnx").touch()
        source.meanwhile()
        raise OSError("disk full")


def status(server: ServerProcess, path: str) -> int:
    connection = HTTPConnection(server.http, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow("looks every second at a repository")
def test_a_polling_server_stays_ready_beside_an_export_that_fails(
    tmp_path: Path, serve: Callable[..., ServerProcess]
) -> None:
    repo = qv.ModelRepository(tmp_path / "models")
    repo.add("first", "onnx").export_version(scaled())
    server = serve(str(repo.fs), "--model-control-mode=poll", "--repository-poll-secs=1")

    def look_again(name: str) -> None:
        """Export one more model; when it is ready, the server has looked at the repository since."""
        repo.add(name, "onnx").export_version(scaled())
        until(lambda: status(server, f"/v2/models/{name}/ready") == 200)
        # A model answers a moment before the index has it as ready, and until then the server is not.
        until(lambda: status(server, "/v2/health/ready") == 200, "a model failed")

    model = repo.add("failing", "onnx")
    look_again("added")
    with pytest.raises(ExportError, match="disk full"):
        model.export_version(Late(lambda: look_again("meanwhile")))
    look_again("afterwards")
    assert "failing" not in server.output
    model.export_version(scaled())
    until(lambda: status(server, "/v2/models/failing/ready") == 200)


@pytest.mark.slow("runs a script that starts a server, twice")
def test_a_script_that_exports_and_serves_can_be_run_twice(tmp_path: Path) -> None:
    with Reader(tmp_path) as reader:
        reader.follow(Block("python", "louder.py", SCRIPT, 0))
        for _ in range(2):
            reader.follow(Block("bash", "", "python louder.py\n", 0))
    assert sorted(one.name for one in (tmp_path / "functions" / "louder").iterdir()) == ["1", "2", "config.pbtxt"]
