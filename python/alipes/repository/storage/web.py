"""A store behind an address of HTTP: an archive, which is unpacked, or one file of a model."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from alipes.errors import RepositoryError
from alipes.progress.work import task
from alipes.repository.storage.archive import is_archive, unpack
from alipes.repository.storage.cache import CachedEntry, cached
from alipes.repository.storage.download import RemoteFile, download, look

__all__ = ["WebSource"]

_CONTENTS: Final = "contents"
_DIGEST: Final = re.compile(r"sha256=([0-9a-f]{64})")
_NAME: Final = re.compile(r"[\w.-]{1,200}", re.ASCII)
_HEADERS: Final = "{host}-headers"
"""The variable with headers for a host, a JSON object. Source: KServe's storage initializer."""


class WebSource:
    """One address. A fragment `#sha256=…` is the digest that the file has to have."""

    def __init__(self, url: str, environ: Mapping[str, str] = os.environ) -> None:
        """Asks nothing yet.

        Args:
            url: The address.
            environ: The environment, which may have headers for the host.

        Raises:
            RepositoryError: If it names no file, or has a digest that is none.
        """
        plain, _, fragment = url.partition("#")
        parts = urlsplit(plain)
        digest = _DIGEST.fullmatch(fragment)
        if fragment and digest is None:
            raise RepositoryError(f"{url}: expected #sha256= and 64 hexadecimal digits behind it, or nothing")
        if parts.username or parts.password:
            raise RepositoryError(
                f"{parts.scheme}://{parts.hostname}: set the variable {_HEADERS.format(host=parts.hostname)} to a JSON "
                'object such as {"Authorization": "Bearer ..."}: an address is seen in logs and in lists of processes'
            )
        self._name = unquote(parts.path.rpartition("/")[2])
        if not parts.hostname or not _NAME.fullmatch(self._name):
            raise RepositoryError(f"{plain} names no file: expected one of a model, or a .zip, .tar or .tar.gz")
        self._called = parts._replace(query="").geturl()
        self._remote = RemoteFile(plain, _headers(parts.hostname, environ), digest[1] if digest else "")
        self._entry: CachedEntry | None = None

    def fetch(self, cancelled: threading.Event) -> Path:
        """The folder that the archive held, or the file."""
        if self._entry is None:
            try:
                with task(f"fetching {self._called}"):
                    self._entry = self._cached(cancelled)
            except RepositoryError as error:
                raise RepositoryError(f"cannot fetch {self._called}: {error}") from error
        contents = self._entry.path / _CONTENTS
        return contents if contents.is_dir() else self._entry.path / self._name

    def close(self) -> None:
        """Others may take away what was fetched."""
        if self._entry is not None:
            self._entry.close()

    def _cached(self, cancelled: threading.Event) -> CachedEntry:
        answer = look(self._remote, cancelled)
        content = self._remote.sha256 or answer.content or f"unknown {uuid.uuid4()}"

        def fill(folder: Path) -> None:
            file = folder / self._name
            download(self._remote, file, cancelled, answer)
            if is_archive(file):
                (unpacked := folder / _CONTENTS).mkdir(exist_ok=True)
                _clear(unpacked)
                unpack(file, unpacked)
                file.unlink()

        return cached(self._called, content, fill, cancelled)


def _clear(folder: Path) -> None:
    """Without what an earlier attempt has unpacked."""
    shutil.rmtree(folder)
    folder.mkdir()


def _headers(host: str, environ: Mapping[str, str]) -> dict[str, str]:
    name = _HEADERS.format(host=host)
    if not environ.get(name):
        return {}
    try:
        return {str(key): str(value) for key, value in dict(json.loads(environ[name])).items()}
    except (ValueError, TypeError) as error:
        raise RepositoryError(f"variable {name} is no JSON object of headers") from error
