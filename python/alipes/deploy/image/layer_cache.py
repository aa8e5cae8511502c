"""Layers that are kept, so that an image is made anew in the time that it takes to see that nothing changed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from alipes.deploy.image.digest import CountedWriter
from alipes.deploy.image.layer import Layer
from alipes.errors import ConfigError

__all__ = ["LayerCache"]

_MOST_BYTES: Final = 4 * 1024**3
"""What is kept at most: some twenty images without GPU parts. The layers that were not used for longest go first."""

_BLOCK: Final = 1 << 20


class LayerCache:
    """A folder of layers, each found by what it was made from."""

    def __init__(self, folder: Path | None = None) -> None:
        """Takes the folder; by default that of the user's cache.

        Raises:
            ConfigError: If it cannot be made.
        """
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._folder = home / "alipes" / "image" if folder is None else folder
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self._folder}, which keeps layers, cannot be made: {error.strerror}",
                hint="name another folder for caches with XDG_CACHE_HOME",
            ) from error

    def blob(self, layer: Layer) -> Path:
        """The file of a layer."""
        return self._folder / f"{layer.digest.partition(':')[2]}.tar.gz"

    def find(self, key: str) -> Layer | None:
        """The layer of a key, if it is kept and whole."""
        note = self._note(key)
        try:
            layer = Layer.from_document(json.loads(note.read_bytes()))
            if _digest(self.blob(layer)) != layer.digest:
                return None
            for path in (note, self.blob(layer)):
                os.utime(path)
        except (OSError, ValueError, TypeError, AttributeError):
            return None
        return layer

    def add(self, key: str, write: Callable[[BinaryIO], Layer]) -> Layer:
        """Has a layer written, and keeps it.

        Args:
            key: What it is found by.
            write: Writes its bytes.

        Raises:
            ConfigError: If the folder cannot be written.
        """
        try:
            with _replaced(self._folder) as (file, into):
                layer = write(file)
                file.close()
                into(self.blob(layer))
            with _replaced(self._folder) as (file, into):
                file.write(json.dumps(layer.document()).encode())
                file.close()
                into(self._note(key))
        except OSError as error:
            raise ConfigError(f"{self._folder}, which keeps layers, cannot be written: {error.strerror}") from error
        return layer

    def shrink(self, most_bytes: int = _MOST_BYTES) -> None:
        """Removes the layers that were not used for longest, until the others fit."""
        with contextlib.suppress(OSError):
            found = [(path, path.stat()) for path in self._folder.iterdir() if path.is_file()]
            size = sum(status.st_size for _, status in found)
            for path, status in sorted(found, key=lambda one: one[1].st_mtime_ns):
                if size <= most_bytes:
                    break
                path.unlink(missing_ok=True)
                size -= status.st_size

    def _note(self, key: str) -> Path:
        return self._folder / f"{key}.json"


@contextlib.contextmanager
def _replaced(folder: Path) -> Iterator[tuple[BinaryIO, Callable[[Path], Path]]]:
    """A new file, and what gives it its name; without a name it is gone at the end."""
    number, name = tempfile.mkstemp(dir=folder, prefix=".new-")
    path = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            yield file, path.replace
    finally:
        path.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    counted = CountedWriter()
    with path.open("rb") as opened:
        while block := opened.read(_BLOCK):
            counted.write(block)
    return counted.digest
