"""Reads `MLmodel`: which flavours a folder has, where each has its file, and the signature.

Source: the format of MLflow's model folders.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import reading

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening

__all__ = ["MlflowFolder", "read_folder"]

_FILE: Final = "MLmodel"
_LARGEST_BYTES: Final = 16 << 20
_COLUMNS: Final = {
    "boolean": "BOOL",
    "integer": "INT32",
    "long": "INT64",
    "float": "FP32",
    "double": "FP64",
    "string": "BYTES",
    "binary": "BYTES",
}
"""MLflow's types of columns, and ours."""

_TENSORS: Final = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "BYTES",
    "str": "BYTES",
    **{f"{kind}{bits}": f"{kind.upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""numpy's names of element types, and ours."""


@dataclass(frozen=True, slots=True)
class MlflowFolder:
    """What `MLmodel` says.

    Attributes:
        path: The folder.
        flavors: What each flavour says of itself, by name.
        signature: Inputs and outputs; `None` where the folder has no signature, or one that no tensors can have.
        columns: Types of the inputs by name, as MLflow calls them, where they are columns of a table.
    """

    path: Path
    flavors: Mapping[str, Mapping[str, Any]]
    signature: Signature | None
    columns: Mapping[str, str]

    def inside(self, opening: Opening, name: object) -> Path:
        """A file of the folder.

        Raises:
            LoadError: If there is none of that name in it.
        """
        home = self.path.resolve()
        found = (home / str(name)).resolve()
        if not found.is_relative_to(home) or not found.exists():
            raise opening.refuse(f"its {_FILE} names '{name}', which is not in the folder; copy the whole folder")
        return found


def read_folder(opening: Opening) -> MlflowFolder:
    """Reads the file in a folder, or the file itself.

    Raises:
        LoadError: If there is none, or it cannot be read.
    """
    folder = opening.file if opening.file.is_dir() else opening.file.parent
    file = folder / _FILE
    if not file.is_file():
        raise opening.refuse(f"it is no folder of MLflow, which holds a file {_FILE}; save the model again")
    yaml: Any = import_module("yaml")
    with reading(opening):
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            raise opening.refuse(f"its {_FILE} has more than {_LARGEST_BYTES} bytes, which is the limit")
        document = yaml.safe_load(content)
    flavors = document.get("flavors") if isinstance(document, dict) else None
    if not isinstance(flavors, dict) or not all(isinstance(one, dict) for one in flavors.values()):
        raise opening.refuse(f"its {_FILE} lists no flavors; save the model again")
    inputs, outputs = (_schema(opening, document.get("signature"), side) for side in ("inputs", "outputs"))
    columns = {str(one.get("name")): str(one["type"]) for one in inputs if one.get("type") != "tensor"}
    return MlflowFolder(folder, flavors, _signature(inputs, outputs), columns)


def _schema(opening: Opening, signature: Any, side: str) -> list[Mapping[str, Any]]:
    """The columns or tensors of one side; none where the signature does not say."""
    text = signature.get(side) if isinstance(signature, dict) else None
    if not text:
        return []
    with reading(opening):
        found = json.loads(text)
        if not isinstance(found, list) or not all(isinstance(one, dict) and "type" in one for one in found):
            raise ValueError(f"the {side} of its signature are no list of columns or tensors")
        return found


def _signature(inputs: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]) -> Signature | None:
    sides = [_ports(inputs, "input"), _ports(outputs, "output")]
    if not all(sides) or any(port is None for ports in sides for port in ports):
        return None
    return Signature(*(tuple(port for port in ports if port is not None) for ports in sides))


def _ports(schema: Sequence[Mapping[str, Any]], nameless: str) -> list[Port | None]:
    several = len(schema) > 1
    return [_port(one, f"{nameless}_{at}" if several else nameless) for at, one in enumerate(schema)]


def _port(one: Mapping[str, Any], nameless: str) -> Port | None:
    """A column or a tensor; `None` for a type that is no tensor's."""
    name = str(one.get("name") or nameless)
    if one["type"] != "tensor":
        datatype = _COLUMNS.get(str(one["type"]))
        return Port(name, datatype, (ANY, 1)) if datatype else None
    spec = one.get("tensor-spec", {})
    datatype = _TENSORS.get(str(spec.get("dtype")))
    return Port(name, datatype, tuple(int(size) for size in spec.get("shape", ()))) if datatype else None
