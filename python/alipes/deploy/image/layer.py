"""A layer of an image: a compressed archive whose bytes follow from what is in it."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.util import MAGIC_NUMBER
from typing import Any, BinaryIO, Final, Self, cast

from alipes.deploy.image.contents import Entry, Hashes, with_folders
from alipes.deploy.image.digest import CountedWriter
from alipes.deploy.image.elf import without_debugging

__all__ = ["Layer", "key_of", "write_layer"]

_LEVEL: Final = 4
"""How hard to compress. Six, the usual, takes twice the time for three per cent: on libonnxruntime 1.03 s for 11.2 MB
instead of 0.50 s for 11.5 MB."""

_FORM: Final = 1
"""Raised where the same contents become other bytes, so that layers kept from earlier releases are not used."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that has been written.

    Attributes:
        digest: Of the compressed bytes.
        diff_id: Of the archive.
        size: Compressed bytes.
        unpacked: Bytes of all files.
        files: Number of files.
    """

    digest: str
    diff_id: str
    size: int
    unpacked: int
    files: int

    def document(self) -> dict[str, Any]:
        """The same for a file of JSON."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """A layer that was noted.

        Raises:
            TypeError: If it is no such note.
        """
        return cls(**document)


def key_of(contents: Mapping[str, Entry], hashes: Hashes, time_s: int) -> str:
    """What a layer of these contents is found by: it differs where anything of the layer would.

    Args:
        contents: What the layer is made from.
        hashes: The hashes of its files.
        time_s: The time of all files, in seconds since 1970.

    Raises:
        ConfigError: If a file cannot be read.
    """
    whole = sha256(f"{_FORM} {time_s} {sys.implementation.cache_tag} {MAGIC_NUMBER.hex()} {sys.version}".encode())
    for path, entry in sorted(contents.items()):
        content = hashes.of(entry) if entry.is_file else entry.target or "/"
        whole.update(f"\n{path}\0{entry.mode:o} {content}".encode(errors="surrogateescape"))
    return whole.hexdigest()


def write_layer(contents: Mapping[str, Entry], out: BinaryIO, time_s: int, advance: Callable[[float], None]) -> Layer:
    """Writes the archive of files, folders and links, compressed.

    Args:
        contents: What goes in.
        out: Where to write.
        time_s: The time of all files, in seconds since 1970.
        advance: Called with the bytes of each file.

    Raises:
        ConfigError: If a file cannot be read.
        OSError: If it cannot be written.
    """
    packed = CountedWriter(out)
    unpacked = files = 0
    # Neither a name nor a time stands in its head.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=packed, mtime=0) as squeezed:
        plain = CountedWriter(squeezed)
        with tarfile.open(fileobj=cast(BinaryIO, plain), mode="w|", format=tarfile.PAX_FORMAT) as archive:
            for path, entry in with_folders(contents).items():
                data = without_debugging(entry.read()) if entry.is_file else b""
                archive.addfile(_header(path, entry, len(data), time_s), io.BytesIO(data) if entry.is_file else None)
                unpacked, files = unpacked + len(data), files + entry.is_file
                advance(len(data))
    return Layer(packed.digest, plain.digest, packed.size, unpacked, files)


def _header(path: str, entry: Entry, size: int, time_s: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.mode, header.mtime, header.size = entry.mode, time_s, size
    if entry.target is not None:
        header.type, header.linkname = tarfile.SYMTYPE, entry.target
    elif not entry.is_file:
        header.type = tarfile.DIRTYPE
    return header
