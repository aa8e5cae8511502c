"""The two documents of an image: how it runs, and which layers it has.

Source: OCI image specification 1.1, "Image Configuration" and "Image Manifest".
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import alipes
from alipes.deploy.image.digest import digest_of
from alipes.deploy.image.layer import Layer
from alipes.deploy.image.settings import COMMAND, MODELS, PORTS, STOP_SIGNAL, USER, VARIABLES
from alipes.errors import ConfigError

__all__ = ["CONFIG", "EMPTY", "INDEX", "LAYER", "MANIFEST", "Built", "Image", "attached", "descriptor", "image_of"]

CONFIG: Final = "application/vnd.oci.image.config.v1+json"
EMPTY: Final = "application/vnd.oci.empty.v1+json"
INDEX: Final = "application/vnd.oci.image.index.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"

_ARCHITECTURES: Final = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
}
"""What Linux calls processors, and what Go does, whose words the specification uses."""


@dataclass(frozen=True, slots=True)
class Built:
    """A layer, with what people read of it and where its bytes are.

    Attributes:
        name: What it is called.
        holds: What is in it.
        layer: Its digests and sizes.
        blob: The file of its compressed bytes.
        cached: Whether it was made before.
    """

    name: str
    holds: str
    layer: Layer
    blob: Path
    cached: bool


@dataclass(frozen=True, slots=True)
class Image:
    """An image, ready to be written or pushed.

    Attributes:
        layers: The lowest first.
        config: The document about how it runs.
        manifest: The document that names all the others.
        sbom: The bill of materials.
        missing: Libraries that a file names and this machine has not, each with that file.
        left_out: Files and folders beside the app, or among the models, that did not go in.
    """

    layers: tuple[Built, ...]
    config: bytes
    manifest: bytes
    sbom: bytes
    missing: Mapping[str, Path]
    left_out: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """What the image is known by."""
        return digest_of(self.manifest)

    @property
    def unpacked(self) -> int:
        """Bytes of all files."""
        return sum(one.layer.unpacked for one in self.layers)

    @property
    def size(self) -> int:
        """Bytes that are stored and sent."""
        return sum(one.layer.size for one in self.layers)


def image_of(  # what an image is made of, by name
    layers: Sequence[Built],
    sbom: bytes,
    missing: Mapping[str, Path],
    labels: Mapping[str, str],
    time_s: int,
    served: str = MODELS,
) -> Image:
    """The image of layers; `served` is what its server is started with.

    Raises:
        ConfigError: If images have no word for this machine's processor.
    """
    created = datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    every_label = {
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.description": "Serves trained models over HTTP and gRPC, as NVIDIA Triton does.",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": "alipes",
        "org.opencontainers.image.version": alipes.__version__,
    } | dict(labels)
    config = _json(
        {
            "architecture": _architecture(),
            "os": "linux",
            "created": created,
            "config": {
                "User": f"{USER}:{USER}",
                "ExposedPorts": {f"{port}/tcp": {} for port in PORTS},
                "Env": [f"{name}={value}" for name, value in VARIABLES.items()],
                "Entrypoint": [*COMMAND, served],
                "WorkingDir": "/",
                "StopSignal": STOP_SIGNAL,
                "Labels": every_label,
            },
            "rootfs": {"type": "layers", "diff_ids": [one.layer.diff_id for one in layers]},
            "history": [{"created": created, "created_by": f"alipes deploy image: {one.name}"} for one in layers],
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, config),
            "layers": [_layer(one) for one in layers],
            "annotations": every_label,
        }
    )
    return Image(tuple(layers), config, manifest, sbom, missing)


def attached(image: Image) -> bytes:
    """The document that attaches the bill of materials to an image, for registries and those who ask them.

    Source: OCI image specification 1.1, "Guidelines for Artifact Usage".
    """
    from alipes.deploy.image.sbom import MEDIA_TYPE

    return _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": MEDIA_TYPE,
            "config": descriptor(EMPTY, b"{}"),
            "layers": [descriptor(MEDIA_TYPE, image.sbom)],
            "subject": descriptor(MANIFEST, image.manifest),
        }
    )


def descriptor(media_type: str, content: bytes) -> dict[str, Any]:
    """What another document says of bytes: their type, digest and size."""
    return {"mediaType": media_type, "digest": digest_of(content), "size": len(content)}


def _layer(one: Built) -> dict[str, Any]:
    title = {"org.opencontainers.image.title": one.name}
    return {"mediaType": LAYER, "digest": one.layer.digest, "size": one.layer.size, "annotations": title}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _architecture() -> str:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise ConfigError(f"images have no word for a processor of the kind {machine}")
    return _ARCHITECTURES[machine]
