"""What a load request brings along: a configuration, and files in place of the model's folder.

The files lie in a folder for temporary files as long as anything that was made from them is loaded.
Source: V2 protocol, model repository extension; Triton's parameters ``config`` and ``file:<version>/<path>``.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import shutil
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from alipes.config.limits import MAX_OVERRIDE_DEPTH, MAX_OVERRIDE_FILES
from alipes.errors import RepositoryError
from alipes.process_folder import ProcessFolder
from alipes.repository.layout import ModelFolder, check_model_name
from alipes.server.failures import LoadFailed, poll_failed
from alipes.server.log import log

__all__ = ["Override", "OverrideFolders", "read_override"]

_FILE: Final = "file:"


@dataclass(frozen=True, slots=True)
class Override:
    """What takes the place of the repository's own.

    Attributes:
        config: The configuration, as JSON; `None` for the repository's own, read again although no file has changed.
        files: Content by path in the model's folder, as ``1/model.onnx``; empty keeps the repository's folder.
    """

    config: str | None
    files: Mapping[str, bytes] = field(default_factory=dict)


def read_override(model: str, parameters: Mapping[str, object]) -> Override | None:
    """What the parameters of a load request bring along; ``None`` if they bring nothing.

    Raises:
        LoadFailed: If a parameter is unknown, is no text, or is not what its name says.
    """
    for key, value in parameters.items():
        if key != "config" and not key.startswith(_FILE):
            raise LoadFailed("INVALID_ARG", f"unrecognized load parameter '{key}'.")
        if not isinstance(value, str):
            raise LoadFailed("INVALID_ARG", f"load parameter '{key}' must be a string")
    config = parameters.get("config")
    encoded = {key.removeprefix(_FILE): str(text) for key, text in parameters.items() if key.startswith(_FILE)}
    if encoded and config is None:
        raise _refused(model, "Load parameter 'config' must be specified for model file override")
    if config is None:
        return None
    if len(encoded) > MAX_OVERRIDE_FILES:
        raise _refused(model, f"{len(encoded)} files are more than the limit of {MAX_OVERRIDE_FILES}")
    return Override(str(config), {path: _decoded(path, text) for path, text in encoded.items()})


def _decoded(path: str, text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:  # what is not ASCII is a ValueError
        raise LoadFailed("INVALID_ARG", f"load parameter '{_FILE}{path}' must be base64: {error}") from error


def _refused(model: str, reason: str) -> LoadFailed:
    log.error("Poll failed for model directory '%s': %s", model, reason)
    return poll_failed(model, reason)


class OverrideFolders:
    """The folders that files of load requests are written to, one for each such load."""

    def __init__(self) -> None:
        """Makes nothing yet."""
        self._home: ProcessFolder | None = None
        self._lock = threading.Lock()

    def make(self, model: str, files: Mapping[str, bytes]) -> ModelFolder:
        """A folder with these files and nothing else.

        Raises:
            LoadFailed: If a path leads out of the folder, or the files cannot be written.
        """
        try:
            check_model_name(model)
            places = {path: _confined(path) for path in files}
        except RepositoryError as error:
            raise _refused(model, str(error)) from error
        try:
            folder = Path(tempfile.mkdtemp(dir=self._open())) / model
            folder.mkdir()
            try:
                _write(folder, {places[path]: content for path, content in files.items()})
            except BaseException:
                self.remove(folder)
                raise
        except (OSError, ValueError) as error:  # a name that the system cannot write is a ValueError
            raise _refused(model, f"cannot write the files of the request: {error}") from error
        return ModelFolder(model, folder)

    def holds(self, folder: Path) -> bool:
        """Whether a model's folder was made here."""
        return self._home is not None and folder.is_relative_to(self._home.path)

    def remove(self, folder: Path) -> None:
        """Removes a folder that was made here; any other is left alone."""
        if self.holds(folder):
            shutil.rmtree(folder.parent, ignore_errors=True)

    def close(self) -> None:
        """Removes all of them."""
        with self._lock:
            if self._home is not None:
                self._home.close()
                self._home = None

    def _open(self) -> Path:
        """The folder of this process, made at its first use."""
        with self._lock:
            if self._home is None:
                self._home = ProcessFolder("load")
            return self._home.path


def _confined(path: str) -> PurePosixPath:
    """The path of a file below the model's folder, normalised. As in Triton, one with a slash begins in the folder too.

    Raises:
        RepositoryError: If it leads elsewhere, names no file, or is too deep.
    """
    normal = posixpath.normpath(path.lstrip("/"))
    leaves = normal.startswith(("/", "../")) or normal in (".", "..")
    if leaves or path.endswith("/") or "\0" in path:
        raise RepositoryError(
            f"invalid file path {path!r} of a load request: expected a file inside the model's folder, "
            "such as '1/model.onnx'"
        )
    if normal.count("/") >= MAX_OVERRIDE_DEPTH:
        raise RepositoryError(
            f"invalid file path '{path[:40]}...' of a load request: expected at most {MAX_OVERRIDE_DEPTH} names"
        )
    return PurePosixPath(normal)


def _write(folder: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    for path, content in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
