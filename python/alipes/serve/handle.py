"""The handle: a file by which a detached server is found again."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from alipes.errors import ServeError
from alipes.serve.endpoints import Endpoints, ServerEndpoint
from alipes.serve.recipe import Recipe

__all__ = ["Handle"]

FORMAT: Final = 1
"""Format of the file; one of another format is refused rather than guessed at."""

# Keys of the file, part of its format.
_ENDPOINTS_KEY: Final = "doors"
_REQUESTED_KEY: Final = "asked"


@dataclass(frozen=True, slots=True)
class Handle:
    """A server that outlives the script that started it.

    Attributes:
        recipe: How it was started.
        endpoints: Where it listens.
        host: The machine that it runs on.
        pid: Its process id there.
        started: When that process started, as the system counts; ids of processes are used again.
        log: The file with what it writes.
    """

    recipe: Recipe
    endpoints: Endpoints
    host: str
    pid: int
    started: int
    log: str

    @property
    def here(self) -> bool:
        """Whether it runs on this machine."""
        return self.host == socket.gethostname()

    def reachable(self) -> Endpoints:
        """Where its endpoints are for this machine."""
        if self.here:
            return self.endpoints
        everywhere = ("", "0.0.0.0", "::")
        return {
            name: replace(endpoint, host=self.host) if endpoint.host in everywhere else endpoint
            for name, endpoint in self.endpoints.items()
        }

    def save(self, path: Path) -> None:
        """Writes the file, all at once.

        Raises:
            ServeError: If it cannot be written.
        """
        document = {"format": FORMAT, **_document(self)}
        part = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            part.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                part.unlink()
            raise ServeError(f"the handle {path} cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, path: Path) -> Handle:
        """Reads the file.

        Raises:
            ServeError: If it is not there, or no handle.
        """
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ServeError(f"there is no handle {path}: no server was launched with it, or it was stopped") from error
        except (OSError, ValueError) as error:
            raise ServeError(f"{path} is no handle of a server: {error}") from error
        if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
            raise ServeError(f"{path} is no handle of a server in format {FORMAT}")
        try:
            return _handle(document)
        except (KeyError, TypeError) as error:
            raise ServeError(f"{path} is no handle of a server: {error}") from error


def _document(handle: Handle) -> dict[str, Any]:
    document = asdict(handle)
    rows: dict[str, dict[str, Any]] = document.pop("endpoints")
    document[_ENDPOINTS_KEY] = {name: {_REQUESTED_KEY: row.pop("requested"), **row} for name, row in rows.items()}
    return document


def _handle(document: dict[str, Any]) -> Handle:
    flags = tuple(document["recipe"].pop("flags"))
    rows = document.pop(_ENDPOINTS_KEY).items()
    endpoints: Endpoints = {name: ServerEndpoint(requested=row.pop(_REQUESTED_KEY), **row) for name, row in rows}
    return Handle(recipe=Recipe(flags=flags, **document.pop("recipe")), endpoints=endpoints, **document)
