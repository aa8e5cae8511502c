"""What a script names to be served: a folder that is there, the address of a bucket, or an app."""

from __future__ import annotations

import os
from pathlib import Path
from types import FunctionType, MethodType

from alipes.apps.target import is_app, target_of
from alipes.errors import ConfigError, ServeError

__all__ = ["are_functions", "repository_of"]


def are_functions(thing: object) -> bool:
    """Whether something is a function or a class, or a list of them, which are served as they are."""
    things = thing if isinstance(thing, list | tuple) else [thing]
    return bool(things) and all(isinstance(one, FunctionType | MethodType | type) for one in things)


def repository_of(folder: str | os.PathLike[str]) -> str:
    """The repository as an argument of the server: a folder by its whole path, a bucket by its address, an app.

    Raises:
        ServeError: If it is no path, or the folder is not there, or it is a model.
    """
    if not isinstance(folder, str | os.PathLike):
        raise ServeError(_no_path(folder))
    text = os.fspath(folder).removeprefix("file://")
    if "://" in text:
        return text
    path = Path(text).expanduser().absolute()
    if is_app(text):
        try:
            target_of(text)
        except ConfigError as error:
            raise ServeError(str(error)) from error
        return text if path.suffix != ".py" else str(path)
    if not path.is_dir():
        if path.is_file() and _is_model(path):
            return str(path)
        raise ServeError(_absent(text, path))
    if (path / "config.pbtxt").is_file() and any(entry.name.isdecimal() for entry in path.iterdir()):
        raise ServeError(f"{text} is a model, not a repository: name the folder that it is in, {str(path.parent)!r}")
    return str(path)


def _no_path(thing: object) -> str:
    kind = type(thing).__name__
    if not callable(thing):
        return (
            f"{kind} is no repository: name the folder that holds the models' folders, as in "
            '"models", or the address of a bucket; or pass a function'
        )
    return (
        f"{kind} is no repository: pass a function that calls it, as in alipes.serve(predict), or write it to one by "
        'ModelRepository("models").add("model", "onnx").export_version(model, input_shapes={...}), and serve "models"'
    )


def _is_model(path: Path) -> bool:
    from alipes.repository.single_files import is_single_file  # most scripts name a folder

    return is_single_file(str(path))


def _absent(text: str, path: Path) -> str:
    if path.is_file():
        return f"{text} is a file: name the folder that holds the models' folders, each with versions in it (1, 2, ...)"
    return f"there is no model repository at {path}: {_mend(path)}"


def _mend(path: Path) -> str:
    """The nearest folder that is there; else what a repository is."""
    from alipes.config.nearest import nearest  # on use: most scripts name a folder that is there

    there = next(parent for parent in path.parents if parent.is_dir())
    missing = path.relative_to(there).parts[0]
    try:
        close = nearest(missing, [entry.name for entry in there.iterdir() if entry.is_dir()])
    except OSError:
        close = None
    if close is None:
        return "it has to be a folder, or the address of a bucket"
    return f"did you mean {str(there / close)!r}?"
