"""What a file of PyTorch is, by its content: several kinds are called `model.pt`, and two `model.pt2`."""

from __future__ import annotations

import zipfile
from enum import Enum
from pathlib import Path
from typing import Final

__all__ = ["FileKind", "kind_of"]

_PICKLE: Final = b"\x80\x02"
"""How files begin that torch wrote before it had archives, and writes still where it is asked to."""


class FileKind(Enum):
    """What a file is; the value is what messages call it."""

    SCRIPT = "TorchScript"
    EXPORTED = "an archive of torch.export"
    COMPILED = "an archive of AOTInductor"
    WEIGHTS = "weights"
    SAFETENSORS = "safetensors"
    CODE = "a factory"
    UNKNOWN = "no file of PyTorch"


def kind_of(file: Path) -> FileKind:
    """What a file is.

    Raises:
        OSError: If it cannot be read.
    """
    if file.suffix == ".py":
        return FileKind.CODE
    if file.suffix == ".safetensors":
        return FileKind.SAFETENSORS
    try:
        with zipfile.ZipFile(file) as archive:
            return _kind_of_archive(archive.namelist())
    except zipfile.BadZipFile:
        with file.open("rb") as opened:
            return FileKind.WEIGHTS if opened.read(len(_PICKLE)) == _PICKLE else FileKind.UNKNOWN


def _kind_of_archive(names: list[str]) -> FileKind:
    # The first folder of an archive is called as its writer pleased, and older archives of torch.export have none.
    inner = {name.partition("/")[2] for name in names}
    if any(name.startswith("data/aotinductor/") for name in inner):
        return FileKind.COMPILED
    if "serialized_exported_program.json" in names or any(name.startswith("models/") for name in inner):
        return FileKind.EXPORTED
    if "constants.pkl" in inner:
        return FileKind.SCRIPT
    return FileKind.WEIGHTS if "data.pkl" in inner else FileKind.UNKNOWN
