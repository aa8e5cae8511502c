"""Modules of the folder `examples`, which is no package."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def load(file: Path) -> ModuleType:
    """Imports a file of an example, by its path; files beside it that it imports are not found."""
    spec = importlib.util.spec_from_file_location(f"{file.parent.name.replace('-', '_')}_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
