"""Looks into a `.keras` file before Keras opens it: whether it holds code, and who wrote it.

Source: the format of Keras 3, an archive with `config.json`, `metadata.json` and weights.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from alipes.worker.frameworks.opened import reading

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening

__all__ = ["check_archive"]

_LARGEST_BYTES: Final = 64 << 20  # of each description in the archive, unpacked

_CODE: Final = ("__lambda__", "TorchModuleWrapper")
"""Classes of a configuration that hold code: a function of Python, and a pickle of PyTorch."""


def check_archive(opening: Opening) -> str:
    """The version of Keras that wrote a file; empty where it does not say.

    Raises:
        LoadError: If it is no such file, or holds code without being allowed to.
    """
    with reading(opening), zipfile.ZipFile(opening.file) as archive:
        config = _description(opening, archive, "config.json")
        about = _description(opening, archive, "metadata.json")
    if any(name in _CODE for name in _class_names(config)):
        opening.need_pickles("a Lambda layer or another piece of code")
    return str(about.get("keras_version", "")) if isinstance(about, Mapping) else ""


def _description(opening: Opening, archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise opening.refuse(f"its {name} has more than {_LARGEST_BYTES} bytes, which is the limit")
    return json.loads(content)


def _class_names(config: Any) -> Iterator[str]:
    """The classes that a configuration names, at any depth."""
    pending = [config]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            yield str(one.get("class_name", ""))
            pending += one.values()
        elif isinstance(one, list):
            pending += one
