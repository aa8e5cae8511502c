"""Imports from a model's folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def model(folder: Path, **files: str) -> Path:
    version = folder / "m" / "1"
    for name, text in files.items():
        file = version / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return version


def run(version: Path, *, after: str = "") -> str:
    """Loads a model file in a process of its own, as a worker does; gives what it prints."""
    code = f"""
from pathlib import Path
from alipes.worker.loading import load_class
load_class(Path({str(version / "model.py")!r}), Path({str(version)!r}))
{after}"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


CLASS = "class TritonPythonModel:\n    pass\n"


@pytest.mark.parametrize(
    "statement",
    [
        "from helper import VALUE",
        "from . import helper; VALUE = helper.VALUE",
        "from .helper import VALUE",
        "from shared import VALUE",
        "from package.part import VALUE",
    ],
)
def test_a_model_imports_its_neighbours(tmp_path: Path, statement: str) -> None:
    version = model(
        tmp_path, model=f"{statement}\nprint(VALUE)\n{CLASS}", helper="VALUE = 7", package__part="VALUE = 7"
    )
    (version.parent / "shared.py").write_text("VALUE = 7")
    assert run(version) == "7\n"


def test_neighbours_do_not_hide_what_is_installed(tmp_path: Path) -> None:
    version = model(tmp_path, model=f"import json\nprint(json.dumps(1))\n{CLASS}", json="raise SystemExit")
    assert run(version) == "1\n"


def test_nothing_is_left_in_the_folder(tmp_path: Path) -> None:
    version = model(tmp_path, model=f"import helper, package.part\n{CLASS}", helper="", package__part="")
    run(version)
    assert list(tmp_path.rglob("__pycache__")) == []


def test_an_edit_counts_that_changed_neither_size_nor_second(tmp_path: Path) -> None:
    version = model(tmp_path, model=f"import helper\nprint(helper.VALUE)\n{CLASS}", helper="VALUE = 1")
    assert run(version) == "1\n"
    before = (version / "helper.py").stat()
    (version / "helper.py").write_text("VALUE = 2")
    import os

    os.utime(version / "helper.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(version) == "2\n"


def test_the_module_is_named_after_version_and_file(tmp_path: Path) -> None:
    version = model(tmp_path, model=f"print(__name__, __package__)\n{CLASS}")
    assert run(version) == "1.model 1\n"


def test_what_the_file_defines_can_be_pickled(tmp_path: Path) -> None:
    version = model(tmp_path, model=f"{CLASS}\nclass Thing:\n    pass\n")
    after = "import pickle, sys\nprint(type(pickle.loads(pickle.dumps(sys.modules['1.model'].Thing()))).__name__)"
    assert run(version, after=after) == "Thing\n"


def test_a_version_folder_may_be_a_package(tmp_path: Path) -> None:
    version = model(tmp_path, __init__="VALUE = 9", model=f"from . import VALUE\nprint(VALUE)\n{CLASS}")
    (version / "__init__.py").write_text("VALUE = 9")
    assert run(version) == "9\n"
