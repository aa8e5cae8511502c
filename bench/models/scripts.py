"""Repositories that scripts of `bench/apps` write, each run by an interpreter that has its framework."""

import hashlib
import shutil
import subprocess
from pathlib import Path

from bench.paths import BENCH, PROJECT, WORK
from bench.servers.process import StartFailed

APPS = BENCH / "apps"


def written_by(script: str, python: Path, mark: str = "") -> Path:
    """The folder ``models`` that a script writes; written where it is missing, or of other files.

    Args:
        script: Names the script, and the configuration beside it of the model of that name, where there is one.
        python: The interpreter.
        mark: Names the interpreter's environment, where files of another may not be read.

    Raises:
        StartFailed: If the script fails.
    """
    file = APPS / f"{script}.py"
    settings = APPS / f"{script}.pbtxt"
    text = settings.read_bytes() if settings.exists() else b""
    folder = WORK / f"{script}{mark}-{hashlib.sha256(file.read_bytes() + text).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        done = subprocess.run([str(python), str(file)], check=False, capture_output=True, text=True, cwd=folder)
        if done.returncode != 0:
            raise StartFailed(f"{file.relative_to(PROJECT)} failed:\n{done.stderr[-2000:]}")
        if settings.exists():
            shutil.copy(settings, folder / "models" / script / "config.pbtxt")
        (folder / "complete").touch()
    return folder / "models"
