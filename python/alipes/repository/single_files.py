"""Files of models that are named by themselves, as in `alipes serve iris.joblib`: each is served under its own name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from alipes.config import bare_batches
from alipes.config.file_kinds import FileKind, folder_kind, kind_at
from alipes.config.options import ModelOptions, ServerOptions
from alipes.config.paths import kind_of
from alipes.errors import ConfigError
from alipes.repository.bare_models import name_of

__all__ = ["is_single_file", "with_single_files"]

_RUN_CODE: Final = frozenset({"model.joblib", "model.pkl", "model.pt"})
"""Kinds whose files may run code while they are read; who names one by itself has chosen it, as who runs a script."""


def is_single_file(text: str) -> bool:
    """Whether a word names the file of a model that is served, or a folder that is one, such as a SavedModel.

    A file at its place in a repository is none: the whole repository is served.
    """
    return _kind(text) is not None


def with_single_files(options: ServerOptions) -> ServerOptions:
    """The options of a server, with files of models taken from among its repositories.

    Raises:
        ConfigError: If two files would be served under one name.
    """
    repository = options.repository
    kinds = {path: kind for path in repository.paths if (kind := _kind(path)) is not None}
    if not kinds:
        return options
    if not repository.namespacing:
        _check_names(kinds)
    trusted = {path: name_of(Path(path)) for path, kind in kinds.items() if kind.filename in _RUN_CODE}
    notices = [
        f"model '{name}': its file may run code while it is read, which is allowed since {path} was named by itself"
        for path, name in trusted.items()
    ]
    paths = tuple(path for path in repository.paths if path not in kinds)
    return replace(
        options,
        repository=replace(repository, paths=paths, files=tuple(kinds)),
        model=_with_large_batches(
            replace(options.model, allow_pickles=(*options.model.allow_pickles, *trusted.values()))
        ),
        notices=(*options.notices, *notices),
    )


def _check_names(paths: Iterable[str]) -> None:
    found: dict[str, str] = {}
    for path in paths:
        other = found.setdefault(name_of(Path(path)), path)
        if other != path:
            raise ConfigError(
                f"{other} and {path} would both be served as '{name_of(Path(path))}': rename one of them, or serve one "
                "alone"
            )


def _with_large_batches(model: ModelOptions) -> ModelOptions:
    """As for the bare models of a store, unless the operator has named the largest batch."""
    if model.names_batch:
        return model
    return replace(model, default_max_batch_size=bare_batches.ROWS, default_max_batch_bytes=bare_batches.BYTES)


def _kind(text: str) -> FileKind | None:
    """What a model's file is that a word names; None for any other word."""
    path = Path(text)
    if "://" in text or path.suffix == ".py" or (path.parent.name.isdigit() and path.stem == "model"):
        return None
    try:
        if kind_of(path) == "folder":
            return folder_kind(entry.name for entry in path.iterdir())
        kind = kind_at(path) if kind_of(path) == "file" else None
    except OSError:
        return None
    return kind if kind is not None and kind.is_served else None
