"""Looks into a `.keras` file before Keras opens it: whether it holds code or lacks some, and who wrote it.

Source: the format of Keras 3, an archive with `config.json`, `metadata.json` and weights.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from alipes.worker.frameworks.opened import reading

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening

__all__ = ["KerasArchive", "check_archive"]

_LARGEST_BYTES: Final = 64 << 20  # of each description in the archive, unpacked

_CODE: Final = ("__lambda__", "TorchModuleWrapper")
"""Classes of a configuration that hold code: a function of Python, and a pickle of PyTorch."""


@dataclass(frozen=True, slots=True)
class KerasArchive:
    """What a file says of itself.

    Attributes:
        made_by: The version of Keras that wrote it; empty where it does not say.
        own: Layers, models and functions whose code is not Keras' own, such as "class 'Twice'": the file names them.
    """

    made_by: str
    own: tuple[str, ...]


def check_archive(opening: Opening) -> KerasArchive:
    """What a file says of itself.

    Raises:
        LoadError: If it is no such file, or holds code without being allowed to.
    """
    with reading(opening), zipfile.ZipFile(opening.file) as archive:
        config = _description(opening, archive, "config.json")
        about = _description(opening, archive, "metadata.json")
    objects = list(_objects(config))
    if any(str(one.get("class_name", "")) in _CODE for one in objects):
        opening.need_pickles("a Lambda layer or another piece of code")
    made_by = str(about.get("keras_version", "")) if isinstance(about, Mapping) else ""
    return KerasArchive(made_by, tuple(dict.fromkeys(name for one in objects if (name := _own(one)))))


def _description(opening: Opening, archive: zipfile.ZipFile, name: str) -> Any:
    with archive.open(name) as file:
        content = file.read(_LARGEST_BYTES + 1)
    if len(content) > _LARGEST_BYTES:
        raise opening.refuse(f"its {name} has more than {_LARGEST_BYTES} bytes, which is the limit")
    return json.loads(content)


def _objects(config: Any) -> Iterator[Mapping[str, Any]]:
    """What a configuration is made of, at any depth, from the outside in."""
    pending = [config]
    while pending:
        one = pending.pop(0)
        if isinstance(one, Mapping):
            yield one
            pending += one.values()
        elif isinstance(one, list):
            pending += one


def _own(one: Mapping[str, Any]) -> str:
    """What an object is called whose code Keras has only where somebody imports it; empty for Keras' own."""
    called, module = str(one.get("class_name", "")), one.get("module")
    if called == "function" and module == "builtins":
        return f"function '{one.get('config')}'"
    # A class of a script has no module. Parts of the description that are no classes do not speak of one.
    is_own = "module" in one and (module is None or str(module).partition(".")[0] not in ("keras", "builtins"))
    if called and is_own and one.get("registered_name"):
        return f"class '{called}'"
    return ""
