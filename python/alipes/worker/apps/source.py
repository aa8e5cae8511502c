"""Imports an app: a file, or a module by its name."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.worker.apps.frameworks import foreign_object
from alipes.worker.apps.options import Options, checked, options_of
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


def declared(module: ModuleType, name: str = "", served_as: str = "") -> dict[str, Step]:
    """The models of an app by their names, steps included.

    Args:
        module: The app.
        name: The one that is wanted with its steps, by its own name or by that of the function; all where empty.
        served_as: Another name for the only model that is wanted; its own where empty.

    Raises:
        ConfigError: If two have one name, none is the one that is wanted, or several would have the other name.
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
        raise ConfigError(_nothing(module, name))
    wanted = {key: one for key, one in found.items() if name in ("", key, getattr(one[0], "__name__", ""))}
    if not wanted:
        raise ConfigError(f"the app has no model '{name}': name one that it has: {', '.join(sorted(found))}")
    if served_as:
        wanted = _renamed(wanted, served_as)
    steps: dict[str, Step] = {}
    for thing, options in wanted.values():
        for key, step in steps_of(thing, options).items():
            if key in steps:
                raise ConfigError(f"two models are called '{key}', one of them a step: give one another name")
            steps[key] = step
    return steps


def _nothing(module: ModuleType, name: str) -> str:
    """What alipes serves, and what to type, for an app without a model."""
    serves = "alipes serves functions and classes under @alipes.model"
    found = foreign_object(module, name)
    if found is not None:
        attribute, framework = found
        return (
            f"'{attribute}' is an object of {framework}, and {serves}: write it above the function that computes the "
            "answer (alipes help functions)"
        )
    file = Path(module.__file__).name if module.__file__ else module.__name__
    return f"{serves}, and {file} has none: write it above one (alipes help functions)"


def _renamed(wanted: dict[str, tuple[Any, Options]], name: str) -> dict[str, tuple[Any, Options]]:
    """The only model under another name."""
    if len(wanted) > 1:
        raise ConfigError(
            f"--model-name={name} names one model, and the app has {', '.join(sorted(wanted))}: serve one of them, as "
            "in app.py:name"
        )
    ((thing, options),) = wanted.values()
    return {name: (thing, checked(replace(options, name=name)))}
