"""What PyTriton makes of a list of calls, as it was recorded, and what answers in its place makes of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["OURS", "facts", "recorded", "scripts"]

_TESTS = Path(__file__).parents[1]
_SCRIPTS = _TESTS / "scripts" / "pytriton"
_RECORDS = _TESTS / "vectors" / "pytriton"

OURS: Final = ("-m", "alipes.compat", "pytriton")
"""What stands between the interpreter and a script, so that alipes answers."""


def scripts() -> list[str]:
    """The names of the scripts that need no server."""
    return sorted(file.stem.removeprefix("facts_") for file in _SCRIPTS.glob("facts_*.py"))


def recorded(name: str) -> dict[str, Any]:
    """The facts of PyTriton 0.7.0."""
    facts: dict[str, Any] = json.loads((_RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    return facts


def facts(name: str, *arguments: str, python: str = sys.executable, way: tuple[str, ...] = OURS) -> dict[str, Any]:
    """The facts as a script prints them now."""
    script = _SCRIPTS / (f"{name}.py" if name == "calls" else f"facts_{name}.py")
    command = [python, "-W", "ignore", *way, str(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed
