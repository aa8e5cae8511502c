"""The notebook that introduces streaming inference, cell by cell: with other import lines, and without any change.

Short, it analyses a minute of data; with `ALIPES_SOAK=1` the half hour that stands there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.cells import Cell, as_notebook, as_script, read_cells, with_lines

pytest.importorskip("torch", reason="the notebook exports a PyTorch model")
for package in ("pandas", "bokeh", "nbclient", "ipykernel"):
    pytest.importorskip(
        package, reason="notebooks need pandas, bokeh, nbclient, ipykernel: pip install 'alipes[notebook]'"
    )

pytestmark = [pytest.mark.extra("torch"), pytest.mark.slow("a whole notebook is run"), pytest.mark.timeout(1800)]

CELLS = read_cells(Path(__file__).with_name("streaming_inference.txt"))
NUMBERS = [cell.number for cell in CELLS]
DRAWN = [8, 10, 14, 17, 20, 22, 25, 27]
STATISTICS = {
    "non-streaming_single-model_server-stats.csv": ["my-classifier"],
    "non-streaming_single-model-with-wait_server-stats.csv": ["my-classifier"],
    "streaming_single-model_server-stats.csv": ["my-classifier", "snapshotter"],
    "batched-streaming_single-model_server-stats.csv": ["batched-snapshotter", "my-classifier"],
    "batched-streaming-2500_single-model_server-stats.csv": ["batched-snapshotter", "my-classifier"],
}
COLUMNS = "timestamp,ip,model,count,queue,compute_input,compute_infer,compute_output,request"

OTHER_IMPORTS = {
    "from hermes import quiver as qv": "from alipes import repository as qv",
    "from hermes.aeriel.client import InferenceClient": "from alipes.client import InferenceClient",
    "from hermes.aeriel.serve import serve": "from alipes.serve import serve",
    "from hermes.stillwater import ServerMonitor": "from alipes.monitor import ServerMonitor",
}
LENGTH = "INFERENCE_DATA_LENGTH = 2048  # amount of data to analyze at inference time"
SOAK = bool(os.environ.get("ALIPES_SOAK"))
SHORTER = {} if SOAK else {LENGTH: "INFERENCE_DATA_LENGTH = 64"}

# What the notebook shows below its cells.
SHOWN = {
    4: "'my-classifier/1/model.onnx'",
    5: """\
name: "my-classifier"
platform: "onnxruntime_onnx"
input {
  name: "hoft"
  data_type: TYPE_FP32
  dims: -1
  dims: 2
  dims: 8192
}
output {
  name: "prob"
  data_type: TYPE_FP32
  dims: -1
  dims: 1
}""",
    6: "[1]",
    18: "'streaming-classifier/1/model.empty'",
    23: "'batched-streaming-classifier/1/model.empty'",
}

UTILS = """\
import logging, shutil
from pathlib import Path

def get_logger():
    logging.basicConfig(level=logging.INFO)
    return logging.getLogger("notebook")

def clear_repo(path):
    shutil.rmtree(path, ignore_errors=True)
"""

# Beyond what the cells assert themselves: the last run, at ten times the rate, gives the same numbers as well, and they
# are those of the network.
CHECKS = """\
results = results[int(KERNEL_LENGTH * INFERENCE_SAMPLING_RATE) - 1:]
assert (results == nonstreaming_results).all()
with torch.no_grad():
    first = nn(torch.from_numpy(hoft[None, :, :kernel_size].copy()))[0, 0].item()
assert abs(results[0] - first) < 1e-5, (results[0], first)
assert len(results) == (inference_data_size - kernel_size) // inference_stride + 1
assert [round(length) for length in (num_kernels / num_inferences, batch_size)] == [16, 16]
assert sorted(repo.models) == [
    "batched-snapshotter", "batched-streaming-classifier", "my-classifier", "snapshotter", "streaming-classifier"
]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the notebook lies, with the module of its author beside it."""
    source = tmp_path / "src"
    source.mkdir()
    (source / "__init__.py").touch()
    (source / "utils.py").write_text(UTILS)
    (tmp_path / ".home").mkdir()
    return tmp_path


def cells(changes: Mapping[str, str]) -> list[Cell]:
    return [*with_lines(CELLS, {**changes, **SHORTER}), Cell(28, CHECKS)]


def environment(folder: Path) -> dict[str, str]:
    """The notebook's tools leave nothing in the home folder of the user."""
    homes = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR")
    return os.environ | {name: str(folder / ".home" / name.lower()) for name in homes}


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    return done.stdout


def check_statistics(folder: Path) -> None:
    """Each run was watched: nine columns, rows of the models that did the work, nothing that runs backwards."""
    for name, models in STATISTICS.items():
        head, *rows = [line.split(",") for line in (folder / name).read_text().splitlines()]
        assert ",".join(head) == COLUMNS
        assert sorted({row[2] for row in rows}) == models, name
        assert {row[1] for row in rows} == {"localhost"}
        assert all(float(value) >= 0 for row in rows for value in row[3:])
        assert [float(row[0]) for row in rows] == sorted(float(row[0]) for row in rows)


def test_the_cells_are_those_of_the_notebook() -> None:
    assert list(range(1, 28)) == NUMBERS
    with_lines(CELLS, OTHER_IMPORTS)
    left = "\n".join(cell.code for cell in with_lines(CELLS, OTHER_IMPORTS))
    assert not [line for line in left.splitlines() if "import" in line and "hermes" in line.partition("#")[0]]


@pytest.mark.proof
def test_a_script_of_the_cells_runs_with_other_imports(folder: Path) -> None:
    (folder / "notebook.py").write_text(as_script(cells(OTHER_IMPORTS)))
    printed = run(folder, "notebook.py")
    assert [int(line.split()[1]) for line in printed.splitlines() if line.startswith("cell ")] == [*NUMBERS, 28]
    check_statistics(folder)


@pytest.mark.proof
def test_a_script_of_the_cells_runs_unmodified(folder: Path) -> None:
    (folder / "notebook.py").write_text(as_script(cells({})))
    printed = run(folder, "-m", "alipes.compat", "hermes", "notebook.py")
    assert printed.count("cell ") >= len(NUMBERS)
    check_statistics(folder)


@pytest.mark.parametrize("unmodified", [False, True] if SOAK else [False], ids=lambda value: f"unmodified {value}")
def test_the_notebook_is_executed(folder: Path, unmodified: bool) -> None:
    first = Cell(0, "import alipes.compat.hermes" if unmodified else "import alipes")
    (folder / "notebook.ipynb").write_text(as_notebook([first, *cells({} if unmodified else OTHER_IMPORTS)]))
    run(
        folder,
        "-c",
        "import nbformat, nbclient\n"
        "notebook = nbformat.read('notebook.ipynb', 4)\n"
        "nbclient.NotebookClient(notebook, timeout=None, kernel_name='python3').execute()\n"
        "nbformat.write(notebook, 'executed.ipynb')\n",
    )
    executed = {
        int(cell["id"].partition("-")[2]): cell["outputs"]
        for cell in json.loads((folder / "executed.ipynb").read_text())["cells"]
    }
    shown = {number: text(outputs) for number, outputs in executed.items()}
    assert {number: shown[number] for number in SHOWN} == SHOWN
    assert [number for number, outputs in executed.items() if is_drawn(outputs) and number > 1] == DRAWN
    for number in (12, 21):
        head = re.findall(r"<th>([a-z_]+)</th>", text(executed[number], "text/html"))
        assert head == COLUMNS.split(",")
    check_statistics(folder)


def text(outputs: list[Any], kind: str = "text/plain") -> str:
    """What the last line of a cell shows."""
    results = [output["data"][kind] for output in outputs if output["output_type"] == "execute_result"]
    return "".join("".join(result) for result in results)


def is_drawn(outputs: list[Any]) -> bool:
    """Whether a cell shows a picture of bokeh's."""
    return any("application/vnd.bokehjs_exec.v0+json" in output.get("data", {}) for output in outputs)
