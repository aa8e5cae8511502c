"""What the files of a store are: one model in Triton's layout, one bare model, or folders that hold some.

A *bare model* is the model's files without the folders of its name and version, as `modelFormat: onnx` of KServe and
most people publish it. The rules are here and nowhere else:

1. One file is a bare model.
2. A folder that is a SavedModel or was saved by MLflow is a bare model.
3. A folder with a `config.pbtxt`, or with folders of versions that hold a model, is a model in Triton's layout, without
   the folder of its name. So are the numbered folders of TensorFlow Serving, `0001` among them.
4. A folder in whose folders models lie in Triton's layout is a repository.
5. A folder with the file of one model is a bare model; with files of several it is refused.
6. A folder in whose folders models lie is a parent of them: each is called by its folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from alipes.config.file_kinds import FileKind, folder_kind, kind_at, kind_of_name
from alipes.config.model_files import SERVED_FILES
from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.layout import MAX_VERSION_DIGITS

__all__ = [
    "ACCEPTED",
    "CONFIG",
    "StoredModel",
    "is_marked",
    "is_stray",
    "model_at",
    "models_below",
    "name_of",
    "visible",
    "what_is_in",
]

CONFIG: Final = "config.pbtxt"

ACCEPTED: Final = (
    "expected a model's file (ONNX, scikit-learn, XGBoost, LightGBM, CatBoost, PyTorch, Keras, OpenVINO), "
    "a SavedModel, a folder of MLflow, a model in Triton's layout, or folders with one of these each"
)
"""What the end of an error says where nothing is found."""

_STRAY: Final = re.compile(
    r"\..*|success\..*|lost\+found|__pycache__|__macosx|(readme|license|licence|notice|changelog)(\..*)?|.*\.(md|rst)",
    re.IGNORECASE,
)
"""What lies beside models without being one: markers of KServe's agent, links of config maps, what people add."""

_MARKER: Final = re.compile(r"SUCCESS\.[0-9a-f]{64}")
"""What KServe's agent writes behind the last file of a model. Source: `Downloader` of KServe."""

_MOST_NAMES: Final = 10_000
"""Entries of a folder that are looked at: a model has few, and a data set that was given by mistake has millions."""

_SHOWN: Final = 5
"""Names that an error lists."""

_CODE: Final = "model.py"
_PLAIN_STEM: Final = "model"
_WEIGHTS: Final = ".safetensors"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """One model of a store.

    Attributes:
        path: Its folder, or its one file.
        versions: The files of each version, a folder or one file; empty where the folder is as Triton has it, so that
            only its name may have to be another.
        kind: What the model's file is; None where the folder itself says.
        file: The name of the model's file in the folder of a version; empty where the folder itself is the model.
    """

    path: Path
    versions: Mapping[int, Path] = field(default_factory=dict)
    kind: FileKind | None = None
    file: str = ""

    @property
    def is_arranged(self) -> bool:
        """Whether it is in Triton's layout already."""
        return not self.versions

    @property
    def is_configured(self) -> bool:
        """Whether a configuration lies beside its files."""
        return kind_of(self.path) == "folder" and kind_of(self.path / CONFIG) != "nothing"


def name_of(path: Path) -> str:
    """What a bare model is called: after its file or folder; after the folder of a file that is called `model`."""
    if kind_of(path) == "file":
        return path.stem if path.stem != _PLAIN_STEM else path.absolute().parent.name
    return path.absolute().name or _PLAIN_STEM


def is_stray(name: str) -> bool:
    """Whether a file or folder of this name is none of a model."""
    return _STRAY.fullmatch(name) is not None


def is_marked(folder: Path) -> bool:
    """Whether KServe's agent has put a whole model into a folder."""
    try:
        with os.scandir(folder) as entries:
            return any(_MARKER.fullmatch(entry.name) for entry in islice(entries, _MOST_NAMES))
    except OSError:
        return False


def visible(folder: Path) -> list[str]:
    """The names in a folder, sorted, without strays; none where it cannot be read.

    Raises:
        RepositoryError: If it holds too many to be a model or a store.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in islice(entries, _MOST_NAMES + 1)]
    except OSError:
        return []
    if len(names) > _MOST_NAMES:
        raise RepositoryError(f"'{folder}' holds more than {_MOST_NAMES} files: it is no model and no store")
    return sorted(name for name in names if not is_stray(name))


def model_at(path: Path) -> StoredModel | None:
    """The model that a folder or file is by itself; None where it is none, and may be a parent of some.

    Raises:
        RepositoryError: If it could be several, or is a file that is not served.
    """
    if kind_of(path) == "file":
        return _of_file(path)
    names = visible(path)
    whole = folder_kind(names)
    if whole is not None:
        return StoredModel(path, {1: path}, whole)
    numbered = _numbered(path, names)
    if CONFIG in names:
        return _configured(path, names, numbered)
    if numbered:
        return _versioned(path, numbered)
    found = _candidate(path, names)
    if found is None or any(_is_tritons(path / name) for name in names):
        return None
    name, kind = found
    return StoredModel(path, {1: path}, kind, name)


def models_below(path: Path) -> tuple[dict[str, StoredModel], dict[str, str]]:
    """The models that the folders of a folder are, by their names, and why each other folder is none."""
    models: dict[str, StoredModel] = {}
    others: dict[str, str] = {}
    for name in visible(path):
        if kind_of(path / name) != "folder":
            continue
        try:
            found = model_at(path / name)
        except RepositoryError as error:
            others[name] = str(error)
            continue
        if found is not None:
            models[name] = found
        else:
            others[name] = what_is_in(path / name)
    return models, others


def what_is_in(path: Path) -> str:
    """What was found where no model was."""
    names = visible(path)
    if not names:
        return f"'{path}' is empty"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"'{path}' holds {', '.join(names[:_SHOWN])}{more}"


def _of_file(path: Path) -> StoredModel:
    kind = _kind(path)
    if kind is None or not kind.is_served:
        raise RepositoryError(_not_served(path, kind))
    return StoredModel(path, {1: path}, kind, path.name)


def _configured(path: Path, names: list[str], numbered: dict[int, Path]) -> StoredModel:
    """A folder with a configuration: versions beside it, or the model's file itself."""
    if numbered and not any(name.startswith("0") and name.isdigit() for name in names):
        return StoredModel(path)
    if numbered:
        return _versioned(path, numbered)
    found = _candidate(path, [name for name in names if name != CONFIG])
    if found is None:  # the configuration says all, as that of an ensemble
        return StoredModel(path, {1: path})
    name, kind = found
    return StoredModel(path, {1: path}, kind, name)


def _versioned(path: Path, numbered: dict[int, Path]) -> StoredModel:
    """Folders of versions, whose files may have names of their own."""
    newest = numbered[max(numbered)]
    names = visible(newest)
    whole = folder_kind(names)
    found = None if whole is not None else _candidate(newest, names)
    usual = whole is not None or found is None or found[0] in SERVED_FILES
    if usual and all(str(number) == folder.name for number, folder in numbered.items()):
        return StoredModel(path)
    return StoredModel(path, numbered, whole or (found[1] if found else None), "" if usual or not found else found[0])


def _numbered(path: Path, names: list[str]) -> dict[int, Path]:
    """The folders of versions that hold a model; a number with zeros in front is TensorFlow Serving's."""
    found = {}
    for name in names:
        digits = name.isascii() and name.isdigit() and len(name) <= MAX_VERSION_DIGITS
        if digits and int(name) and kind_of(path / name) == "folder" and _holds_model(path / name):
            found[int(name)] = path / name
    return found


def _holds_model(folder: Path) -> bool:
    names = visible(folder)
    try:
        return folder_kind(names) is not None or _candidate(folder, names) is not None
    except RepositoryError:  # several: Triton's rules choose
        return True


def _is_tritons(folder: Path) -> bool:
    """Whether a folder is a model in Triton's layout."""
    if kind_of(folder) != "folder":
        return False
    names = visible(folder)
    return CONFIG in names or bool(_numbered(folder, names))


def _candidate(folder: Path, names: list[str]) -> tuple[str, FileKind] | None:
    """The one file, or folder, of a model among these names.

    Raises:
        RepositoryError: If there are several, or one that is not served.
    """
    kinds = {name: kind for name in names if (kind := _kind(folder / name)) is not None}
    models = {name: kind for name, kind in kinds.items() if kind.is_served and not name.endswith(".py")}
    usual = [name for name in models if name in SERVED_FILES]
    if len(models) > 1 and len(usual) == 1 and not _is_split(models):
        models = {usual[0]: models[usual[0]]}
    if len(models) == 1:
        return next(iter(models.items()))
    if models:
        shown = " and ".join(f"'{name}'" for name in islice(models, _SHOWN))
        raise RepositoryError(
            f"'{folder}' holds several models, {shown}: keep one, or give each a folder of its own in it"
        )
    if _CODE in kinds:
        return _CODE, kinds[_CODE]
    unserved = next(((name, kind) for name, kind in kinds.items() if not kind.is_served), None)
    if unserved is not None:
        raise RepositoryError(_not_served(folder / unserved[0], unserved[1]))
    return None


def _is_split(models: Mapping[str, FileKind]) -> bool:
    """Whether they are parts of one model's weights, which no backend puts together."""
    return all(name.endswith(_WEIGHTS) for name in models)


def _kind(path: Path) -> FileKind | None:
    """What a file or folder is; None where that cannot be told. A document is no model of OpenVINO for its name."""
    if kind_of(path) == "folder":  # one without such a name is a model of its own, called by its folder
        return kind_of_name(path.name) if path.suffix in (".savedmodel", ".mlflow") else None
    try:
        kind = kind_at(path) if kind_of(path) == "file" else None
        if kind is not None and kind.backend == "openvino" and path.suffix == ".xml":
            with path.open("rb") as file:
                return kind if b"<net" in file.read(_XML_HEAD_BYTES) else None
        return kind
    except OSError:
        return None


_XML_HEAD_BYTES: Final = 4096
"""Of a model of OpenVINO: its first element, behind a declaration and comments."""


def _not_served(path: Path, kind: FileKind | None) -> str:
    if kind is None:
        return f"'{path}' is no file of a model that is served; {ACCEPTED}"
    return kind.instead(str(path), str(path.parent))
