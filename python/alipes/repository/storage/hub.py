"""A store that is a model of the Hugging Face Hub: one commit of it, by the Hub's own client.

The client resumes, checks and locks for itself; its cache lies beside ours. `HF_TOKEN` and `HF_ENDPOINT` are its own.
"""

from __future__ import annotations

import re
import threading
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from alipes.errors import ModelLoadError, RepositoryError
from alipes.repository.private_folder import private_folder
from alipes.repository.storage.limits import SILENCE_S
from alipes.repository.storage.patterns import EVERYTHING, Patterns
from alipes.repository.storage.source import Cancelled

__all__ = ["HubSource"]

_ADDRESS: Final = re.compile(
    r"hf://(?P<name>[\w.-]{1,96}/[\w.-]{1,96})(:(?P<revision>[\w./-]{1,200}))?(?P<more>/.*)?", re.ASCII
)
_FOLDER: Final = "hub"
_WAIT_S: Final = 0.2
"""Seconds between two looks whether the server stops: the client itself cannot be told."""


class HubSource:
    """One model of the Hub."""

    def __init__(self, address: str, patterns: Patterns = EVERYTHING) -> None:
        """Asks nothing yet.

        Args:
            address: `hf://OWNER/MODEL[:REVISION]`.
            patterns: Which files are fetched. Others may be there, where another server has fetched them.

        Raises:
            RepositoryError: If it is none, or the client is missing.
        """
        match = _ADDRESS.fullmatch(address)
        if match is None or match["more"]:
            raise RepositoryError(f"{address}: expected hf://OWNER/MODEL, or hf://OWNER/MODEL:REVISION")
        self._address = address
        self._name, self._revision, self._patterns = match["name"], match["revision"], patterns
        self._path: Path | None = None
        try:
            self._hub: Any = import_module("huggingface_hub")
        except ImportError as error:
            raise RepositoryError(
                f"{address}: models of the Hub need the package huggingface_hub: pip install 'alipes[hf]'"
            ) from error

    def fetch(self, cancelled: threading.Event) -> Path:
        """The folder of the commit."""
        if self._path is None:
            self._path = self._fetched(cancelled)
        return self._path

    def close(self) -> None:
        """What was fetched stays: other programs share the client's cache."""

    def _fetched(self, cancelled: threading.Event) -> Path:
        found: list[Path] = []
        errors: list[Exception] = []

        def fetch() -> None:
            try:
                folder = private_folder(_FOLDER)
                path = self._hub.snapshot_download(
                    self._name,
                    revision=self._revision,
                    cache_dir=str(folder),
                    etag_timeout=SILENCE_S,
                    allow_patterns=[*self._patterns.allowed] or None,
                    ignore_patterns=[*self._patterns.ignored] or None,
                )
                found.append(Path(path))
            except (Exception, ModelLoadError) as error:  # the client has errors of several libraries
                errors.append(error)

        thread = threading.Thread(target=fetch, name="alipes-hub", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_WAIT_S)
            if cancelled.is_set():
                raise Cancelled
        if errors:
            words = " ".join(str(errors[0]).split())
            raise RepositoryError(f"cannot fetch {self._address}: {type(errors[0]).__name__}: {words}") from errors[0]
        return found[0]
