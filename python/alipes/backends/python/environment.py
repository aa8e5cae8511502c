"""Finds the Python that runs a model: the server's own, or the one that `EXECUTION_ENV_PATH` names.

Source: Triton's parameter of that name, which takes an archive of conda-pack or its unpacked folder; virtual
environments and interpreters are ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from alipes.backends.python.archive import is_archive, unpack
from alipes.backends.python.cache import unpacked
from alipes.backends.python.interpreter import check_interpreter
from alipes.config.paths import kind_of
from alipes.errors import ConfigError
from alipes.model_load import Load

__all__ = ["Environment", "find_environment"]

_MODEL_DIRECTORY: Final = "$$TRITON_MODEL_DIRECTORY"

_KEY: Final = "parameters.EXECUTION_ENV_PATH"

_HOMES: Final = {"pyvenv.cfg": "VIRTUAL_ENV", "conda-meta": "CONDA_PREFIX"}
"""What makes a folder an environment, and the variable by which programs that run in it find it."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What runs a model.

    Attributes:
        python: The interpreter, absolute. A link stays a link: by its place it finds its environment.
        variables: Environment variables of the process, above the server's own.
    """

    python: Path
    variables: Mapping[str, str] = field(default_factory=dict)


def find_environment(value: str, folder: Path, name: str, load: Load | None = None) -> Environment:
    """The environment that a model asks for. Unpacking a large archive takes its time, once.

    Args:
        value: `EXECUTION_ENV_PATH` as it is written; empty for the server's own interpreter.
        folder: The model's folder, absolute.
        name: The model's name, for messages.
        load: The load that this is part of; cancelled, it ends what was begun.

    Raises:
        ConfigError: If the value names nothing that can be an environment.
        ModelLoadError: If the archive cannot be unpacked, the interpreter is too old or lacks numpy, or the load is
            cancelled.
    """
    load = load or Load()
    if not value:
        return Environment(Path(sys.executable))
    path = _absolute(value, folder)
    kind = kind_of(path)
    if kind == "nothing":
        raise _wrong(value, name, "which does not exist")
    if kind == "folder":
        found = _of_folder(path)
    elif kind != "file":
        raise _wrong(value, name, "which is no regular file")
    elif _is_interpreter(path):
        found = _of_interpreter(path)
    elif is_archive(path):
        found = _of_folder(unpacked(path, partial(unpack, load=load)))
    else:
        raise _wrong(value, name, "which is none of these")
    if found is None:
        raise _wrong(value, name, "which holds no bin/python")
    check_interpreter(found.python, found.variables, name, load)
    return found


def _absolute(value: str, folder: Path) -> Path:
    if value.startswith(_MODEL_DIRECTORY):
        value = f"{folder}{value.removeprefix(_MODEL_DIRECTORY)}"
    return Path(value).absolute()


def _is_interpreter(path: Path) -> bool:
    """Whether a file may be run to see what it is. A load request can name it, so not every program will do."""
    return path.name.startswith("python") and os.access(path, os.X_OK)


def _of_folder(home: Path) -> Environment | None:
    python = home / "bin" / "python"
    if not os.access(python, os.X_OK):
        return None
    variables = {"PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    variables |= {variable: str(home) for mark, variable in _HOMES.items() if kind_of(home / mark) != "nothing"}
    return Environment(python, variables)


def _of_interpreter(python: Path) -> Environment:
    """An interpreter inside an environment brings the environment along; any other is used alone."""
    home = python.parent.parent
    of_home = _of_folder(home) if any(kind_of(home / mark) != "nothing" for mark in _HOMES) else None
    return Environment(python, of_home.variables if of_home is not None else {})


def _wrong(value: str, name: str, what: str) -> ConfigError:
    return ConfigError(
        f"EXECUTION_ENV_PATH of model '{name}' must name the folder of a Python environment, an archive of one "
        f"(.tar.gz) or an interpreter, got '{value}', {what}",
        key=_KEY,
    )
