"""What to do with a path that was given as a repository and is none, or is an empty one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from alipes.config.advice import file_kind
from alipes.config.model_files import USUAL_FILES
from alipes.config.nearest import nearest
from alipes.config.paths import kind_of

__all__ = ["empty_advice", "refused_advice"]

# Names that one that is absent is compared with, at most.
_COMPARED: Final = 1000


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
        if kind := USUAL_FILES.get(one.suffix):
            home = path / one.stem / "1" / kind.filename
            return f"move {one} to {home}: each model has a folder, and each version"
        if file_kind(one):
            return f"export {one} to ONNX, as {path / one.stem}/1/model.onnx"
    return f"put one at {path}/NAME/1/model.onnx (docs/tutorial/first-model.md)"


def _file_advice(path: Path) -> str:
    """A model is served with the folder of its repository: three folders up where the file lies as it should."""
    if path.parent.name.isdigit() and len(path.parents) > 2:
        return f"serve the folder of its repository: alipes serve {path.parents[2]}"
    kind = USUAL_FILES.get(path.suffix, USUAL_FILES[".onnx"])
    moved = f"{path.stem}/1/{kind.filename}"
    verb = "export it to ONNX, as" if file_kind(path) else "put the file at"
    return f"{verb} MODELS/{moved}, and serve that folder: alipes serve MODELS"


def _absent_advice(path: Path) -> str:
    missing = path
    while not missing.parent.exists():
        missing = missing.parent
    try:
        beside = [entry.name for entry in sorted(missing.parent.iterdir())[:_COMPARED] if entry.is_dir()]
    except OSError:
        beside = []
    close = nearest(missing.name, beside)
    if close is None:
        return f"there is no folder {missing}: make it, or name the one that holds the models"
    return f"did you mean {Path(missing.parent, close, path.relative_to(missing))}?"
