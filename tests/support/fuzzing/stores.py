"""What the fuzzers of stores begin with, and what must hold: archives and manifests that somebody else has made."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from alipes.errors import RepositoryError
from alipes.repository.storage.archive import unpack
from alipes.repository.storage.oci import layers_of

__all__ = ["archives", "check_archive", "check_manifest", "manifests"]

_LONGEST_TEXT = 2_000


def archives() -> Iterable[bytes]:
    """Archives with files, folders and links."""
    for mode in ("w", "w:gz", "w:xz"):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode=mode) as written:  # type: ignore[call-overload]
            for name, link in (("a/b", ""), ("c", "a/b"), ("d", "../x"), ("a/.wh.b", "")):
                one = tarfile.TarInfo(name)
                one.type, one.linkname, one.size = tarfile.SYMTYPE if link else tarfile.REGTYPE, link, 0 if link else 3
                written.addfile(one, None if link else io.BytesIO(b"abc"))
        yield made.getvalue()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("a/b", "abc")
        packed.writestr("../c", "abc")
    yield made.getvalue()


def manifests() -> Iterable[bytes]:
    """Manifests of an image and of an artifact."""
    digest = f"sha256:{'0' * 64}"
    tar = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": 3}
    titled = {"mediaType": "text/plain", "digest": digest, "size": 3}
    titled |= {"annotations": {"org.opencontainers.image.title": "a/b"}}
    yield json.dumps({"schemaVersion": 2, "layers": [tar, titled]}).encode()
    yield json.dumps({"layers": [dict(titled, annotations={"org.opencontainers.image.title": "../b"})]}).encode()


def check_archive(data: bytes) -> None:
    """Whatever an archive holds lies in its folder, or it is refused; every other one is a layer on files."""
    _check_unpacked(data, is_layer=sum(data[-8:]) % 2 == 1)


def check_manifest(data: bytes) -> None:
    """The layers of any manifest can be checked and stay in their folder, or it is refused."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        found = layers_of(document)
    except RepositoryError as error:
        return _check_text(error, data)
    for blob in found:
        assert len(blob.digest) == len("sha256:") + 64 and blob.size >= 0
        assert ".." not in blob.title.split("/") and not blob.title.startswith("/")


def _check_unpacked(data: bytes, *, is_layer: bool) -> None:
    with tempfile.TemporaryDirectory() as home:
        file, folder = Path(home) / "archive", Path(home) / "out"
        file.write_bytes(data)
        (folder / "a").mkdir(parents=True)
        if is_layer:
            (folder / "a" / "below").write_text("below")
            (folder / "link").symlink_to("a")
        try:
            unpack(file, folder, is_layer=is_layer)
        except RepositoryError as error:
            _check_text(error, data)
        else:
            for path in folder.rglob("*"):
                assert path.resolve().is_relative_to(folder.resolve()), path
                assert path.is_symlink() or path.is_dir() or path.is_file(), path
        assert {path.name for path in Path(home).iterdir()} == {"archive", "out"}


def _check_text(error: RepositoryError, data: bytes) -> None:
    assert 0 < len(str(error)) <= _LONGEST_TEXT + 12 * len(data), len(str(error))
