"""Imports an app: a file, or a module by its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.worker.apps.options import Options, options_of
from alipes.worker.apps.steps import Step, steps_of
from alipes.worker.sources import import_file_as, open_folder

__all__ = ["FILE", "Source", "declared"]

FILE: Final = "app.json"
"""File of a version that says which function of which source it runs; clients do not see it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an app stands.

    Attributes:
        file: Its file, absolute or below the version's folder; empty where it is a module.
        module: Its module; empty where it is a file.
        root: The folder in which modules are looked for.
    """

    file: str = ""
    module: str = ""
    root: str = ""

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Source:
        """From the document of a version."""
        return cls(**{name: str(document.get(name, "")) for name in ("file", "module", "root")})

    def load(self, folder: Path | None = None) -> ModuleType:
        """Imports the app; what it imports from beside it is read anew, and nothing is written there.

        Args:
            folder: Folder of the version, for a file below it.

        Raises:
            BaseException: Whatever the source raises.
        """
        if self.module:
            open_folder(Path(self.root))
            sys.path.insert(0, self.root)
            return importlib.import_module(self.module)
        file = folder / self.file if folder is not None else Path(self.file)
        open_folder(file.parent)
        sys.path.insert(0, str(file.parent))
        return import_file_as(file.stem, file)


def declared(module: ModuleType, name: str = "") -> dict[str, Step]:
    """The models of an app by their names, steps included.

    Args:
        module: The app.
        name: The one that is wanted with its steps, by its own name or by that of the function; all where empty.

    Raises:
        ConfigError: If two have one name, or none is the one that is wanted.
    """
    found: dict[str, tuple[Any, Options]] = {}
    for attribute, thing in vars(module).items():
        options = options_of(thing)
        if options is None:
            continue
        other = found.get(options.name)
        if other is not None and other[0] is not thing:
            raise ConfigError(
                f"two models are called '{options.name}', the second one is {attribute}: "
                'give one another name, as in @alipes.model(name="other")'
            )
        found[options.name] = (thing, options)
    if not found:
        raise ConfigError("the app has no model: write @alipes.model above a function or a class")
    wanted = {key: one for key, one in found.items() if name in ("", key, getattr(one[0], "__name__", ""))}
    if not wanted:
        raise ConfigError(f"the app has no model '{name}'; it has {', '.join(sorted(found))}")
    steps: dict[str, Step] = {}
    for thing, options in wanted.values():
        for key, step in steps_of(thing, options).items():
            if key in steps:
                raise ConfigError(f"two models are called '{key}', one of them a step: give one another name")
            steps[key] = step
    return steps
