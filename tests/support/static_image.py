"""An image of one program that needs no library, as an archive that container engines load."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

_OCI = "application/vnd.oci.image"


def write_image(file: Path, name: str, program: Path, arguments: Sequence[str], user: str = "") -> None:
    """Write the archive.

    Args:
        file: Where.
        name: What engines call the image, `localhost/name:tag`.
        program: The program; it is `/program` in the image.
        arguments: What it is started with.
        user: The number of the user that runs it; root, where there is none.
    """
    blobs: dict[str, bytes] = {}

    def keep(kind: str, content: bytes) -> dict[str, str | int]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    layer = keep("layer.v1.tar", _archive({"program": program.read_bytes()}))
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/program", *arguments], "User": user},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    configured = keep("config.v1+json", json.dumps(config).encode())
    manifest = {"schemaVersion": 2, "config": configured, "layers": [layer]}
    listed = keep("manifest.v1+json", json.dumps(manifest).encode())
    index = {"schemaVersion": 2, "manifests": [listed | {"annotations": {"io.containerd.image.name": name}}]}
    head = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": json.dumps(index).encode()}
    file.write_bytes(_archive(head | blobs))


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
