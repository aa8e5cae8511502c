"""Unpacks the archive of a Python environment, and nothing outside the folder that it is meant for."""

from __future__ import annotations

import lzma
import subprocess
import tarfile
import zlib
from pathlib import Path
from typing import Final

from alipes.config.limits import MAX_ENVIRONMENT_BYTES, MAX_ENVIRONMENT_FILES
from alipes.errors import ModelLoadError

__all__ = ["is_archive", "unpack"]

_BROKEN: Final = (tarfile.TarError, EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)
"""What a reader of archives raises where one is damaged, and the system where the disk is full."""


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, compressed or not."""
    try:
        return tarfile.is_tarfile(path)
    except (OSError, lzma.LZMAError, zlib.error, EOFError):
        return False


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder that exists and is empty.

    Refused are paths that lead out of the folder, links to outside of it, devices, and more than the limits allow.

    Raises:
        ModelLoadError: If the archive is damaged or refused, or cannot be written; the folder is then of no use.
    """
    if not hasattr(tarfile, "data_filter"):
        raise _refused(archive, "this Python cannot unpack archives safely; serve with 3.11.4 or newer")
    try:
        with tarfile.open(archive) as opened:
            _extract(opened, archive, folder)
    except tarfile.FilterError as error:
        raise _refused(archive, f"{error} (a virtual environment must be made with --copies to be packed)") from error
    except _BROKEN as error:
        raise _refused(archive, f"{type(error).__name__}: {error}") from error
    _settle(folder)


def _extract(opened: tarfile.TarFile, archive: Path, folder: Path) -> None:
    total = 0
    for count, member in enumerate(opened, start=1):
        total += member.size
        if count > MAX_ENVIRONMENT_FILES:
            raise _refused(archive, f"it holds more than {MAX_ENVIRONMENT_FILES} files")
        if total > MAX_ENVIRONMENT_BYTES:
            raise _refused(archive, f"it unpacks to more than {MAX_ENVIRONMENT_BYTES} bytes")
        opened.extract(member, folder, filter="data")
        # The reader keeps every member that it has seen; a large environment has hundreds of thousands.
        opened.members = []  # type: ignore[attr-defined]  # not in the stub


def _settle(folder: Path) -> None:
    """Lets an environment of conda-pack write its new place into its files, where it brings the program for it."""
    python, program = folder / "bin" / "python", folder / "bin" / "conda-unpack"
    if python.exists() and program.exists():
        done = subprocess.run([python, program], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace").strip()
            raise ModelLoadError(f"conda-unpack of {folder} failed with exit code {done.returncode}: {message}")


def _refused(archive: Path, what: str) -> ModelLoadError:
    return ModelLoadError(f"the archive {archive} cannot be unpacked: {what}", backend="python", code="INVALID_ARG")
