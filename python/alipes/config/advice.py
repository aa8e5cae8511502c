"""What to do with a model's folder in which no model file lies where one is looked for.

Nothing here is asked of a folder that loads. The answer is for people: one line, what to do first, with paths as they
are within the repository.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from alipes.config.file_kinds import FileKind, folder_kind, kind_at, kind_of_name
from alipes.config.model_files import PLATFORMS, SERVED_FILES

__all__ = ["holds_file", "loose_advice", "model_advice"]

# Folders beside the versions that Triton's layout knows.
_RESERVED: Final = frozenset({"warmup", "initial_state", "configs"})

# What completes its configuration from a model file; a configuration may name others, which need none.
_WITH_FILES: Final = frozenset({"", *(row.backend for row in PLATFORMS if row.served and row.filename)})

_WEIGHTS: Final = ".safetensors"

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
            found = (_instead(folder / one, f"{name}/{one}") for one in versions)
        elif _ENSEMBLE.search(config) or _named(_BACKEND, config) not in _WITH_FILES:
            return ""
        else:
            found = (_in_version(folder / one, f"{name}/{one}", config) for one in versions)
        return next((advice for advice in found if advice), "")
    except OSError:
        return ""


def holds_file(folder: Path) -> bool:
    """Whether a model's file lies in a folder, whatever the folder is called; not where it cannot be read."""
    try:
        folders, files = _contents(folder)
        names = (*files, *folders)
        return folder_kind(files) is not None or any(
            name.startswith("model.") or kind_of_name(name) is not None for name in names
        )
    except OSError:
        return False


def _in_version(folder: Path, called: str, config: str) -> str:
    folders, files = _contents(folder)
    names = [*files, *folders]
    expected, backend = _named(_FILENAME, config), _named(_BACKEND, config)
    if expected and not _PLAIN.fullmatch(expected):
        return ""  # the error is about the name itself
    served = [expected] if expected in names else [name for name in names if not expected and name in SERVED_FILES]
    if served:
        return _disguised(folder, called, served, backend)
    if not names:
        return f"put the model's file into {called}, as {expected or 'model.onnx or model.py'}: the folder is empty"
    for name in sorted(names, key=lambda name: (kind_of_name(name) is None, _rank(name))):
        kind = kind_at(folder / name)
        if kind is not None and kind.is_served and backend in ("", kind.backend):
            return _renamed(called, name, kind, expected, backend)
    put = f"put {expected or 'model.onnx or model.py'} into {called}: there is only {_few(names)}"
    return _instead(folder, called) or put


def _renamed(called: str, name: str, kind: FileKind, expected: str, backend: str) -> str:
    """What to do with a file that is served under another name."""
    filename = expected or kind.filename
    if filename == name:
        return f"{kind.further}: {called}/{name} is {kind.what}"
    if kind.filename.endswith((".savedmodel", ".mlflow")):
        return f"rename {called}/{name} to {filename}: it is {kind.what}"
    named = f'default_model_filename: "{name}"'
    chosen = named if backend else f'backend: "{kind.backend}" and {named}'
    return f"rename {called}/{name} to {filename}, or write {chosen} into config.pbtxt{kind.and_then()}"


def _disguised(folder: Path, called: str, served: list[str], backend: str) -> str:
    """What to do with files that have the right name and are something else, or need another backend."""
    for name in served:
        kind = kind_at(folder / name)
        row = next((row for row in PLATFORMS if row.filename == name), None)
        if kind is None or (row is not None and kind.backend == row.backend):
            continue
        if not kind.is_served:
            return kind.instead(f"{called}/{name}", called)
        if row is not None and backend in ("", kind.backend):
            return f"rename {called}/{name} to {kind.filename}: it is {kind.what}"
    weights = next((one for one in _contents(folder)[1] if one.endswith(_WEIGHTS)), "")
    if served == ["model.py"] and weights and not backend:
        return f'write backend: "pytorch" into config.pbtxt, if {called}/model.py makes the module of {weights}'
    return ""


def _instead(folder: Path, called: str) -> str:
    """What to do with a file that is not served as it is; empty where there is none."""
    folders, files = _contents(folder)
    kinds = ((name, kind_at(folder / name)) for name in (*files, *folders))
    return next(
        (kind.instead(f"{called}/{name}", called) for name, kind in kinds if kind is not None and not kind.is_served),
        "",
    )


def _without_version(folder: Path, name: str, config: str, folders: list[str], files: list[str]) -> str:
    if _ENSEMBLE.search(config):
        return f"make the empty folder {name}/1: an ensemble has a version, too"
    if whole := folder_kind(files):
        return f"move what is in {name} to {name}/1: it is {whole.what}, and each version has a folder"
    for found in folders:
        if found not in _RESERVED and holds_file(folder / found):
            number = int(digits[0]) if (digits := re.findall(r"\d{1,18}", found)) else 1
            return f"rename {name}/{found} to {name}/{number or 1}: the folder of a version is called by its number"
    for found in sorted((*files, *folders), key=_rank):
        if (kind := kind_at(folder / found)) is not None:
            return loose_advice(f"{name}/{found}", f"{name}/1", kind)
    if models := [one for one in folders if _holds_version(folder / one)]:
        return f"serve {name} itself: it is a repository, of {_few(models)}"
    return f"put the model's file at {name}/1/model.onnx (or model.py), or remove the folder: it has no version"


def loose_advice(path: str, version: str, kind: FileKind) -> str:
    """What to do with a file that lies in no folder of a version.

    Args:
        path: The file.
        version: The folder of the version that it belongs into.
        kind: What it is.
    """
    if not kind.is_served:
        return kind.instead(path, version)
    moved = f"move {path} to {version}/{kind.filename}{kind.and_then()}"
    return f"{moved}: each model has a folder, and each version has one, called by its number"


def _rank(name: str) -> tuple[bool, bool]:
    """Puts files that are served as they are first, and Python's last: helpers lie beside other models."""
    kind = kind_of_name(name)
    return kind is None or not kind.is_served, kind is not None and kind.backend == "python"


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


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
