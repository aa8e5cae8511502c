"""`alipes perf_analyzer` measures a real KServe server, over V1 and over V2."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from support.checkout import ROOT
from support.command import alipes
from support.ports import free_ports
from support.waiting import TIMEOUT_S, until

PYTHON = ROOT / ".venv-clients" / "kserve" / "bin" / "python"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        not (PYTHON.parents[1] / "made").exists(), reason="the KServe SDK is not there: `make clients` brings it"
    ),
    pytest.mark.timeout(300),
]

PROGRAM = """
from kserve import InferOutput, InferResponse, Model, ModelServer

class Sums(Model):
    def __init__(self):
        super().__init__("sums")
        self.ready = True

    def predict(self, payload, headers=None, response_headers=None):
        return {"predictions": [sum(row) for row in payload["instances"]]}

if __name__ == "__main__":
    ModelServer(enable_grpc=False).start([Sums()])
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = tmp_path_factory.mktemp("kserve") / "server.py"
    program.write_text(PROGRAM)
    [port] = free_ports(1)
    command = [str(PYTHON), str(program), f"--http_port={port}", "--workers=1"]
    with (program.parent / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/v1/models/sums"), (program.parent / "log").read_text(), 120)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(TIMEOUT_S)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as page:
            return bool(json.loads(page.read()))
    except (URLError, OSError):
        return False


def test_v1_is_measured(address: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text(json.dumps({"data": [{"x": [1, 2, 3]}]}))
    words = ("--service-kind", "kserve_v1", "-m", "sums", "-u", address, "--request-count", "30", "-b", "2")
    for source in (("--input-data", "data.json"), ("--shape", "x:3")):
        done = alipes("perf_analyzer", *words, *source, folder=tmp_path)
        assert (done.code, done.err) == (0, "")
        assert "    Request count: 30\n" in done.out
    wrong = alipes("perf_analyzer", *words, "--shape", "x:3,3")
    assert wrong.code == 99
    assert "Thread [0] had error: " in wrong.err
