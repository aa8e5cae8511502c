"""Modules of an example, imported as its scripts import each other, and out of other tests' way afterwards."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"


def load_example(name: str, *modules: str) -> list[ModuleType]:
    """The modules of `examples/<name>`.

    Their names are short, and those of another example may be the same: so none stays in `sys.modules`.
    """
    folder = EXAMPLES / name
    own = {file.stem for file in folder.glob("*.py")}
    before = {module: sys.modules.pop(module) for module in own & sys.modules.keys()}
    sys.path.insert(0, str(folder))
    try:
        return [importlib.import_module(module) for module in modules]
    finally:
        sys.path.remove(str(folder))
        for module in own:
            sys.modules.pop(module, None)
        sys.modules.update(before)
