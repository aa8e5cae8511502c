"""A process of a user that owns nothing, as a container under OpenShift is: any number, no name, no home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["USER", "launcher", "private_folder", "why_not"]

USER = 123456
"""A number that no user of any machine has."""


def launcher(folder: Path) -> tuple[str, ...]:
    """What runs a command as that user, with nothing in its environment but a path and a folder for temporary files."""
    program = shutil.which("setpriv")
    assert program is not None
    identity = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--bounding-set=-all")
    return ("env", "-i", f"PATH={os.environ['PATH']}", f"TMPDIR={folder}", program, *identity, "--")


def why_not() -> str:
    """Why no process of that user can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "only root starts a process of another user"
    if shutil.which("setpriv") is None:
        return "setpriv of util-linux is not installed"
    command = (*launcher(Path("/tmp")), sys.executable, "-c", "import alipes._core")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"another user cannot run this interpreter: {done.stderr[-200:]}" if done.returncode else ""


def private_folder() -> Path:
    """A folder that this user may write to, below one that every user may look into."""
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="alipes-test-"))
    os.chown(folder, USER, USER)
    return folder
