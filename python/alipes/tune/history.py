"""The file with all trials, from which an interrupted search goes on: one line of JSON for each."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from alipes.errors import ConfigError
from alipes.tune.machine import Machine
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point

__all__ = ["History"]

_FORMAT: Final = 1


class History:
    """Trials of one workload on one machine; a file may hold those of others too, which stay. A context manager."""

    def __init__(self, path: Path | None, machine: Machine, workload: str) -> None:
        """Reads what there is.

        Args:
            path: The file, made where there is none; `None` remembers for as long as this object lives.
            machine: Where trials run.
            workload: A text that changes with models, requests and the way of measuring.

        Raises:
            ConfigError: If the file cannot be written, is none of these, or another search writes it.
        """
        self._machine = machine
        self._workload = workload
        self._outcomes: dict[str, list[Outcome]] = {}
        self._file: IO[bytes] | None = None if path is None else _opened(path)
        if self._file is not None and path is not None:
            try:
                self._read(self._file, path)
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()

    def find(self, point: Point) -> Outcome | None:
        """What is known of a point, all its trials as one."""
        known = self._outcomes.get(point.key)
        return Outcome.merged(known) if known else None

    def outcomes(self) -> Sequence[Outcome]:
        """All that is known, one for each point."""
        return [Outcome.merged(known) for known in self._outcomes.values()]

    def add(self, outcome: Outcome) -> None:
        """Writes a trial; it is on the disk when this returns."""
        self._outcomes.setdefault(outcome.point.key, []).append(outcome)
        if self._file is None:
            return
        document = {
            "format": _FORMAT, "machine": self._machine.key, "workload": self._workload, **outcome.to_document()
        }  # fmt: skip
        self._file.write(json.dumps(document, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, file: IO[bytes], path: Path) -> None:
        file.seek(0)
        whole = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):  # the last one, which an interrupted search did not finish
                break
            whole += len(line)
            document = _document(line, path, number)
            if (document["machine"], document["workload"]) == (self._machine.key, self._workload):
                outcome = _outcome(document, path, number)
                self._outcomes.setdefault(outcome.point.key, []).append(outcome)
        file.truncate(whole)


def _opened(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise ConfigError(f"the history {path} cannot be written: {error.strerror}", path=path) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise ConfigError(
            f"the history {path} is written by another search", path=path, hint="wait for it, or name another output"
        ) from error
    return file


def _document(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        document = json.loads(line)
        if isinstance(document, dict) and document["format"] == _FORMAT and {"machine", "workload"} <= document.keys():
            return document
    except (ValueError, KeyError):
        pass
    raise ConfigError(f"line {number} is no trial in format {_FORMAT}", path=path, line=number)


def _outcome(document: dict[str, Any], path: Path, number: int) -> Outcome:
    try:
        return Outcome.from_document(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"line {number} is no trial: {error}", path=path, line=number) from error
