"""Repositories that scripts of `bench/apps` write, each run by an interpreter that has its framework."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from bench.paths import BENCH, PROJECT, WORK
from bench.servers.process import StartFailed

APPS = BENCH / "apps"


def written_by(script: str, python: Path) -> Path:
    """The folder ``models`` that a script writes; written where it is missing, or of other files.

    Args:
        script: Names the script, and the configuration beside it of the model of that name.
        python: The interpreter.

    Raises:
        StartFailed: If the script fails.
    """
    file = APPS / f"{script}.py"
    settings = APPS / f"{script}.pbtxt"
    folder = WORK / f"{script}-{hashlib.sha256(file.read_bytes() + settings.read_bytes()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done = subprocess.run([str(python), str(file)], check=False, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise StartFailed(f"{file.relative_to(PROJECT)} failed:\n{done.stderr[-2000:]}")
        shutil.copy(settings, folder / "models" / script / "config.pbtxt")
        (folder / "complete").touch()
    return folder / "models"
