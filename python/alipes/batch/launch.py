"""The folder by which a run and the servers that its engine starts know of each other."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from alipes.batch.aside import write_problem
from alipes.batch.folder import RunFolder
from alipes.errors import BatchError, ConfigError

__all__ = ["SERVERS", "SILENT_S", "LaunchFolder", "ServerReport", "remove_unused"]

SERVERS: Final = "servers"
"""The folder of a run that has one such folder for each start."""
SILENT_S: Final = 120.0
"""How long nothing may be heard of a run before its servers end; file systems of clusters show changes late."""
_RECIPE: Final = "recipe.json"
_END: Final = "end"
_SIGN: Final = "sign-of-life"


class _Recipe(Struct, frozen=True):
    """What the servers are."""

    repository: str
    options: dict[str, Any]


class ServerReport(Struct, frozen=True):
    """What a server says of itself.

    Attributes:
        number: Its number.
        address: Where it answers, with the protocol; empty where it does not yet.
        host: Its machine.
        pid: The process that watches over it.
        reason: Why it cannot go on; empty while it does.
    """

    number: int
    address: str
    host: str
    pid: int
    reason: str = ""


class LaunchFolder:
    """The servers of one start of a run. Reached from wherever they run, as the folder of the run is."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Takes a folder that is there."""
        self.path = Path(path)
        self._run = RunFolder(self.path.parent.parent)

    @classmethod
    def make(cls, run: RunFolder, repository: str, options: dict[str, Any]) -> LaunchFolder:
        """Makes one.

        Args:
            run: The folder of the run.
            repository: The models: a folder, or the address of a bucket.
            options: Further arguments of `alipes.Server`.

        Raises:
            ConfigError: If an option can only be used in this process.
            BatchError: If the folder cannot be written.
        """
        place = repository if "://" in repository else str(Path(repository).absolute())
        name = f"{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
        folder = cls(run.path.absolute() / SERVERS / name)
        try:
            content = msgspec.json.encode(_Recipe(place, options))
        except TypeError as error:
            raise ConfigError(
                f"servers elsewhere take texts and numbers as options: {error}", key="server_options"
            ) from error
        try:
            with suppress(FileNotFoundError):  # another start may just have removed the folder around it
                folder.path.mkdir(parents=True)
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BatchError(f"{folder.path} cannot be made: {error.strerror}") from error
        run.write_json(folder.path / _RECIPE, msgspec.Raw(content), mode=0o600)  # keys may be among the options
        folder.sign()
        return folder

    def recipe(self) -> tuple[str, dict[str, Any]]:
        """The repository, and further arguments of `alipes.Server`.

        Raises:
            ConfigError: If there is none.
        """
        try:
            recipe = msgspec.json.decode((self.path / _RECIPE).read_bytes(), type=_Recipe)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(f"{self.path} names no servers: {error}", path=self.path) from error
        return recipe.repository, recipe.options

    def report(self, report: ServerReport) -> None:
        """Writes what a server says of itself."""
        self._run.write_json(self._report(report.number), report)

    def reports(self) -> Iterator[ServerReport]:
        """What servers say of themselves."""
        for file in sorted(self.path.glob("[0-9]*.json")):
            with suppress(OSError, msgspec.DecodeError):
                yield msgspec.json.decode(file.read_bytes(), type=ServerReport)

    def sign(self) -> None:
        """Says that the run goes on."""
        with suppress(BatchError):  # a full disk: clients say more of it
            self._run.write_json(self.path / _SIGN, time.time())

    def end(self) -> None:
        """Says that the servers are no longer used."""
        with suppress(OSError):
            (self.path / _END).touch()

    def has_ended(self) -> bool:
        """Whether the servers are no longer used, or their folder is gone."""
        return (self.path / _END).exists() or not self.path.exists()

    def signs(self) -> tuple[int, ...]:
        """Changes as long as the run goes on, or one of its clients, which outlive a run that is killed."""
        return (_changed_ns(self.path / _SIGN), max(map(_changed_ns, self._run.worker_files()), default=0))

    def new_log(self, number: int) -> Path:
        """A new file for what a server writes; earlier ones are those of servers that have ended.

        Raises:
            BatchError: If it cannot be made.
        """
        path = self.path / f"{number:04}-{len(self._logs(number)) + 1:02}.log"
        try:
            path.touch()
        except OSError as error:
            raise write_problem(error, self.path) from error
        return path

    def output(self, number: int | str) -> Path:
        """Where an engine may write what the process says that watches over a server."""
        return self.path / f"{number}.out"

    def is_unused(self, now_ns: int) -> bool:
        """Whether its start has ended, or was killed so long ago that its servers have ended.

        Args:
            now_ns: The time on the clock of the file system.
        """
        silent_ns = now_ns - _changed_ns(self.path / _SIGN)
        return (self.path / _RECIPE).exists() and (self.has_ended() or silent_ns > SILENT_S * 1e9)

    def clear(self) -> list[Path]:
        """Removes everything but what servers have written that ended before their run; returns these files."""
        lost = self._of_lost_servers()
        for entry in _entries(self.path):
            # Without the sign, a process that is still ending would wait for the run to fall silent.
            if entry not in lost and entry.name != _END:
                _remove(entry)
        if not lost:
            _remove(self.path / _END)
            with suppress(OSError):
                self.path.rmdir()
        return lost

    def _report(self, number: int) -> Path:
        return self.path / f"{number:04}.json"

    def _logs(self, number: int) -> list[Path]:
        return sorted(self.path.glob(f"{number:04}-*.log"))

    def _of_lost_servers(self) -> list[Path]:
        failed = {report.number for report in self.reports() if report.reason}
        numbers = failed | {int(path.name.partition("-")[0]) for path in self.path.glob("[0-9]*-*.log")}
        found = []
        for number in sorted(numbers):
            # The last one went with the run, unless it is the one that failed.
            logs = self._logs(number) if number in failed else self._logs(number)[:-1]
            found += [*logs, self.output(number)] if logs or number in failed else []
        return [path for path in found if _size(path)]


def remove_unused(run: RunFolder) -> list[Path]:
    """Removes what a run that is complete has of its servers.

    Returns:
        What servers have written that ended before their run: these files stay.
    """
    now_ns = _changed_ns(run.success)
    folders = [LaunchFolder(path) for path in _entries(run.path / SERVERS)]
    logs = [log for folder in folders if folder.is_unused(now_ns) for log in folder.clear()]
    with suppress(OSError):
        (run.path / SERVERS).rmdir()
    return logs


def _entries(path: Path) -> list[Path]:
    """What is in a folder, which another start of the run may remove at the same time."""
    with suppress(OSError):
        return sorted(path.iterdir())
    return []


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _changed_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
