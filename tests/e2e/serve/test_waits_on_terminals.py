"""A terminal shows what a script waits for: models that load, are exported, or are streamed to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.containers import LOOPBACK
from support.exported import scaled
from support.models import add_model, times
from support.python_models import add_python_model
from support.server import ServerProcess
from support.terminal import TerminalScript

WAIT = """
import sys
from alipes.serve import serve
with serve(sys.argv[1], name="mine", server_args=sys.argv[2:]) as instance:
    instance.wait_until_ready(timeout=120)
    print(instance.status())
"""

EXPORT = """
import sys, onnx
from alipes import repository as qv
options = {word: False for word in sys.argv[3:]}
model = qv.ModelRepository(sys.argv[1]).add("net", qv.Platform.ONNX)
print(model.export_version(onnx.load(sys.argv[2]), **options))
"""

STREAM = """
import sys
import numpy as np
from alipes.client import InferenceClient
with InferenceClient(sys.argv[1], "times") as client:
    updates = [np.full((1, 2), number, np.float32) for number in range(5)]
    print([float(y[0, 0]) for y in client.stream(updates, progress=sys.argv[2] == "shown")])
"""

SLOW = """
class TritonPythonModel:
    def initialize(self, args):
        while not Path({gate!r}).exists():
            time.sleep(0.002)

    def execute(self, requests):
        return []
"""


def test_a_terminal_shows_the_model_that_is_loading(repository: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    add_model(repository, "quick", times())
    add_python_model(repository, "slow", SLOW.format(gate=str(gate)))
    with TerminalScript(WAIT, str(repository), *LOOPBACK) as script:
        script.read_until("waiting for the server mine")
        script.read_until("loading slow")
        gate.touch()
        assert script.finish() == "ready\n"


@pytest.mark.parametrize(("word", "shown"), [((), True), (("progress",), False)], ids=["by itself", "switched off"])
def test_a_terminal_shows_an_export(tmp_path: Path, word: tuple[str, ...], shown: bool) -> None:
    onnx.save(scaled(), tmp_path / "net.onnx")
    with TerminalScript(EXPORT, str(tmp_path / "repo"), str(tmp_path / "net.onnx"), *word) as script:
        assert script.finish() == "net/1/model.onnx\n"
    assert ("exporting model 'net'" in script.text) is shown
    assert ("publishing" in script.text) is shown


@pytest.mark.parametrize("shown", [True, False], ids=["on request", "not by itself"])
def test_a_terminal_shows_the_progress_of_a_stream(
    repository: Path, serve: Callable[..., ServerProcess], shown: bool
) -> None:
    add_model(repository, "times", times())
    server = serve(repository)
    with TerminalScript(STREAM, server.grpc, "shown" if shown else "unseen") as script:
        assert script.finish() == f"{[float(two) for two in np.arange(5) * 2.0]}\n"
    assert ("streaming to times" in script.text) is shown
    assert ("100%" in script.text) is shown
