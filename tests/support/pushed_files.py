"""Files pushed to a registry as layers of an image or as an artifact, by plain requests."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from urllib.parse import urljoin
from urllib.request import Request, urlopen

__all__ = ["layer", "push"]

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def layer(files: Mapping[str, bytes]) -> bytes:
    """A layer with these files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as written:
        for name, content in files.items():
            one = tarfile.TarInfo(name)
            one.size = len(content)
            written.addfile(one, io.BytesIO(content))
    return made.getvalue()


def push(host: str, name: str, tag: str, layers: list[bytes], titles: Mapping[int, str] | None = None) -> str:
    """Push an image, or files with their titles by the index of their layer; returns the manifest's digest."""
    base = f"http://{host}/v2/{name}"
    rows = []
    for index, content in enumerate(layers):
        row: dict[str, object] = {"mediaType": _LAYER, "digest": _blob(base, content), "size": len(content)}
        if titles and index in titles:
            row |= {"mediaType": "application/octet-stream"}
            row |= {"annotations": {"org.opencontainers.image.title": titles[index]}}
        rows.append(row)
    config = b"{}"
    described = {"mediaType": _CONFIG, "digest": _blob(base, config), "size": len(config)}
    manifest = json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, "config": described, "layers": rows}).encode()
    _put(f"{base}/manifests/{tag}", manifest, _MANIFEST)
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _blob(base: str, content: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    with urlopen(Request(f"{base}/blobs/uploads/", b"", method="POST")) as answer:
        place = urljoin(base, answer.headers["Location"])
    _put(f"{place}{'&' if '?' in place else '?'}digest={digest}", content, "application/octet-stream")
    return digest


def _put(url: str, content: bytes, kind: str) -> None:
    with urlopen(Request(url, content, {"Content-Type": kind}, method="PUT")) as answer:
        assert answer.status == 201
