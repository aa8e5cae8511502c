"""A notebook is shown the same line below its cell, and nothing of it stays."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("nbclient", reason="notebooks are executed with the extra notebook")
pytest.importorskip("ipykernel", reason="notebooks are executed with the extra notebook")

RECORD = """
said = []
publish = get_ipython().display_pub.publish
def record(data, *arguments, **options):
    said.append(data["text/plain"])
    publish(data, *arguments, **options)
get_ipython().display_pub.publish = record
"""

WORK = """
from alipes.progress import task, track
import alipes.progress.notebook
alipes.progress.notebook._APART_S = 0
with task("mending") as work:
    work.step("knots", 4)
    work.advance()
numbers = list(track(range(2), "counting"))
"""

SHOW = "print('|'.join(said))"


EXECUTE = """
import json, sys
import nbclient, nbformat

pytestmark = pytest.mark.extra("torch")
cells = [nbformat.v4.new_code_cell(cell) for cell in json.loads(sys.argv[1])]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, timeout=None, kernel_name="python3").execute()
print(json.dumps([cell["outputs"] for cell in notebook["cells"]]))
"""


def outputs(*cells: str) -> tuple[list[dict[str, object]], str]:
    """What stays below the cell before the last, and what the last one prints."""
    run = subprocess.run(
        [sys.executable, "-c", EXECUTE, json.dumps(cells)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    *_, stays, printed = json.loads(run.stdout.splitlines()[-1])
    return stays, printed[0]["text"].strip()


def test_a_notebook_shows_the_steps_and_keeps_none_of_them() -> None:
    stays, shown = outputs(RECORD, WORK, SHOW)
    assert [one["data"] for one in stays] == [{"text/plain": ""}] * 2
    for words in ("mending (", "mending: 0% knots", "mending: 25% knots", "counting: 100%"):
        assert words in shown


def test_a_notebook_shows_nothing_where_progress_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALIPES_PROGRESS", "0")
    stays, shown = outputs(RECORD, WORK, "print('|'.join(said) or 'nothing')")
    assert (stays, shown) == ([], "nothing")
