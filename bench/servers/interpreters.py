"""Interpreters that have a framework: this one, or that of the environment in which its backend is tested."""

import sys
from importlib.util import find_spec
from pathlib import Path

from bench.paths import PROJECT


def python_with(package: str, stage: str) -> Path | None:
    """An interpreter that has a package and alipes.

    Args:
        package: What is imported.
        stage: The gate's stage ``extra STAGE`` makes an environment with it.

    Returns:
        None where there is none.
    """
    if find_spec(package) is not None:
        return Path(sys.executable)
    beside = PROJECT / f".venv-{stage}" / "bin" / "python"
    return beside if beside.exists() else None


def advice(package: str, stage: str) -> str:
    """Why a row is left out."""
    return f"no {package} here and no .venv-{stage}, which `python tools/gate gate --only 'extra {stage}'` makes"
