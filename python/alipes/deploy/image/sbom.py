"""What is in an image, for those who look for weaknesses and licences: a bill of materials by CycloneDX.

A dictionary in the form of its schema 1.6, https://cyclonedx.org/docs/1.6/json. cyclonedx-python-lib would bring six
packages for it; a test asks that library's own copy of the schema.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

import alipes
from alipes.deploy.image.contents import Contents, Hashes, file
from alipes.deploy.image.packages import Package
from alipes.deploy.image.system_packages import SystemPackage

__all__ = ["MEDIA_TYPE", "PATH", "bill_of_materials"]

PATH: Final = "usr/share/sbom/alipes.cdx.json"
"""Where it lies in an image."""

MEDIA_TYPE: Final = "application/vnd.cyclonedx+json"

_EXPRESSION: Final = frozenset({"AND", "OR", "WITH"})


def bill_of_materials(
    packages: Iterable[Package],
    libraries: Mapping[str, Path],
    owners: Mapping[Path, SystemPackage],
    hashes: Hashes,
    time_s: int,
) -> bytes:
    """The document: Python, its packages, and the libraries of the system with their digests.

    Args:
        packages: The packages.
        libraries: The libraries, by name.
        owners: Which package of the system a library is of.
        hashes: The hashes of files.
        time_s: The time that it names, in seconds since 1970.

    Raises:
        ConfigError: If a file cannot be read.
    """
    components = [
        _python(),
        *(_package(one, hashes) for one in packages),
        *(_library(name, path, owners, hashes) for name, path in sorted(libraries.items())),
    ]
    content: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": "alipes",
                "version": alipes.__version__,
            },
        },
        "components": components,
        "dependencies": [{"ref": "image", "dependsOn": [one["bom-ref"] for one in components]}],
    }
    # The same content has the same number, whenever and wherever it is written.
    serial = uuid5(NAMESPACE_URL, json.dumps(content, sort_keys=True))
    return json.dumps(content | {"serialNumber": f"urn:uuid:{serial}"}, indent=1, sort_keys=True).encode()


def _python() -> dict[str, Any]:
    version = platform.python_version()
    return {
        "type": "application",
        "bom-ref": f"pkg:generic/python@{version}",
        "name": "python",
        "version": version,
        "purl": f"pkg:generic/python@{version}",
        "licenses": [{"expression": "Python-2.0"}],
    }


def _package(package: Package, hashes: Hashes) -> dict[str, Any]:
    purl = f"pkg:pypi/{package.name.lower().replace('_', '-')}@{package.version}"
    document = {"type": "library", "bom-ref": purl, "name": package.name, "version": package.version, "purl": purl}
    return document | _licences(package.licence) | _of_files(package.contents, hashes)


def _library(name: str, path: Path, owners: Mapping[Path, SystemPackage], hashes: Hashes) -> dict[str, Any]:
    digest = hashes.of(file(path))
    document: dict[str, Any] = {"type": "library", "bom-ref": f"library:{name}", "name": name}
    document["hashes"] = [{"alg": "SHA-256", "content": digest}]
    owner = owners.get(path)
    if owner is None:
        return document
    purl = f"pkg:deb/{owner.distribution}/{owner.name}@{owner.version.replace(':', '%3A')}?arch={owner.architecture}"
    return document | {"version": owner.version, "purl": purl}


def _licences(words: str) -> dict[str, Any]:
    """A licence by its identifiers where the metadata have an expression of them; else by its name."""
    if not words:
        return {}
    if any(word in _EXPRESSION for word in words.split()):
        return {"licenses": [{"expression": words}]}
    return {"licenses": [{"license": {"name": words}}]}


def _of_files(contents: Contents, hashes: Hashes) -> dict[str, Any]:
    """One digest of all files of a package as they are installed: of lines like those of `sha256sum`, by path."""
    lines = "".join(f"{hashes.of(entry)}  {path}\n" for path, entry in sorted(contents.items()))
    return {"properties": [{"name": "alipes:files:sha256", "value": sha256(lines.encode()).hexdigest()}]}
