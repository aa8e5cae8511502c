"""A file that lists models, each with where it lies: the `models.json` of KServe's controller.

Source of the form: KServe, the config map `modelconfig-<service>-<shard>`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from alipes.errors import RepositoryError
from alipes.repository.layout import check_model_name

__all__ = ["Listed", "read_model_list"]

MAX_BYTES: Final = 16 << 20
"""Bytes of a list. Kubernetes keeps at most 1 MiB in a config map."""
MAX_MODELS: Final = 10_000
"""Models of a list: each costs threads and memory where it runs, long before."""
_TWICE: Final = "model is listed twice"


class _Spec(msgspec.Struct):
    storageUri: str
    framework: str = ""
    memory: str = ""


class _Entry(msgspec.Struct):
    modelName: str
    modelSpec: _Spec


@dataclass(frozen=True)
class Listed:
    """What a list says.

    Attributes:
        addresses: Where each model lies, by its name.
        refused: Why an entry is none, by the name that it gives.
    """

    addresses: Mapping[str, str]
    refused: Mapping[str, str]


def read_model_list(file: Path) -> Listed:
    """Read the file, through the links by which Kubernetes replaces it.

    Raises:
        RepositoryError: If it cannot be read as a whole: it is not there, or half of it was written.
    """
    entries = _entries(file)
    counts = Counter(entry.modelName for entry in entries)
    refused = {name: _TWICE for name, count in counts.items() if count > 1}
    for name in counts:
        try:
            check_model_name(name)
        except RepositoryError as error:
            refused[name] = str(error)
    return Listed({one.modelName: one.modelSpec.storageUri for one in entries if one.modelName not in refused}, refused)


def _entries(file: Path) -> list[_Entry]:
    try:
        with file.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise RepositoryError(f"{error.strerror}: it is looked for again") from error
    if len(text) > MAX_BYTES:
        raise RepositoryError(f"it has more than {MAX_BYTES} bytes")
    try:
        entries = msgspec.json.decode(text, type=list[_Entry])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise RepositoryError(f"it is no list of models in KServe's form: {error}") from error
    if len(entries) > MAX_MODELS:
        raise RepositoryError(f"it lists {len(entries)} models, and {MAX_MODELS} are allowed")
    return entries
