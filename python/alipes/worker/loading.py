"""Loading a model: its file, its class, its start.

A model's file is imported as ``<version>.<name of the file>``, with the version's folder and the model's folder at the
end of `sys.path`, as Triton does: both ``import helper`` and ``from . import helper`` find its neighbours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from alipes.worker.failure import describe
from alipes.worker.sources import import_file, import_package, open_folder

__all__ = ["LoadError", "load_class", "load_module", "require_numpy", "start_model"]

_CLASS: Final = "TritonPythonModel"


class LoadError(Exception):
    """A model cannot be loaded; the message is what the server says of it."""


def require_numpy(model_name: str) -> None:
    """Makes sure that numpy is there.

    Raises:
        LoadError: If it is not: which interpreter lacks it, and what to type.
    """
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise LoadError(describe(error)) from error
        version = ".".join(str(part) for part in sys.version_info[:3])
        raise LoadError(
            f"numpy is not installed for {sys.executable} (Python {version}), which runs model '{model_name}': "
            f"install it with '{sys.executable} -m pip install numpy'"
        ) from None
    except BaseException as error:
        raise LoadError(describe(error)) from error


def load_module(file: Path, version_directory: Path) -> ModuleType:
    """Imports a model file.

    Args:
        file: The file.
        version_directory: The folder of the version; the file is usually in it.

    Raises:
        LoadError: If the file cannot be imported.
    """
    model_directory = version_directory.parent
    open_folder(model_directory)
    sys.path += [str(version_directory), str(model_directory)]
    try:
        return import_file(file, import_package(version_directory))
    except BaseException as error:
        raise LoadError(describe(error)) from error


def load_class(file: Path, version_directory: Path) -> Any:
    """Imports a model file and gives its class.

    Raises:
        LoadError: If the file cannot be imported or has no such class.
    """
    module = load_module(file, version_directory)
    if not hasattr(module, _CLASS):
        raise LoadError(f"Python model file {file} does not define a class `{_CLASS}`.")
    return getattr(module, _CLASS)


def start_model(model_class: Any, file: Path, arguments: dict[str, str]) -> Any:
    """Makes a model and initializes it.

    Raises:
        LoadError: If it raises, or has no `execute`.
    """
    try:
        model = model_class()
        if hasattr(model, "initialize"):
            model.initialize(arguments)
    except BaseException as error:
        raise LoadError(describe(error)) from error
    if not callable(getattr(model, "execute", None)):  # read now, since `initialize` may have set it
        raise LoadError(f"Python model file {file} does not implement `execute` method.")
    return model
