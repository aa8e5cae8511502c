"""Opens archives of AOTInductor, which hold machine code and how its arguments and results nest."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from alipes.worker.frameworks.opened import Opening, reading
from alipes.worker.frameworks.pytorch.binding import Arguments, Results
from alipes.worker.frameworks.pytorch.nesting import NAMED, RESULT, leaf_paths, paths_of_arguments, result_names
from alipes.worker.frameworks.pytorch.opened import OpenedFile

__all__ = ["open_compiled", "stated_inputs"]

_DATATYPES: Final[Mapping[str, str]] = {
    "Bool": "BOOL",
    "Byte": "UINT8",
    "Char": "INT8",
    "Double": "FP64",
    "Float": "FP32",
    "Half": "FP16",
    "Int": "INT32",
    "Long": "INT64",
    "Short": "INT16",
    **{f"UInt{bits}": f"UINT{bits}" for bits in (16, 32, 64)},
}
"""What the source calls element types, and ours."""

_KIND: Final = re.compile(r"input_handles\[(\d{1,4})\]: unmatched dtype[^;]{0,200}\(at::k(\w{1,20})\)")
_SIZE: Final = re.compile(
    r"input_handles\[(\d{1,4})\]: unmatched dim value at (\d{1,3}), \"\s*<< \"expected: (\d{1,18}), "
)
"""Where the source of the code checks its inputs, if it is asked to. It is not: it would refuse single rows, too."""

_MOST_BYTES: Final = 1 << 26
"""The largest source that is read."""


def open_compiled(opening: Opening) -> OpenedFile:
    """Opens an archive of AOTInductor.

    Raises:
        LoadError: If it cannot be read, or the operator does not allow it.
    """
    opening.need_pickles("compiled code")
    with reading(opening):
        loader = _loader(opening)
        in_spec, out_spec = (pytree.treespec_loads(text) for text in loader.get_call_spec())
    paths = paths_of_arguments(in_spec)
    keys = result_names(leaf_paths(out_spec))
    datatypes, sizes = stated_inputs(opening.file, len(paths))
    return OpenedFile(
        _Code(loader),
        Arguments(
            tuple(_plain(path) for path in paths),
            required=len(paths),
            paths=tuple(paths),
            datatypes=datatypes,
            sizes=sizes,
        ),
        Results(len(keys), keys, leaf_paths=tuple(f"{RESULT}{path}" for path in leaf_paths(out_spec))),
        reload=lambda: _Code(_loader(opening)),
    )


def stated_inputs(file: Path, count: int) -> tuple[tuple[str, ...], tuple[Mapping[int, int], ...]]:
    """The datatype of each input, and the sizes of its axes that are fixed, as the source in the archive has them.

    Machine code reads whatever bytes it is given, and says nothing of what it expects.

    Args:
        file: The archive.
        count: How many inputs there are.

    Returns:
        A datatype for each, torch's own word where we have none, empty where the archive does not say; sizes by axis.
    """
    datatypes, sizes = [""] * count, [dict[int, int]() for _ in range(count)]
    with zipfile.ZipFile(file) as archive:
        for record in archive.infolist():
            if not record.filename.endswith(".cpp") or record.file_size > _MOST_BYTES:
                continue
            source = archive.read(record).decode(errors="replace")
            for found in _KIND.finditer(source):
                if int(found[1]) < count:
                    datatypes[int(found[1])] = _DATATYPES.get(found[2], found[2])
            for found in _SIZE.finditer(source):
                if int(found[1]) < count:
                    sizes[int(found[1])][int(found[2])] = int(found[3])
    return tuple(datatypes), tuple(sizes)


def _loader(opening: Opening) -> Any:
    return torch._inductor.aoti_load_package(str(opening.file)).loader


def _plain(path: str) -> str:
    """An argument as `forward` calls it, where the archive says so: positional ones have no names in it."""
    name = path.removeprefix(f"{NAMED}[").removesuffix("]")
    return name if path != name and "[" not in name else path


class _Code:
    """Calls machine code with its tensors one by one, and gives its results one by one."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __call__(self, *tensors: Any) -> list[Any]:
        return list(self._loader.boxed_run(list(tensors)))
