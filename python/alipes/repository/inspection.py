"""What a repository holds, and what is wrong with which of its files and folders, by names and configurations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from alipes.config.file_kinds import folder_kind, kind_of_name
from alipes.config.model_files import PLATFORMS
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.platforms import backend_of
from alipes.config.schema import ModelConfig
from alipes.errors import AlipesError, ConfigError
from alipes.repository.layout import MAX_VERSION_DIGITS, RESERVED
from alipes.repository.model_config import CONFIG_FILE
from alipes.repository.platform import BACKENDS, SERVED
from alipes.repository.store.base import Store

__all__ = ["FoundModel", "Inspection", "inspect"]

_NOT_OFFERED: Final = frozenset(BACKENDS[one] for one in BACKENDS if one not in SERVED)
_WITHOUT_FILE: Final = frozenset({"ensemble", "snapshotter", "averager", "picture", "softmax", "top_k", "mean_pooling"})


@dataclass(slots=True)
class FoundModel:
    """The folder of one model.

    Attributes:
        name: The model.
        kind: Its backend, or `ensemble`; empty where that is not known.
        versions: Its versions, ascending.
    """

    name: str
    kind: str = ""
    versions: tuple[int, ...] = ()


@dataclass(slots=True)
class Inspection:
    """What was found.

    Attributes:
        models: The models, by name.
        remarks: What is wrong and what to do, by the path of the file or folder; the root is the empty path.
    """

    models: list[FoundModel] = field(default_factory=list)
    remarks: dict[str, str] = field(default_factory=dict)


def inspect(store: Store) -> Inspection:
    """Looks at every model of a repository; opens nothing but configurations.

    Raises:
        RepositoryError: If the repository cannot be read.
    """
    found = Inspection()
    names = store.list()
    if CONFIG_FILE in names or any(_is_version(name) and store.isdir(name) for name in names):
        found.remarks[""] = "this is the folder of one model: name the folder that it is in"
        return found
    for name in names:
        if store.isdir(name):
            found.models.append(_Folder(store, name, found.remarks).look())
        elif advice := _misplaced(name, PurePosixPath(name).stem):
            found.remarks[name] = advice
    if not found.models and not found.remarks:
        found.remarks[""] = "it holds no model: put one at NAME/1/model.onnx, or type `alipes repo add`"
    return found


class _Folder:
    """A model's folder while it is looked at."""

    def __init__(self, store: Store, name: str, remarks: dict[str, str]) -> None:
        self._store = store
        self._name = name
        self._remarks = remarks
        self._names = store.list(name)
        self._model = FoundModel(name)

    def look(self) -> FoundModel:
        config = self._read_config()
        self._model.kind = _kind(config)
        folders = [name for name in self._names if self._store.isdir(f"{self._name}/{name}")]
        self._model.versions = tuple(sorted(int(name) for name in folders if _is_version(name)))
        known = len(self._remarks)
        for name in self._names:
            advice = self._beside(name) if name in folders else _misplaced(name, self._name)
            if advice:
                self._remarks[f"{self._name}/{name}"] = advice
        for version in self._model.versions:
            self._look_at_version(f"{self._name}/{version}", config)
        if not self._model.versions and len(self._remarks) == known:
            self._remarks[self._name] = self._without_version()
        if self._model.kind in _NOT_OFFERED and len(self._remarks) == known:
            self._remarks[self._name] = f"export it to ONNX: models of {self._model.kind} are not served"
        return self._model

    def _read_config(self) -> ModelConfig:
        path = f"{self._name}/{CONFIG_FILE}"
        try:
            if CONFIG_FILE in self._names:
                return parse_pbtxt(str(self._store.read(path)), Path(path))
        except ConfigError as error:
            self._remarks[path] = " ".join(error.explain().split())
        except (AlipesError, OSError, UnicodeDecodeError) as error:
            self._remarks[path] = f"it cannot be read: {error}"
        return parse_pbtxt("", Path(path))

    def _without_version(self) -> str:
        if self._model.kind in _WITHOUT_FILE:
            return f"make the empty folder {self._name}/1: every model has a version"
        usual = next((row.filename for row in PLATFORMS if row.backend == self._model.kind), "")
        return f"put the model's file at {self._name}/1/{usual or 'model.onnx'}: it has no version"

    def _beside(self, name: str) -> str:
        """What to do with a folder that is none of a version."""
        if _is_version(name) or name in RESERVED:
            return ""
        if name.isdigit() and int(name) > 0:
            return f"rename it to {int(name)}: the number of a version has no zeros in front"
        path = f"{self._name}/{name}"
        names = self._store.list(path)
        if folder_kind(names) is None and not any(kind_of_name(one) for one in names):
            return ""  # whatever a model keeps beside its versions
        number = max(self._model.versions, default=0) + 1
        return f"rename it to {number}: the folder of a version is called by its number"

    def _look_at_version(self, path: str, config: ModelConfig) -> None:
        """Notes what is wrong with the files of a version."""
        names = self._store.list(path)
        expected = config.default_model_filename
        if self._model.kind in _WITHOUT_FILE or (expected and expected in names):
            return
        rows = [row for row in PLATFORMS if row.filename in names and not row.beside]
        present = [row.backend for row in rows if row.backend not in _NOT_OFFERED]
        if present and not expected:
            self._model.kind = self._model.kind or present[0]
            return
        if remark := self._in_version(path, names, expected):
            self._remarks.update(remark)

    def _in_version(self, path: str, names: Sequence[str], expected: str) -> dict[str, str]:
        kinds = [(name, kind) for name in names if (kind := kind_of_name(name)) is not None]
        for name, kind in sorted(kinds, key=lambda one: not one[1].is_served):
            usual = expected or kind.filename
            if not kind.is_served:
                return {f"{path}/{name}": kind.instead("it", path)}
            if usual == name:
                return {f"{path}/{name}": kind.further}
            renamed = f"rename it to {usual}, or name it in {CONFIG_FILE}: default_model_filename"
            return {f"{path}/{name}": f"{renamed}{kind.and_then()}"}
        usual = expected or next((row.filename for row in PLATFORMS if row.backend == self._model.kind), "")
        if self._model.kind and self._model.kind not in BACKENDS.values():
            return {}  # the backend of another package has files of its own
        return {path: f"put {usual or 'model.onnx or model.py'} into it: it has no model"}


def _kind(config: ModelConfig) -> str:
    if config.platform == "ensemble" or config.HasField("ensemble_scheduling"):
        return "ensemble"
    return str(config.backend or backend_of(config.platform) or config.platform)


def _misplaced(file: str, model: str) -> str:
    """What to do with the file of a model that lies beside versions, or beside models."""
    kind = kind_of_name(file)
    if kind is None or (kind.filename == "model.py" and file != "model.py"):
        return ""
    if not kind.is_served:
        return kind.instead("it", f"{model}/1")
    moved = f"move it to {model}/1/{kind.filename}{kind.and_then()}"
    return f"{moved}: each version has a folder, called by its number"


def _is_version(name: str) -> bool:
    is_number = name.isascii() and name.isdigit() and len(name) <= MAX_VERSION_DIGITS
    return is_number and (name == "0" or not name.startswith("0"))
