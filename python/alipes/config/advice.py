"""What to do with a model's folder in which no model file lies where one is looked for.

Nothing here is asked of a folder that loads. The answer is for people: one line, what to do first, with paths as they
are within the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from alipes.config.model_files import SERVED_FILES, USUAL_FILES

__all__ = ["EXPORT_PAGE", "TO_EXPORT", "file_kind", "holds_file", "model_advice"]

EXPORT_PAGE: Final = "docs/how-to/export-models.md"

TO_EXPORT: Final = {
    ".joblib": "a pickled model",
    ".pkl": "a pickled model",
    ".pickle": "a pickled model",
    ".h5": "a Keras model",
    ".pb": "a TensorFlow graph",
    ".graphdef": "a TensorFlow graph",
    ".tflite": "a TensorFlow model",
    ".plan": "a TensorRT plan",
    ".engine": "a TensorRT plan",
    ".safetensors": "a file of weights",
}
"""Files of models that are served once they were exported, by how their names end."""

_SAVED_FOLDER: Final = "model.savedmodel"
_SAVED_MODEL: Final = "saved_model.pb"

# Folders beside the versions that Triton's layout knows.
_RESERVED: Final = frozenset({"warmup", "initial_state", "configs"})

# What completes its configuration from a model file; a configuration may name others, which need none.
_WITH_FILES: Final = frozenset({"", "onnxruntime", "python"})

_BACKEND: Final = re.compile(r'^\s*backend\s*:\s*"([^"]*)"', re.MULTILINE)
_FILENAME: Final = re.compile(r'^\s*default_model_filename\s*:\s*"([^"]*)"', re.MULTILINE)
_ENSEMBLE: Final = re.compile(r'^\s*platform\s*:\s*"ensemble"', re.MULTILINE)

_PLAIN: Final = re.compile(r"[\w. -]{1,100}", re.ASCII)
"""A name that a person would give a file."""

_LARGEST_CONFIG: Final = 1 << 20


def model_advice(folder: Path, name: str, *, offered: bool = True) -> str:
    """What to do so that a folder becomes a model; empty where its files are as expected, or nothing is known.

    Args:
        folder: The model's folder.
        name: What the model is called, for the paths in the answer.
        offered: Whether the model's backend is; one of another package may read files that have to be exported else.
    """
    try:
        config, folders, files = _config(folder), *_contents(folder)
        versions = sorted((one for one in folders if _is_version(one)), key=int)
        if not versions:
            return _without_version(folder, name, config, folders, files)
        if not offered:
            found = (_to_export(folder / one, f"{name}/{one}") for one in versions)
        elif _ENSEMBLE.search(config) or _named(_BACKEND, config) not in _WITH_FILES:
            return ""
        else:
            found = (_in_version(folder / one, f"{name}/{one}", config) for one in versions)
        return next((advice for advice in found if advice), "")
    except OSError:
        return ""


def file_kind(path: Path) -> str:
    """What a file or folder is that has to be exported before it is served; empty for any other."""
    return TO_EXPORT.get(path.suffix.lower(), "")


def holds_file(folder: Path) -> bool:
    """Whether a model's file lies in a folder, whatever the folder is called; not where it cannot be read."""
    try:
        folders, files = _contents(folder)
        ours = any(name.startswith("model.") or name.endswith(tuple(USUAL_FILES)) for name in files)
        return ours or any(file_kind(folder / name) for name in (*files, *folders))
    except OSError:
        return False


def _in_version(folder: Path, called: str, config: str) -> str:
    folders, files = _contents(folder)
    names = [*files, *folders]
    expected = _named(_FILENAME, config)
    if expected and not _PLAIN.fullmatch(expected):
        return ""  # the error is about the name itself
    if expected in names or (not expected and any(name in SERVED_FILES for name in names)):
        return ""
    if not names:
        return f"put the model's file into {called}, as {expected or 'model.onnx or model.py'}: the folder is empty"
    for suffix, kind in USUAL_FILES.items():
        if found := _ending(files, suffix):
            named = f'default_model_filename: "{found}"'
            chosen = named if _named(_BACKEND, config) else f'backend: "{kind.backend}" and {named}'
            return f"rename {called}/{found} to {expected or kind.filename}, or write {chosen} into config.pbtxt"
    saved = next((name for name in folders if (folder / name / _SAVED_MODEL).is_file()), "")
    renamed = f"rename {called}/{saved} to {expected or _SAVED_FOLDER}: it is a SavedModel" if saved else ""
    put = f"put {expected or 'model.onnx or model.py'} into {called}: there is only {_few(names)}"
    return renamed or _to_export(folder, called) or put


def _to_export(folder: Path, called: str) -> str:
    folders, files = _contents(folder)
    kinds = ((found, file_kind(folder / found)) for found in (*files, *folders))
    return next((_export(f"{called}/{found}", kind, f"{called}/model.onnx") for found, kind in kinds if kind), "")


def _without_version(folder: Path, name: str, config: str, folders: list[str], files: list[str]) -> str:
    if _ENSEMBLE.search(config):
        return f"make the empty folder {name}/1: an ensemble has a version, too"
    for found in folders:
        if found not in _RESERVED and holds_file(folder / found):
            number = int(digits[0]) if (digits := re.findall(r"\d{1,18}", found)) else 1
            return f"rename {name}/{found} to {name}/{number or 1}: the folder of a version is called by its number"
    for suffix, kind in USUAL_FILES.items():
        if found := _ending(files, suffix):
            return f"move {name}/{found} to {name}/1/{kind.filename}: each version has a folder, called by its number"
    for found in (*files, *folders):
        if other := file_kind(folder / found):
            return _export(f"{name}/{found}", other, f"{name}/1/model.onnx")
    if models := [one for one in folders if _holds_version(folder / one)]:
        return f"serve {name} itself: it is a repository, of {_few(models)}"
    return f"put the model's file at {name}/1/model.onnx (or model.py), or remove the folder: it has no version"


def _export(path: str, kind: str, to: str) -> str:
    return f"export {path} to ONNX, as {to} ({EXPORT_PAGE}): {kind} is not served as it is"


def _contents(folder: Path) -> tuple[list[str], list[str]]:
    """The names of the folders and of the files in a folder, sorted, without hidden ones."""
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "__")))
    folders = [entry.name for entry in entries if entry.is_dir()]
    return folders, [entry.name for entry in entries if not entry.is_dir()]


def _config(folder: Path) -> str:
    """The beginning of the configuration; empty where there is none."""
    path = folder / "config.pbtxt"
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LARGEST_CONFIG)


def _named(field: re.Pattern[str], config: str) -> str:
    found = field.search(config)
    return found[1] if found is not None else ""


def _holds_version(folder: Path) -> bool:
    folders, _ = _contents(folder)
    return any(_is_version(name) for name in folders)


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit() and not name.startswith("0")


def _ending(names: Iterable[str], suffix: str) -> str:
    return next((name for name in names if name.lower().endswith(suffix)), "")


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
