"""The folder of a stream: what came of each frame, and what a restart needs to go on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from alipes.batch.aside import write_aside, write_file, write_problem
from alipes.batch.formats.base import Array
from alipes.batch.formats.find import FORMS
from alipes.batch.formats.numpy_files import Npy
from alipes.batch.locks import PieceLocks
from alipes.errors import BatchError, ConfigError

__all__ = ["FrameFolder", "FrameReport", "StreamFacts"]

_FORMAT: Final = 1
_MOST_TAIL_BYTES: Final = 4 << 20
"""A restart reads so much of the end of the manifest: thousands of frames, where a state is some of them."""


class StreamFacts(Struct, frozen=True):
    """What stays the same as long as a stream goes on.

    Attributes:
        model: The model.
        version: Its version; empty is the server's choice.
        form: What the answers are written as.
        update_samples: Samples of an update.
        frame_samples: Samples of a frame.
        format: Version of this document.
    """

    model: str
    version: str
    form: str
    update_samples: int
    frame_samples: int
    format: int = _FORMAT


class FrameReport(Struct, frozen=True, omit_defaults=True):
    """A line of the manifest.

    Attributes:
        frame: The number of the frame.
        kind: `done`; `filled`, where zeros stand for it; `gap`, where nothing does; `late`; `back`, where the numbers
            of frames go back; `ignored`, where the name of a file has no number.
        file: The file that arrived.
        output: The file of answers, below the folder.
        next: The number of the frame behind it.
        new: Whether the state of the model begins here.
        reason: Why it is not done, or why the state begins anew.
        latency_s: From the arrival of the frame to the answers in their place.
    """

    frame: int
    kind: str
    file: str = ""
    output: str = ""
    next: int = -1
    new: bool = False
    reason: str = ""
    latency_s: float | None = None


class Replay(NamedTuple):
    """A frame that the state depends on.

    Attributes:
        number: Its number.
        filled: Whether zeros stand for it.
    """

    number: int
    filled: bool


class FrameFolder:
    """The files of a stream.

    A frame is done in this order: its samples for a restart, its answers beside their place, its line in the manifest,
    its answers in their place. So a line says that the answers are there, or beside their place.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Makes the folder, and locks it.

        Raises:
            ConfigError: If something else is there, or another start has it.
        """
        self.path = Path(path)
        self._frames, self._replay = self.path / "frames", self.path / ".replay"
        self._facts, self._manifest = self.path / "stream.json", self.path / "manifest.jsonl"
        self._copies: deque[int] = deque()
        try:
            if self.path.is_dir() and not self._facts.exists() and self._others():
                raise ConfigError(f"{self.path} has files and no stream: choose another folder", key="outputs")
            for folder in (self._frames, self._replay):
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be used: {error.strerror or error}", key="outputs") from error
        self._locks = PieceLocks(self.path / ".lock")
        if not self._locks.acquire(0):
            self._locks.close()
            raise ConfigError(f"another process writes the same stream into {self.path}: stop it first", key="outputs")

    def close(self) -> None:
        """Leaves it to others."""
        self._locks.close()

    def facts(self) -> StreamFacts | None:
        """What is known of the stream; `None` at its first start.

        Raises:
            ConfigError: If another version has written it.
        """
        try:
            content = self._facts.read_bytes()
        except FileNotFoundError:
            return None
        try:
            facts = msgspec.json.decode(content, type=StreamFacts)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self._facts} is damaged: choose another folder", key="outputs") from error
        if facts.format != _FORMAT:
            raise ConfigError(
                f"{self._facts} was written by another version of alipes: choose another folder", key="outputs"
            )
        return facts

    def write_facts(self, facts: StreamFacts) -> None:
        """Writes what is known of the stream."""
        write_aside(self._facts, lambda path: path.write_bytes(msgspec.json.encode(facts)), self.path)

    def reports(self) -> list[FrameReport]:
        """The end of the manifest, after what a kill has left half done was finished."""
        try:
            with self._manifest.open("rb+") as file:
                size = file.seek(0, os.SEEK_END)
                begin = max(0, size - _MOST_TAIL_BYTES)
                file.seek(begin)
                content = file.read()
                whole = content.rfind(b"\n") + 1
                file.truncate(begin + whole)
        except FileNotFoundError:
            return []
        lines = content[:whole].splitlines()
        found = [msgspec.json.decode(line, type=FrameReport) for line in (lines[1:] if begin else lines)]
        if found and found[-1].output:
            output = self.path / found[-1].output
            with suppress(FileNotFoundError):
                _beside(output).rename(output)
        return found

    def is_done(self, number: int, form: str) -> bool:
        """Whether a frame has answers."""
        return self._output(number, form).exists()

    def replay(self, frames: Iterator[Replay], zeros: Callable[[], Array]) -> list[Array] | None:
        """The samples of frames that the state depends on; `None` where one is not there any more."""
        found: list[Array] = []
        for frame in frames:
            try:
                found.append(zeros() if frame.filled else np.load(self._copy(frame.number), allow_pickle=False))
            except (OSError, ValueError, EOFError):
                return None
            if not frame.filled:
                self._copies.append(frame.number)
        return found

    def add_copy(self, number: int, samples: Array, most: int) -> None:
        """Saves the samples of a frame for a restart, and drops those that no state depends on."""
        write_aside(self._copy(number), lambda path: Npy().write(path, {"": samples}), self.path)
        self._copies.append(number)
        while len(self._copies) > most:
            self._copy(self._copies.popleft()).unlink(missing_ok=True)

    def write_answers(self, number: int, form: str, columns: Mapping[str, Array]) -> str:
        """Writes the answers beside their place; returns their name below the folder."""
        output = self._output(number, form)
        write_file(_beside(output), lambda path: FORMS[form].write(path, columns), self.path)
        return str(output.relative_to(self.path))

    def add(self, report: FrameReport) -> None:
        """Adds a line to the manifest, and puts the answers in their place.

        Raises:
            BatchError: If the disk is full.
        """
        line = msgspec.json.encode(report) + b"\n"
        descriptor = os.open(self._manifest, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            try:
                written = os.write(descriptor, line)
            except OSError as error:
                raise write_problem(error, self.path) from error
            if written != len(line):
                os.ftruncate(descriptor, size)
                raise BatchError(f"there is no room for results in {self.path}: make room, and start the same again")
        finally:
            os.close(descriptor)
        if report.output:
            output = self.path / report.output
            _beside(output).rename(output)

    def _others(self) -> bool:
        own = {self._frames.name, self._manifest.name}
        return any(entry.name[0] != "." and entry.name not in own for entry in self.path.iterdir())

    def _output(self, number: int, form: str) -> Path:
        return self._frames / f"{number:010}.{form}"

    def _copy(self, number: int) -> Path:
        return self._replay / f"{number:010}.npy"


def _beside(output: Path) -> Path:
    return output.with_name(f".{output.name}")
