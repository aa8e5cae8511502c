"""The lab's notebooks, executed: requests in turn, sixteen senders, and batches as the server counts them."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.example import EXAMPLES, load_example
from support.server import ServerProcess

pytestmark = [pytest.mark.extra("examples"), pytest.mark.slow("a kernel and a server start"), pytest.mark.timeout(400)]

EXAMPLE = EXAMPLES / "serving-lab"
# As the lab has them, and as a test does.
NUMBERS = {"num_requests = 1000": "num_requests = 64", "num_requests = 100": "num_requests = 20"}
make_weights, served = load_example("serving-lab", "make_weights", "served")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("lab"), dirs_exist_ok=True))
    make_weights.write(folder)
    return folder


def executed(lab: Path, name: str, **variables: str) -> list[str]:
    """What each cell of a notebook prints and shows, once all of them have run."""
    pytest.importorskip("nbclient")
    text = (lab / "notebooks" / name).read_text()
    for long, short in NUMBERS.items():
        assert f'"{long}\\n"' in text
        text = text.replace(f'"{long}\\n"', f'"{short}\\n"')
    (lab / "notebooks" / f"short-{name}").write_text(text)
    code = (
        "import os, nbformat, nbclient\n"
        f"os.environ.update({variables!r})\n"
        f"notebook = nbformat.read('short-{name}', 4)\n"
        "nbclient.NotebookClient(notebook, timeout=None, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, 'executed.ipynb')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=lab / "notebooks", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads((lab / "notebooks" / "executed.ipynb").read_text())["cells"]
    return [shown(cell) for cell in cells if cell["cell_type"] == "code"]


def shown(cell: dict[str, Any]) -> str:
    parts = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return "".join("".join(part) for part in parts)


def check_report(text: str) -> None:
    assert re.fullmatch(
        r"Median: [\d.]+ ms\n95th percentile: [\d.]+ ms\n99th percentile: [\d.]+ ms\nThroughput: [\d.]+ requests/s\n",
        text,
    ), text


def test_the_notebook_of_fastapi_runs(lab: Path) -> None:
    command = (sys.executable, "-m", "uvicorn", "--port", "0", "fastapi_onnx:app")
    with served.Served(command, lab, lab / "fastapi.log") as server:
        cells = executed(lab, "4_fastapi.ipynb", FASTAPI_URL=f"http://127.0.0.1:{server.port}/predict")
    _, answer, in_turn, at_once = cells
    assert ast.literal_eval(answer)["prediction"] == "Soup"
    check_report(in_turn)
    check_report(at_once)


def test_the_notebook_of_triton_runs(lab: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(lab / "models", str(lab / "models-onnx"))
    cells = executed(lab, "6_triton.ipynb", TRITON_SERVER_URL=server.http)
    _, answer, in_turn, at_once, onnx, before, by_chance, counted, full = cells
    label, probability = ast.literal_eval(answer)
    assert label == "Soup" and 0.99 < probability < 1
    for report in (in_turn, at_once, onnx, by_chance, full):
        check_report(report)
    requests = {size: count * size for size, count in ast.literal_eval(before).items()}
    assert sum(requests.values()) == 64
    assert sum(size * count for size, count in ast.literal_eval(counted).items()) == 64
