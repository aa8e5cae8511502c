"""The tutorial's own command of perf_analyzer measures its model to the end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest
from support.checkout import ROOT
from support.server import ServerProcess

FOLDER = ROOT / ".venv-clients" / "perf_analyzer"
BINARY = FOLDER / "bin" / "perf_analyzer"
REPOSITORY = ROOT / "examples" / "text-recognition" / "model_repository"

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not BINARY.exists(), reason="perf_analyzer is not there: `make clients` brings it"),
    pytest.mark.xdist_group("perf_analyzer"),
]

#: As printed.
COMMAND = "-m text_recognition -b 2 --shape input.1:1,32,100 --concurrency-range 2:16:2 --percentile=95"
# Short windows, of which any is good enough: what is tested is that it works, not how fast.
QUICK = ("--measurement-mode=count_windows", "--measurement-request-count=20", "-s", "100000", "-r", "3")


@pytest.mark.timeout(300)
def test_the_command_of_the_tutorial_measures_all_concurrencies(serve: Callable[..., ServerProcess]) -> None:
    server = serve(REPOSITORY)
    ran = subprocess.run(
        [str(BINARY), *COMMAND.split(), "-u", server.http, *QUICK],
        env=os.environ | {"LD_LIBRARY_PATH": str(FOLDER / "lib")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    assert "Inferences/Second vs. Client p95 Batch Latency" in ran.stdout
    for concurrency in range(2, 17, 2):
        assert f"Concurrency: {concurrency}, throughput: " in ran.stdout
