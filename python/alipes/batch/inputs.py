"""The inputs of a run as files: those that patterns match, or those into which arrays and functions are written."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from alipes.batch.formats.base import Block
from alipes.batch.formats.find import SUFFIXES
from alipes.batch.formats.numpy_files import Npz
from alipes.batch.rows import ModelRows, Rows
from alipes.errors import ConfigError

__all__ = ["Inputs", "find_files", "is_in_memory", "write_rows"]

Inputs: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Any"
"""Patterns and paths of files; an array, or arrays by input; or a function that yields either."""

File: TypeAlias = tuple[str, int, int]
"""Name, bytes, time of the last change in nanoseconds."""

_FUNCTION: Final = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")
_BLOCK_BYTES: Final = 8 << 20
"""What is written into one file of arrays: a unit of work."""


def is_in_memory(inputs: Any) -> bool:
    """Whether inputs are arrays, or come from a function: no files yet."""
    if isinstance(inputs, str):
        return _FUNCTION.fullmatch(inputs) is not None and not os.path.exists(inputs)  # noqa: PTH110
    return not isinstance(inputs, os.PathLike) and not (
        isinstance(inputs, Sequence) and inputs and all(isinstance(one, str | os.PathLike) for one in inputs)
    )


def find_files(inputs: Inputs) -> tuple[str, list[File]]:
    """The files that patterns match, in the order of the patterns and of their names, each once.

    Returns:
        The folder to which relative names refer, and the files.

    Raises:
        ConfigError: If a pattern matches nothing, or a file's name does not say its kind.
    """
    words: list[str | os.PathLike[str]] = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    found: dict[str, File] = {}
    for one in words:
        word = os.fspath(one)
        matches = list(_matches(word))
        if not matches:
            raise ConfigError(f"no file matches {word}", key="inputs")
        for name in matches:
            if name not in found:
                _check_kind(name)
                state = os.stat(name)  # noqa: PTH116 - a hundred thousand files are looked at
                found[name] = (name, state.st_size, state.st_mtime_ns)
    relative = any(not os.path.isabs(name) for name in found)  # noqa: PTH117
    return os.getcwd() if relative else "", list(found.values())  # noqa: PTH109


def _matches(word: str) -> Iterator[str]:
    if os.path.isdir(word):  # noqa: PTH112
        yield from sorted(entry.path for entry in os.scandir(word) if entry.is_file() and _is_known(entry.name))
    elif os.path.exists(word):  # noqa: PTH110 - a name may have brackets
        yield word
    else:
        yield from sorted(name for name in glob.iglob(word, recursive=True) if not os.path.isdir(name))  # noqa: PTH112, PTH207


def _is_known(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES  # noqa: PTH122


def _check_kind(name: str) -> None:
    if not _is_known(name):
        raise ConfigError(f"{name}: files whose names end in {', '.join(SUFFIXES)} are read", key="inputs")


def write_rows(inputs: Any, folder: Path, rows: ModelRows) -> list[Path]:
    """Writes arrays, or what a function yields, into files of some megabytes.

    A second start finds the files: a function is called once for a run.

    Args:
        inputs: An array, arrays by input, an iterable of either, or a function that returns one.
        folder: Where the files go; they are all there, or none is.
        rows: What the model takes.

    Raises:
        ConfigError: If what was passed, or what a function yields, does not fit the model.
    """
    aside = folder.with_name(f".{folder.name}-{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        for number, block in enumerate(_blocks(_yielded(inputs), rows)):
            Npz().write(aside / f"{number:06}.npz", block)
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    files = sorted(folder.iterdir())
    if not files:
        raise ConfigError("there are no rows: the inputs yield nothing", key="inputs")
    return files


def _yielded(inputs: Any) -> Iterable[Any]:
    if isinstance(inputs, str):
        inputs = _function(inputs)
    if callable(inputs):
        inputs = inputs()
    if isinstance(inputs, np.ndarray | Mapping):
        return [inputs]
    if isinstance(inputs, Iterable):
        return inputs
    raise ConfigError(
        f"expected patterns of files, an array, arrays by input, or a function that yields them, got {inputs!r}",
        key="inputs",
    )


def _function(word: str) -> Callable[[], Any]:
    found = _FUNCTION.fullmatch(word)
    assert found is not None
    sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        function: Callable[[], Any] = getattr(import_module(found["module"]), found["name"])
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{word} is no function: {error}", key="inputs") from error
    finally:
        sys.path.pop(0)
    return function


def _blocks(items: Iterable[Any], rows: ModelRows) -> Iterator[Rows]:
    """Rows, some megabytes at a time."""
    waiting: list[Rows] = []
    size = 0
    for number, item in enumerate(items):
        for block in _cut(_checked(number, item, rows)):
            new = sum(array.nbytes for array in block.values())
            if waiting and (size + new > _BLOCK_BYTES or not _joins(waiting[0], block)):
                yield _joined(waiting)
                waiting, size = [], 0
            waiting.append(block)
            size += new
    if waiting:
        yield _joined(waiting)


def _checked(number: int, item: Any, rows: ModelRows) -> Rows:
    try:
        values = item if isinstance(item, Mapping) else {rows.wanted.only: item}
        names = rows.wanted.among(list(values))
        return rows.rows(Block({name: np.asarray(values[name]) for name in names}))
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"item {number} of the inputs does not fit the model: {error}", key="inputs") from error


def _cut(rows: Rows) -> Iterator[Rows]:
    count = len(next(iter(rows.values())))
    size = sum(array.nbytes for array in rows.values())
    step = max(1, count * _BLOCK_BYTES // max(size, 1))
    for start in range(0, count, step):
        yield {name: array[start : start + step] for name, array in rows.items()}


def _joins(first: Rows, second: Rows) -> bool:
    return first.keys() == second.keys() and all(
        first[name].shape[1:] == second[name].shape[1:] and first[name].dtype == second[name].dtype for name in first
    )


def _joined(blocks: Sequence[Rows]) -> Rows:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
