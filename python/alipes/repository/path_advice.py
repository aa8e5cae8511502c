"""What to do with a path that was given as a repository and is none, or is an empty one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.advice import loose_advice
from alipes.config.file_kinds import ALL_KINDS, FileKind, kind_at, kind_of_name
from alipes.config.model_files import SERVED_FILES
from alipes.config.nearest import ALIKE, nearest
from alipes.config.paths import kind_of

__all__ = ["beside_advice", "empty_advice", "refused_advice"]

_OF_OTHERS: Final = frozenset({".json", ".mlflow", ".py", ".savedmodel", ".txt"})
"""Ends of the names of programs, of folders, and of files that mostly are no models."""

_ENDS: Final = tuple(
    dict.fromkeys(
        end
        for kind in ALL_KINDS
        if kind.name and kind.filename in SERVED_FILES and (end := Path(kind.filename).suffix) not in _OF_OTHERS
    )
)
"""Ends of files that are served as they are."""

# Bytes of a program in which its import of alipes is looked for.
_LOOKED_AT: Final = 1 << 16

# Names that one that is absent is compared with, at most.
_COMPARED: Final = 1000


_NO_MODEL: Final = {
    ".ipynb": "call alipes.Server(function) in the notebook, or move its function into an app.py and serve that",
}
"""What to do with files that hold code, by their endings."""
_HUB: Final = ("huggingface.co", "hf.co")


def refused_advice(path: Path) -> str:
    """What to say in the place of a path that is absent or no folder.

    Args:
        path: The path, absolute.
    """
    return _file_advice(path) if kind_of(path) == "file" else _absent_advice(path)


def empty_advice(path: Path) -> str:
    """What to do with a repository without a folder in it.

    Args:
        path: The repository.
    """
    try:
        found = sorted(path.iterdir())
    except OSError:
        return ""
    for one in found:
        if one.suffix == ".py" and _is_app(one):
            return f"serve the program itself: alipes serve {one}"
        if advice := _loose(one):
            return advice
    return f"put one at {path}/NAME/1/model.onnx (alipes help files)"


def beside_advice(path: Path) -> str:
    """What to do with a file that lies beside the folders of models; empty where there is none.

    Programs in Python are left alone: scripts lie beside models on purpose.

    Args:
        path: The repository.
    """
    try:
        files = sorted(one for one in path.iterdir() if one.suffix != ".py" and kind_of(one) == "file")
    except OSError:
        return ""
    return next((advice for one in files if (advice := _loose(one))), "")


def _file_advice(path: Path) -> str:
    """A model is served with the folder of its repository: three folders up where the file lies as it should."""
    if path.parent.name.isdigit() and len(path.parents) > 2:
        return f"serve the folder of its repository: alipes serve {path.parents[2]}"
    kind, version = _kind(path), f"MODELS/{path.stem}/1"
    if path.suffix in _NO_MODEL:
        return _NO_MODEL[path.suffix]
    if kind is None:
        return (
            f"{path.name} is no file of a model: serve a folder of models, a program in Python (app.py), or a file "
            f"that ends in one of {', '.join(_ENDS)}"
        )
    if not kind.is_served:
        return f"{kind.instead('it', version)}; then serve that folder: alipes serve MODELS"
    return f"put the file at {version}/{kind.filename}, and serve that folder: alipes serve MODELS{kind.and_then()}"


def _loose(path: Path) -> str:
    """What to do with a file that lies beside the folders of models; empty where it is none of a model."""
    kind = _kind(path)
    return loose_advice(str(path), f"{path.parent / path.stem}/1", kind) if kind is not None else ""


def _is_app(path: Path) -> bool:
    """Whether a program has functions to be served, by a look at its text."""
    try:
        with path.open("rb") as file:
            return b"alipes" in file.read(_LOOKED_AT)
    except OSError:
        return False


def _kind(path: Path) -> FileKind | None:
    try:
        return kind_at(path)
    except OSError:
        return None


def _absent_advice(path: Path) -> str:
    if meant := _foreign(path.name):
        return meant
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    try:
        beside = [entry.name for entry in sorted(missing.parent.iterdir())[:_COMPARED] if entry.is_dir()]
    except OSError:
        beside = []
    if close := nearest(missing.name, beside):
        return f"did you mean {Path(missing.parent, close, path.relative_to(missing))}?"
    if missing == path and (file := _file_beside(path)):
        return f"did you mean {file}?"
    if missing.name in _HUB:
        return f"say hf://{path.relative_to(missing)}"
    if kind_of_name(path.name) is not None:
        return f"there is no file {path}: name one that is there"
    return f"there is no folder {missing}: make it, or name the one that holds the models"


def _foreign(name: str) -> str:
    """What to write for a word that servers of other makers take; empty for all others."""
    model, equals, file = name.partition("=")
    if equals and kind_of_name(file) is not None and not file.endswith(".onnx"):
        return f"a file is served under its own name: rename it to {model}{Path(file).suffix}, and leave out {model}="
    if equals and kind_of_name(file) is not None:
        return f"to serve {file} as {model}, type alipes repo add models {file} --name {model}, and alipes serve models"
    program, colon, functions = name.partition(":")
    if colon and "," in functions:
        file = f"{program.removesuffix('.py').replace('.', '/')}.py"
        return f"serve all functions of the file, or one: alipes serve {file} or {file}:{functions.partition(',')[0]}"
    return ""


def _file_beside(path: Path) -> Path | None:
    """The file that was meant: one without its ending, or a model's whose name is spelled so."""
    try:
        files = [one for one in sorted(path.parent.iterdir())[:_COMPARED] if one.is_file()]
    except OSError:
        return None
    served = [one for one in files if kind_of_name(one.name) is not None]
    if whole := [one for one in served if one.stem == path.name]:
        return whole[0]
    alike = {one.stem: one for one in served if one.suffix == path.suffix}
    return alike.get(nearest(path.stem, alike, ALIKE) or "")
