"""What a repository asks of the place where its files lie.

A store knows files and folders, not models. What is published appears as a whole or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, TypeAlias

from alipes.config.pbtxt import parse_pbtxt
from alipes.config.schema import ModelConfig
from alipes.errors import ExportError, RepositoryError, RepositoryUseError

__all__ = ["Names", "NoFilesFoundError", "NotWritten", "PathExists", "Store"]

Names: TypeAlias = list[str]
"""The names in a folder; a class that has a method `list` cannot say `list[str]`."""


class NoFilesFoundError(RepositoryError, FileNotFoundError):
    """There is nothing at the place that was named."""


class PathExists(RepositoryUseError, FileExistsError):
    """There is something already where something was to be published."""


class NotWritten(ExportError, OSError):
    """The place where a version was to be written is full, gone, or cannot be reached."""


class Store(ABC):
    """Files below one root. Paths are relative to it and use `/`."""

    whole_models: ClassVar[bool] = False
    """Whether what is published may be a model's folder, with its configuration; else versions come first."""

    @abstractmethod
    def __str__(self) -> str:
        """The root, as a repository is opened with and a server is started with."""

    @abstractmethod
    def list(self, path: str | None = None) -> Names:
        """The names in a folder, sorted, without hidden ones.

        Raises:
            NoFilesFoundError: If there is no such folder.
        """

    @abstractmethod
    def isdir(self, path: str) -> bool:
        """Whether there is a folder."""

    @abstractmethod
    def glob(self, path: str) -> Names:
        """The paths that fit a pattern, sorted."""

    @abstractmethod
    def read(self, path: str, mode: str = "r") -> str | bytes:
        """What a file holds: text, or bytes where the mode is `rb`.

        Raises:
            NoFilesFoundError: If there is no such file.
        """

    @abstractmethod
    def write(self, obj: str | bytes, path: str) -> None:
        """Replace a file. Readers see what it held before or what it holds now."""

    @abstractmethod
    def swap(self, content: str, path: str, expected: str | None) -> None:
        """Replace a file that still holds what is expected; None where there is to be none.

        Raises:
            PathExists: If it holds something else by now.
        """

    @abstractmethod
    def soft_makedirs(self, path: str) -> bool:
        """Make a folder; returns whether it was made. Of several concurrent callers, one gets true."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, a folder with all that is in it, or whatever fits a pattern.

        Raises:
            NoFilesFoundError: If there is nothing.
        """

    def remove_empty(self, path: str) -> None:  # noqa: B027 - most stores keep no empty folders
        """Remove a folder that holds nothing; leave anything else."""

    @abstractmethod
    def delete(self) -> None:
        """Remove everything below the root, and the root where that is the store's to remove."""

    @abstractmethod
    def lock(self) -> AbstractContextManager[None]:
        """A lock around compare and publish, if the store offers locks. Not re-entrant."""

    @abstractmethod
    def stage(self) -> AbstractContextManager[Path]:
        """A local folder to prepare files in; gone afterwards, and swept later if this process is killed."""

    @abstractmethod
    def publish(self, prepared: Path, path: str) -> None:
        """Make a prepared folder appear at a path where there is nothing, or an empty folder.

        Raises:
            PathExists: If there is something.
        """

    @abstractmethod
    def replace(self, prepared: Path, path: str) -> None:
        """Put a prepared folder in the place of another."""

    def join(self, *parts: str) -> str:
        """A path made of parts."""
        return "/".join(part.strip("/") for part in parts if part.strip("/"))

    def read_config(self, path: str) -> ModelConfig:
        """What a configuration file says, as a message.

        Raises:
            NoFilesFoundError: If there is no such file.
            ConfigError: If it is no configuration.
        """
        return parse_pbtxt(str(self.read(path)), Path(path))

    def write_config(self, config: object, path: str) -> None:
        """Write a configuration, or anything else whose text is what shall be written."""
        self.write(str(config), path)
