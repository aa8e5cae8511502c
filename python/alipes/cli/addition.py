"""A model's file on its way into a repository: what it is, what the model is called, where it goes."""

from __future__ import annotations

import contextlib
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from alipes.cli.failures import CommandFailed
from alipes.config.file_kinds import kind_at
from alipes.config.nearest import nearest
from alipes.errors import AlipesError, ExportError
from alipes.repository.platform import Platform

if TYPE_CHECKING:
    from alipes.repository.model import Model
    from alipes.repository.model_repository import ModelRepository

__all__ = ["add_file"]

_COPY: Final = re.compile(r"\S*/version/model\.\w+")
"""Where an exporter's copy of a file lies, in what it says of it."""


def add_file(folder: str, file: Path, name: str, version: int | None) -> str:
    """Copies a file into a repository.

    Args:
        folder: The repository, which is made if it is missing.
        file: The file, or the folder of a `model.py`.
        name: The model's name; empty takes the file's.
        version: The version's number; the next one by default.

    Returns:
        The path of what was written, from the current folder.

    Raises:
        CommandFailed: If the file cannot be served, or the repository has a model of this name that is another kind.
        ExportError: If the file is not what its name says.
    """
    if Path(folder).is_file() and not file.is_file():
        raise CommandFailed(f"name the folder first: alipes repo add {file} {folder}", f"{folder} is a file")
    platform = _platform(file)
    from alipes.repository.model_repository import ModelRepository

    # What is wrong with other models is for `alipes repo list` to say.
    logging.getLogger("alipes.repository").addHandler(logging.NullHandler())
    repository = ModelRepository(folder)
    model, is_new = _model(repository, name or _name(file), platform)
    try:
        written = model.export_version(str(file), version)
    except ExportError as error:
        _forget(repository, model, is_new=is_new)
        raise CommandFailed(*_mended(error, platform, file)) from error
    except BaseException:
        _forget(repository, model, is_new=is_new)
        raise
    return f"{folder.rstrip('/')}/{written}"


def _platform(file: Path) -> Platform:
    """What kind of model a file is.

    Raises:
        CommandFailed: If it is none that is served; the text says what to do.
    """
    if not file.exists():
        there = [one.name for one in file.parent.iterdir()] if file.parent.is_dir() else []
        close = nearest(file.name, there)
        mend = f"did you mean {file.parent / close}?" if close else "name a file that is there"
        raise CommandFailed(mend, f"there is no file {file}")
    if file.suffix == ".onnx":
        return Platform.ONNX
    if file.suffix == ".py" or (file / "model.py").is_file():
        return Platform.PYTHON
    kind, version = kind_at(file), f"{_name(file)}/1"
    if kind is not None and not kind.is_served:
        raise CommandFailed(kind.instead(str(file), version), "it is not served as it is")
    if kind is not None:
        raise CommandFailed(
            f"copy {file} to {version}/{kind.filename} in the repository{kind.and_then()}",
            "this command writes ONNX and Python models, with their configurations",
        )
    raise CommandFailed("name a .onnx file, a model.py, or a folder that holds one", f"{file} is none of these")


def _name(file: Path) -> str:
    """The name of a file, or of the first folder above it that says more than `model` and a version."""
    for part in (file.stem, *(parent.name for parent in file.absolute().parents)):
        if part and part != "model" and not part.isdigit():
            return part
    return "model"


def _model(repository: ModelRepository, name: str, platform: Platform) -> tuple[Model, bool]:
    """The model of this name, and whether it was made for this."""
    if name in repository.broken:
        raise CommandFailed(f"mend {repository.fs}/{name} first, or choose a --name", repository.broken[name])
    known = repository.models
    if name not in known:
        return repository.add(name, platform), True
    if known[name].platform is not platform:
        raise CommandFailed(
            "choose another --name",
            f"'{name}' is there, as {known[name].platform.name}, and the file is {platform.name}",
        )
    return known[name], False


def _forget(repository: ModelRepository, model: Model, *, is_new: bool) -> None:
    """Removes the folder that was made for a model that it did not get: an empty one keeps a server from ready."""
    if is_new and repository.fs.isdir(model.name) and not model.versions:
        with contextlib.suppress(AlipesError, OSError):
            repository.remove(model)


def _mended(error: ExportError, platform: Platform, file: Path) -> tuple[str, str]:
    """What to do about a file that is refused, and why it is; by its own name, rather than that of its copy."""
    text = _COPY.sub(str(file), str(error))
    if platform is Platform.PYTHON and "TritonPythonModel" in text:
        return (
            "write a class TritonPythonModel (alipes help python); for a plain function use "
            "Model.export_version(function)",
            text,
        )
    return text, ""
