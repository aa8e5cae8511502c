"""The distribution `alipes-triton-names`: scripts with the names of Triton's programs."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("wheel") is None, reason="the tool `wheel` is not installed"),
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed"),
]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """`tools/distributions`, which is a program without a suffix."""
    loader = SourceFileLoader("distributions", str(ROOT / "tools" / "distributions"))
    spec = importlib.util.spec_from_loader("distributions", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_installed_scripts_are_alipes(tool: ModuleType, tmp_path: Path) -> None:
    tool.triton_names("0.0.1", tmp_path)
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name == "alipes_triton_names-0.0.1-py3-none-any.whl"
    installing = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run([*installing, "--prefix", tmp_path / "env", wheel], check=True)
    programs = tmp_path / "env" / "bin"
    assert {program.name for program in programs.iterdir()} == set(tool.NAMES)
    out = subprocess.run([programs / "perf_analyzer", "--version"], capture_output=True, text=True, check=True).stdout
    assert out.startswith("Perf Analyzer of alipes ")


def test_the_names_are_those_that_the_program_answers_to(tool: ModuleType) -> None:
    from alipes.cli import PROGRAMS

    assert set(tool.NAMES) == set(PROGRAMS)
