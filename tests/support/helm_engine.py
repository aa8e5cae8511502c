"""Helm's own engine, in a process of its own.

It is a library in Go. In a process with frameworks it would share threads and signals with theirs, and has ended one.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class Refused(Exception):
    """Helm refuses a chart with these values."""


def _render(folder: Path, values: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, str] | str:
    """What the templates become by their names, or the text of the refusal."""
    try:
        return dict(import_module("helm_python.chart").Chart.load(folder).render(dict(values), **options))
    except import_module("helm_python.errors").HelmError as error:
        return str(error)


def _lint(folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    return dict(import_module("helm_python.chart").lint(folder, **options))


class HelmEngine:
    """The engine; a context manager, with which its process ends."""

    def __enter__(self) -> Self:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def render(self, folder: Path, values: Mapping[str, Any], **options: Any) -> dict[str, str]:
        """What the templates of a chart become, by their names.

        Raises:
            Refused: If Helm refuses the values.
        """
        found = self._pool.submit(_render, folder, values, options).result()
        if isinstance(found, str):
            raise Refused(found)
        return found

    def lint(self, folder: Path, **options: Any) -> dict[str, Any]:
        """What Helm has to say against a chart."""
        return self._pool.submit(_lint, folder, options).result()
