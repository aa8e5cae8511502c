"""Images in the layout of the OCI, read back by themselves: their documents, their layers, their file system."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Layout:
    """A folder that holds one image."""

    folder: Path

    def document(self, digest: str) -> dict[str, Any]:
        """A blob of JSON."""
        return dict(json.loads(self.blob(digest).read_bytes()))

    def blob(self, digest: str) -> Path:
        """The file of a blob."""
        algorithm, _, digits = digest.partition(":")
        return self.folder / "blobs" / algorithm / digits

    @property
    def index(self) -> dict[str, Any]:
        """The list of images."""
        return dict(json.loads((self.folder / "index.json").read_bytes()))

    @property
    def manifest(self) -> dict[str, Any]:
        """The document of the one image."""
        (listed,) = self.index["manifests"]
        return self.document(listed["digest"])

    @property
    def config(self) -> dict[str, Any]:
        """How it runs."""
        return self.document(self.manifest["config"]["digest"])

    def check_blobs(self) -> None:
        """Every blob is what its name says, and every one is referred to.

        Raises:
            AssertionError: If one is not.
        """
        manifest = self.manifest
        named = {
            one["digest"]: one["size"] for one in (*self.index["manifests"], manifest["config"], *manifest["layers"])
        }
        there = {f"sha256:{path.name}" for path in (self.folder / "blobs" / "sha256").iterdir()}
        assert there == set(named)
        for digest, size in named.items():
            data = self.blob(digest).read_bytes()
            assert (f"sha256:{sha256(data).hexdigest()}", len(data)) == (digest, size)

    def unpack(self, into: Path) -> None:
        """Lays the layers over each other; nothing in them may lead out of the folder."""
        for layer in self.manifest["layers"]:
            with tarfile.open(self.blob(layer["digest"])) as archive:
                archive.extractall(into, filter="tar")
