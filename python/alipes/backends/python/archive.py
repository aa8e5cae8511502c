"""Unpacks the archive of a Python environment, and nothing outside the folder that it is meant for."""

from __future__ import annotations

import lzma
import tarfile
import zlib
from pathlib import Path
from typing import Final

from alipes.backends.python.program import run_program
from alipes.config.limits import MAX_ENVIRONMENT_BYTES, MAX_ENVIRONMENT_FILES
from alipes.config.paths import kind_of
from alipes.errors import ModelLoadError
from alipes.model_load import Load

__all__ = ["is_archive", "unpack"]

_BROKEN: Final = (tarfile.TarError, EOFError, OSError, ValueError, lzma.LZMAError, zlib.error)
"""What a reader of archives raises where one is damaged, and the system where the disk is full."""


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, compressed or not."""
    try:
        return tarfile.is_tarfile(path)
    except (OSError, lzma.LZMAError, zlib.error, EOFError):
        return False


def unpack(archive: Path, folder: Path, load: Load | None = None) -> None:
    """Unpack an archive into a folder that exists and is empty.

    Refused are paths that lead out of the folder, links to outside of it, devices, and more than the limits allow.

    Args:
        archive: The archive.
        folder: The folder.
        load: The load that this is part of.

    Raises:
        ModelLoadError: If the archive is damaged or refused, cannot be written, or the load is cancelled; the folder is
            then of no use.
    """
    load = load or Load()
    if not hasattr(tarfile, "data_filter"):
        raise _refused(archive, "this Python cannot unpack archives safely; serve with 3.11.4 or newer")
    try:
        with tarfile.open(archive) as opened:
            _extract(opened, archive, folder, load)
    except tarfile.FilterError as error:
        raise _refused(archive, f"{error} (a virtual environment must be made with --copies to be packed)") from error
    except _BROKEN as error:
        raise _refused(archive, f"{type(error).__name__}: {error}") from error
    _settle(folder, load)


def _extract(opened: tarfile.TarFile, archive: Path, folder: Path, load: Load) -> None:
    total = 0
    for count, member in enumerate(opened, start=1):
        load.check()
        total += member.size
        if count > MAX_ENVIRONMENT_FILES:
            raise _refused(archive, f"it holds more than {MAX_ENVIRONMENT_FILES} files")
        if total > MAX_ENVIRONMENT_BYTES:
            raise _refused(archive, f"it unpacks to more than {MAX_ENVIRONMENT_BYTES} bytes")
        opened.extract(member, folder, filter="data")
        # The reader keeps every member that it has seen; a large environment has hundreds of thousands.
        opened.members = []  # type: ignore[attr-defined]  # not in the stub


def _settle(folder: Path, load: Load) -> None:
    """Lets an environment of conda-pack write its new place into its files, where it brings the program for it."""
    python, program = folder / "bin" / "python", folder / "bin" / "conda-unpack"
    if kind_of(python) == kind_of(program) == "file":
        try:
            done = run_program([str(python), str(program)], load)
        except OSError as error:
            raise ModelLoadError(f"conda-unpack of {folder} cannot be run: {error.strerror}") from error
        if done is not None and done.exit_code != 0:
            message = done.errors.decode(errors="replace").strip()
            raise ModelLoadError(f"conda-unpack of {folder} failed with exit code {done.exit_code}: {message}")


def _refused(archive: Path, what: str) -> ModelLoadError:
    text = f"the archive {archive} cannot be unpacked: {what}"
    return ModelLoadError(text, backend="python", code="INVALID_ARG").hiding({str(archive): archive.name})
