"""The examples in docstrings run as they stand: programs are written from `dir()` and docstrings alone."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import alipes
import pytest
from support.waiting import TIMEOUT_S

PORT = "port=9000"
"""The port of an example; in a test the system chooses."""


def louder(x):  # type: ignore[no-untyped-def]
    return 2 * x


def example(thing: object) -> str:
    """The indented blocks of a docstring in front of its sections, one after the other."""
    text = inspect.getdoc(thing) or ""
    text = re.split(r"^(?:Args|Attributes):$", text, maxsplit=1, flags=re.MULTILINE)[0]
    return textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ") or not line))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models = alipes.ModelRepository(tmp_path / "models")
    models.add("louder", "python").export_version(louder, input_shapes={"x": (None, 3)})
    return tmp_path


def run(script: str, folder: Path) -> str:
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("thing", [alipes.serve, alipes.serve.serve], ids=["package", "function"])
def test_the_example_of_serve_runs(thing: object, folder: Path) -> None:
    assert run(example(thing), folder) == "[[2. 4. 6.]]\n"


def test_the_examples_of_a_server_run(folder: Path) -> None:
    script = example(alipes.Server)
    assert PORT in script
    out = run(script.replace(PORT, "port=0"), folder)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+ \['louder'\]\n\[\[2\. 4\. 6\.\]\]\n", out)


def test_the_example_of_launch_runs(folder: Path) -> None:
    assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+\n", run(example(alipes.launch), folder))


def test_the_example_of_the_package_runs(tmp_path: Path) -> None:
    out = run(example(alipes), tmp_path)
    assert out.startswith("[[2. 4. 6.]]\nhttp://127.0.0.1:")
    assert " True [{" in out


@pytest.mark.parametrize("name", ["url", "grpc_url", "metrics_url", "client", "ready", "models", "statistics", "load"])
def test_what_a_server_can_do_is_in_its_dir_with_a_docstring(name: str) -> None:
    assert name in dir(alipes.Server)
    assert inspect.getdoc(getattr(alipes.Server, name))
