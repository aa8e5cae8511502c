"""Uploads of files, with their progress as fsspec reports it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from alipes.progress.work import Task

__all__ = ["upload"]


def upload(files: Any, file: Path, place: str, task: Task) -> None:
    """Copies a file into a file system of fsspec. Progress is counted only if it is shown."""
    if not task.shown:
        files.put_file(str(file), place)
        return
    callbacks: Any = import_module("fsspec.callbacks")

    class Progress(callbacks.Callback):  # type: ignore[misc]  # a class that is known once fsspec is
        """Hands on what is new since the last call: some stores say how much came up, some how far they are."""

        seen = 0

        def call(self, hook_name: str | None = None, **kwargs: Any) -> None:
            task.advance(self.value - self.seen)
            self.seen = self.value

    progress = Progress()
    files.put_file(str(file), place, callback=progress)
    # Not every store reports progress.
    task.advance(file.stat().st_size - progress.seen)
