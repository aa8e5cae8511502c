"""An image as files: a folder or an archive in the layout of the OCI.

Source: OCI image specification 1.1, "Image Layout".
"""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from alipes.config.paths import kind_of
from alipes.deploy.image.digest import digest_of
from alipes.deploy.image.manifest import INDEX, MANIFEST, Image, descriptor
from alipes.deploy.image.reference import Name
from alipes.errors import ConfigError

__all__ = ["check_place", "holds_image", "is_archive", "write_archive", "write_folder"]

_VERSION: Final = b'{"imageLayoutVersion": "1.0.0"}'
_MARK: Final = "oci-layout"
_FIRST: Final = _MARK.encode() + b"\0"
"""What an archive begins with: the name of its first file."""


def is_archive(path: Path) -> bool:
    """Whether a path asks for an archive rather than a folder."""
    return path.suffix == ".tar"


def holds_image(path: Path) -> bool:
    """Whether a folder or an archive is an image, as written here."""
    kind = kind_of(path)
    if kind == "folder":
        return kind_of(path / _MARK) == "file"
    if not is_archive(path) or kind != "file":
        return False
    try:
        with path.open("rb") as opened:
            return opened.read(len(_FIRST)) == _FIRST
    except OSError:
        return False  # copying the file reports the error


def check_place(path: Path) -> None:
    """Refuses a place that no image can be written to, before one is made.

    Raises:
        ConfigError: If the path holds something else, or cannot be written.
    """
    with _refusals(path):
        if is_archive(path):
            if path.is_dir():
                raise ConfigError(f"{path} is a folder", hint="name another file with --output")
            with tempfile.TemporaryFile(dir=path.parent):
                return
        if path.exists() and not (path / _MARK).is_file() and (not path.is_dir() or any(path.iterdir())):
            raise ConfigError(f"{path} is there and holds no image", hint="name another folder with --output")
        is_new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
        if is_new:
            path.rmdir()  # where the image is not made, nothing is left of it


def write_folder(image: Image, path: Path, name: Name) -> None:
    """Writes a folder, in the place of an image that it held before.

    Raises:
        ConfigError: If it cannot be written.
    """
    with _refusals(path):
        blobs = path / "blobs" / "sha256"
        blobs.mkdir(parents=True, exist_ok=True)
        for digest, source in _blobs(image):
            _place(source, blobs / digest)
        (path / _MARK).write_bytes(_VERSION)
        # Last, in one step: until then the folder holds the image that it held.
        new = path / ".index.json"
        new.write_bytes(_index(image, name))
        new.replace(path / "index.json")
        wanted = {digest for digest, _ in _blobs(image)}
        for other in blobs.iterdir():
            if other.name not in wanted:
                other.unlink()


def write_archive(image: Image, path: Path, name: Name) -> None:
    """Writes an archive that podman, containerd and skopeo read, and with a page more than the layout Docker too.

    Raises:
        ConfigError: If it cannot be written.
    """
    with _refusals(path):
        number, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with (
                os.fdopen(number, "wb") as file,
                tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as out,
            ):
                for inner, source in _files(image, name):
                    _add(out, inner, source)
            Path(new).chmod(0o666 & ~_umask())
            Path(new).replace(path)
        finally:
            Path(new).unlink(missing_ok=True)


def _files(image: Image, name: Name) -> Iterator[tuple[str, bytes | Path]]:
    """The files of an archive, by their path."""
    yield _MARK, _VERSION
    yield "index.json", _index(image, name)
    yield "manifest.json", _for_docker(image, name)
    for digest, source in _blobs(image):
        yield f"blobs/sha256/{digest}", source


def _blobs(image: Image) -> Iterator[tuple[str, bytes | Path]]:
    """What an image consists of, by digest, each once."""
    seen: set[str] = set()
    for layer in image.layers:
        if layer.layer.digest not in seen:
            seen.add(layer.layer.digest)
            yield _hex(layer.layer.digest), layer.blob
    for document in (image.config, image.manifest):
        yield _hex(digest_of(document)), document


def _index(image: Image, name: Name) -> bytes:
    config = json.loads(image.config)
    listed = descriptor(MANIFEST, image.manifest) | {
        "platform": {"architecture": config["architecture"], "os": config["os"]},
        # The first is what podman and skopeo look for, the second what containerd and Docker name an image by.
        "annotations": {"org.opencontainers.image.ref.name": name.tag, "io.containerd.image.name": name.full},
    }
    document: dict[str, Any] = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [listed]}
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _for_docker(image: Image, name: Name) -> bytes:
    """The list of images in an archive as `docker save` writes it."""
    listed = {
        "Config": f"blobs/sha256/{_hex(digest_of(image.config))}",
        "RepoTags": [name.full],
        "Layers": [f"blobs/sha256/{_hex(one.layer.digest)}" for one in image.layers],
    }
    return json.dumps([listed]).encode()


def _place(source: bytes | Path, path: Path) -> None:
    """Writes a blob, unless it is there; a file that was cut off is written again."""
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if path.is_file() and path.stat().st_size == size:
        return
    new = path.with_name(f".{path.name}")
    if isinstance(source, bytes):
        new.write_bytes(source)
    else:
        shutil.copyfile(source, new)
    new.replace(path)


def _add(archive: tarfile.TarFile, inner: str, source: bytes | Path) -> None:
    header = tarfile.TarInfo(inner)
    header.mode = 0o644
    if isinstance(source, bytes):
        header.size = len(source)
        archive.addfile(header, io.BytesIO(source))
    else:
        header.size = source.stat().st_size
        with source.open("rb") as opened:
            archive.addfile(header, opened)


def _hex(digest: str) -> str:
    return digest.partition(":")[2]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be written: {error.strerror}", hint="name another place with --output"
        ) from error
