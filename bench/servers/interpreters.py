"""Interpreters that have a framework: this one, or that of the environment in which its backend is tested."""

import sys
from importlib.util import find_spec
from pathlib import Path

import alipes

from bench.paths import PROJECT, WORK


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


def environment_of(python: Path) -> dict[str, str]:
    """Variables by which an interpreter imports the alipes that is measured, and not the one of its own environment.

    The environments of the gate's stages have quick builds, and those of another day.
    """
    if python == Path(sys.executable):
        return {}
    folder = WORK / "measured"
    folder.mkdir(parents=True, exist_ok=True)
    link, package = folder / "alipes", Path(alipes.__file__).parent
    if not link.is_symlink() or link.resolve() != package:
        link.unlink(missing_ok=True)
        link.symlink_to(package, target_is_directory=True)
    return {"PYTHONPATH": str(folder)}


def advice(package: str, stage: str) -> str:
    """Why a row is left out."""
    return f"no {package} here and no .venv-{stage}, which `python tools/gate gate --only 'extra {stage}'` makes"
