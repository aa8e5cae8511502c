"""Asks an app what it has."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from alipes.apps.process import MAX_BYTES, AppProcess
from alipes.apps.target import Target
from alipes.errors import ConfigError

__all__ = ["Description", "Inquiry"]

TIMEOUT_S: Final = 600.0
"""Longest import of an app, in seconds: frameworks take a minute on a busy machine."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an app has.

    Attributes:
        target: The app.
        models: Each with its name, its tensors and its options, as `alipes.worker.apps.describe` says them.
        files: The files of the app.
    """

    target: Target
    models: tuple[dict[str, Any], ...]
    files: tuple[str, ...]


class Inquiry:
    """A question to an app. Asked at once, so that others can be made ready meanwhile."""

    def __init__(self, target: Target, process: AppProcess) -> None:
        """Asks.

        Args:
            target: The app.
            process: The one that imports it.
        """
        self.target = target
        self.process = process
        self.files: tuple[str, ...] = (target.file,) if target.file else ()
        process.ask(json.dumps(target.document()))

    def result(self) -> Description:
        """What the app has; waits for it.

        Raises:
            ConfigError: If the app cannot be imported or served; the text says why, and what to do.
        """
        text = self.target.text
        try:
            answer = self.process.answer(TIMEOUT_S)
        except TimeoutError:
            raise ConfigError(f"{text}: the import did not end within {TIMEOUT_S:g} s") from None
        try:
            found: dict[str, Any] = json.loads(answer) if len(answer) <= MAX_BYTES else {}
        except ValueError:
            found = {}
        self.files = tuple(found.get("files", self.files))
        if error := found.get("error"):
            raise ConfigError(f"{text} cannot be served: {error}", key="model-repository")
        if "models" not in found:
            status = self.process.end()
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
            raise ConfigError(f"{text} cannot be served: its import {how}", key="model-repository")
        return Description(self.target, tuple(found["models"]), self.files)
