"""Python environments for models, made without a network."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def make_venv(folder: Path, *options: str, numpy: bool = True) -> Path:
    """A virtual environment of this Python; it sees this one's numpy where that is wanted."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", *options, folder], check=True)
    if numpy:
        (site_packages(folder) / "more.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def site_packages(venv: Path) -> Path:
    version = ".".join(map(str, sys.version_info[:2]))
    return venv / "lib" / f"python{version}" / "site-packages"


def pack(folder: Path, archive: Path) -> Path:
    """The content of a folder as conda-pack archives it: without the folder itself."""
    with tarfile.open(archive, "w:gz") as packed:
        for entry in sorted(folder.iterdir()):
            packed.add(entry, entry.name)
    return archive


def find_python(version: str) -> Path | None:
    """An interpreter of a version, with numpy where `make test` has been there; None if there is none."""
    prepared = ROOT / f".venv-{version}" / "bin" / "python"
    if prepared.exists():
        return prepared
    found = subprocess.run([ROOT / "tools" / "find-python", version], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) if found.stdout.strip() else None


def fake_python(folder: Path, answer: str, name: str = "python") -> Path:
    """A program that answers every command as an interpreter would."""
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(0o755)
    assert os.access(program, os.X_OK)
    return program
