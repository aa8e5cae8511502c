"""Writes payloads as files: of a folder, or of a bucket."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from threading import Thread
from typing import Final

from alipes.errors import AlipesError
from alipes.repository.storage.bucket import bucket_options
from alipes.repository.store.base import Store
from alipes.repository.store.open import client_of, open_store
from alipes.server.payloads.formats import FileFormat, format_of
from alipes.server.payloads.record import record
from alipes.server.payloads.sink import Payload, Sink, SinkFailed

__all__ = ["FileSink"]

_TIMEOUT_S: Final = 60.0
"""Longest wait for a file to be written: clients of buckets try again by themselves, and that takes its time."""

_FOLDER: Final = "file://"

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
"""What names of files and folders do without: names of services come from the environment."""


class FileSink(Sink):
    """A folder, or a prefix of a bucket, that takes files.

    A file appears as a whole, under a name that no other server takes, nor this one after its next start. Folders above
    it are those of KServe's logger: the namespace, the service and its component; a day's files have one more.
    """

    def __init__(
        self, address: str, file_format: str, source: Mapping[str, str], *, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """Opens the place when the first file is written.

        Args:
            address: A `file://` address, or one that fsspec knows.
            file_format: `json`, `csv` or `parquet`.
            source: Attributes that say who sends it.
            timeout_s: Longest wait for a file to be written, in seconds.

        Raises:
            ConfigError: If the package of the format is missing.
            RepositoryError: If that of the address is, or its scheme is unknown.
        """
        if not address.startswith(_FOLDER):
            client_of(address)
        self._address = address
        self._format: FileFormat = format_of(file_format)
        self._source = dict(source)
        self._timeout_s = timeout_s
        self._store: Store | None = None
        self._writing: Future[None] | None = None
        # Servers of one name may write at the same time, or one after the other.
        self._server = f"{_plain(self._source.get('source', ''))}-{secrets.token_hex(8)}"
        self._number = 0

    def send(self, payloads: Sequence[Payload]) -> None:
        """Writes a file.

        Raises:
            SinkFailed: If that fails, or takes too long. A file that is late may still appear.
        """
        if self._writing is not None and not self._writing.done():
            # Nothing can end the call that hangs; another would hang beside it.
            raise SinkFailed("an earlier file is still being written")
        content = self._format.encode([record(one, self._address, self._source) for one in payloads])
        self._writing = Future()
        Thread(
            target=self._write,
            args=(self._writing, self._path(payloads[0]), content),
            name="alipes-payload-file",
            daemon=True,
        ).start()
        try:
            self._writing.result(self._timeout_s)
        except TimeoutError as error:
            raise SinkFailed(f"a file was not written within {self._timeout_s:g} s") from error
        except (AlipesError, OSError) as error:
            raise SinkFailed(str(error)) from error
        except Exception as error:  # the errors of the clients beneath fsspec have no common class
            raise SinkFailed(f"{type(error).__name__}: {error}") from error

    def _write(self, outcome: Future[None], path: str, content: bytes) -> None:
        try:
            if self._store is None:
                options = bucket_options(self._address, "", os.environ)
                self._store = open_store(self._address, create=False, checked=False, **options)
            self._store.write(content, path)
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    def _path(self, first: Payload) -> str:
        """The path of a file, which sorts by the moment of its first payload."""
        begin = datetime.fromtimestamp(first.head["unix_ns"] / 1e9, UTC)
        names = (_plain(self._source.get(name, "")) for name in ("namespace", "inferenceservicename", "component"))
        self._number += 1
        name = f"{begin:%Y%m%dT%H%M%S.%fZ}-{self._server}-{self._number:06}.{self._format.ending}"
        return "/".join([*filter(None, names), f"{begin:%Y-%m-%d}", name])


def _plain(name: str) -> str:
    return _ODD.sub("-", name)
