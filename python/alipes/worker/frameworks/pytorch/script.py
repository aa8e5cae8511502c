"""Opens TorchScript, and finds out what such a file says of its inputs."""

from __future__ import annotations

import collections
import pickle
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch

from alipes.signature import Port
from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.pytorch.binding import Arguments, Results
from alipes.worker.frameworks.pytorch.opened import OpenedFile

__all__ = ["open_script", "traced_inputs"]

_STORAGES: Final[Mapping[str, str]] = {
    "BFloat16Storage": "bfloat16",
    "BoolStorage": "BOOL",
    "ByteStorage": "UINT8",
    "CharStorage": "INT8",
    "DoubleStorage": "FP64",
    "FloatStorage": "FP32",
    "HalfStorage": "FP16",
    "IntStorage": "INT32",
    "LongStorage": "INT64",
    "ShortStorage": "INT16",
}
"""What pickles of torch call the memory of tensors, and the datatype in it."""

_MOST_BYTES: Final = 1 << 20
"""The largest record of examples that is read; it holds sizes, not numbers."""


def open_script(opening: Opening) -> OpenedFile:
    """Opens a file of TorchScript.

    Raises:
        LoadError: If it cannot be read.
    """
    with reading(opening):
        script = torch.jit.load(str(opening.file), map_location=opening.device).eval()
        schema = script.forward.schema
    arguments = _arguments(schema)
    examples = traced_inputs(opening.file)
    known = len(examples) == len(arguments.names)
    return OpenedFile(
        script,
        arguments,
        _results(schema.returns[0].type),
        weights=(*script.parameters(), *script.buffers()),
        owner=script,
        examples=tuple(Port(name, *one) for name, one in zip(arguments.names, examples, strict=True)) if known else (),
    )


def _arguments(schema: Any) -> Arguments:
    rest = schema.arguments[1:]  # the first is the module itself
    types = {one.name: str(one.type) for one in rest}
    needed = [not one.has_default_value() for one in rest]
    return Arguments(
        names=tuple(types),
        required=needed.index(False) if False in needed else len(needed),
        texts=tuple(kind in ("List[str]", "Optional[List[str]]") for kind in types.values()),
        dictionary=list(types.values()) == ["Dict[str, Tensor]"],
    )


def _results(kind: Any) -> Results:
    return Results(_count(kind))


def _count(kind: Any) -> int | None:
    """How many results a type stands for; `None` where that is seen when the script runs."""
    if kind.kind() == "TupleType":
        counts = [_count(one) for one in kind.elements()]
        return None if None in counts else sum(count for count in counts if count is not None)
    several = kind.kind() == "DictType" or (kind.kind() == "ListType" and str(kind) != "List[str]")
    return None if several else 1


def traced_inputs(file: Path) -> list[tuple[str, tuple[int, ...]]]:
    """Datatype and shape of each tensor that a script was traced with; empty where the file does not say.

    torch writes them beside the code, as a pickle, and has no function to read them again.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            records = [one for one in archive.infolist() if one.filename.endswith("/traced_inputs.pkl")]
            if len(records) != 1 or records[0].file_size > _MOST_BYTES:
                return []
            with archive.open(records[0]) as opened:
                found = _Examples(opened).load()
    except (pickle.UnpicklingError, zipfile.BadZipFile, OSError, ValueError, TypeError, EOFError):
        return []
    examples = found.get("forward", []) if isinstance(found, dict) else []
    tensors = [one for one in examples if isinstance(one, tuple)]
    return tensors if len(tensors) == len(examples) else []


class _Examples(pickle.Unpickler):
    """Reads tensors as their datatypes and shapes, and refuses whatever else a pickle may hold."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the pickle stands for."""
        match module, name:
            case "collections", "OrderedDict":
                return collections.OrderedDict
            case "torch.jit._pickle", "restore_type_tag":
                return _untagged
            case "torch._utils", "_rebuild_tensor_v2":
                return _shape
            case "torch", _ if name in _STORAGES:
                return _STORAGES[name]
        raise pickle.UnpicklingError(f"{module}.{name} is no part of an example")

    def persistent_load(self, pid: Any) -> Any:
        """The datatype of the memory under a tensor."""
        return pid[1]


def _untagged(value: Any, _tag: str) -> Any:
    return value


def _shape(datatype: str, _offset: int, shape: tuple[int, ...], *_rest: Any) -> tuple[str, tuple[int, ...]]:
    return datatype, tuple(int(size) for size in shape)
