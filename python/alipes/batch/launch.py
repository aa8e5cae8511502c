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

from alipes.batch.folder import RunFolder
from alipes.errors import BatchError, ConfigError

__all__ = ["LaunchFolder", "ServerReport"]

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
        folder = cls(run.path.absolute() / "servers" / name)
        try:
            content = msgspec.json.encode(_Recipe(place, options))
        except TypeError as error:
            raise ConfigError(
                f"servers elsewhere take texts and numbers as options: {error}", key="server_options"
            ) from error
        try:
            folder.path.mkdir(parents=True)
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

    def _report(self, number: int) -> Path:
        return self.path / f"{number:04}.json"


def _changed_ns(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
