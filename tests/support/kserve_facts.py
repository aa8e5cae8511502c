"""What the KServe SDK makes of a list of calls, as it was recorded, and what answers in its place makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from support.checkout import ROOT
from support.kserve_script import OURS

__all__ = ["DIFFERENT", "SDK_MARKS", "SDK_PYTHON", "facts", "recorded", "scripts"]

SDK_PYTHON: Final = ROOT / ".venv-clients" / "kserve" / "bin" / "python"
"""The interpreter that has the SDK."""

SDK_MARKS: Final = (
    pytest.mark.proof,
    pytest.mark.skipif(
        not (SDK_PYTHON.parents[1] / "made").exists(), reason="the KServe SDK is not there: `make clients` brings it"
    ),
)
"""Marks of tests that run it."""

_TESTS = Path(__file__).parents[1]
_SCRIPTS = _TESTS / "scripts" / "kserve"
_RECORDS = _TESTS / "vectors" / "kserve"

DIFFERENT: Final[dict[str, set[str]]] = {"names": set(), "tensors": set()}
"""Facts that are others here, on purpose."""


def scripts() -> list[str]:
    """The names of the scripts."""
    return sorted(file.stem.removeprefix("facts_") for file in _SCRIPTS.glob("facts_*.py"))


def recorded(name: str) -> dict[str, Any]:
    """The facts of release 0.21.0."""
    found: dict[str, Any] = json.loads((_RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def facts(name: str, *, python: str = sys.executable, way: tuple[str, ...] = OURS) -> dict[str, Any]:
    """The facts as a script prints them now."""
    command = [python, "-W", "ignore", *way, str(_SCRIPTS / f"facts_{name}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
