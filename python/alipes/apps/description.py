"""Asks an app what it has, in a process that is thrown away: an app's code never runs in the server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from alipes.apps.target import Target
from alipes.errors import ConfigError

__all__ = ["Description", "Inquiry"]

TIMEOUT_S: Final = 600.0
"""Longest import of an app, in seconds: frameworks take a minute on a busy machine."""

MAX_BYTES: Final = 1 << 24
"""Longest description: the app's code can write it."""


_SERVER_PID: Final = "ALIPES_SERVER_PID"
"""The variable by which the process knows its server, to end with it."""


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
    """The process that describes an app. Started at once, so that others can be made ready meanwhile."""

    def __init__(self, target: Target) -> None:
        """Starts the process.

        Raises:
            ConfigError: If it cannot be.
        """
        self.target = target
        self.files: tuple[str, ...] = (target.file,) if target.file else ()
        self._answer = os.memfd_create("description")
        document = json.dumps(target.document())
        command = [sys.executable, "-P", "-m", "alipes.worker.apps.describe", document, f"/proc/self/fd/{self._answer}"]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, _SERVER_PID: str(os.getpid())},
                pass_fds=(self._answer,),
                process_group=0,
            )
        except OSError as error:
            os.close(self._answer)
            raise ConfigError(f"cannot run {sys.executable}: {error.strerror}") from error

    def __enter__(self) -> Self:
        """The inquiry itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        os.close(self._answer)

    def result(self) -> Description:
        """What the app has; waits for it.

        Raises:
            ConfigError: If the app cannot be imported or served; the text says why, and what to do.
        """
        text = self.target.text
        try:
            status = self._process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{text}: the import did not end within {TIMEOUT_S:g} s") from None
        answer = os.pread(self._answer, MAX_BYTES + 1, 0)
        try:
            found: dict[str, Any] = json.loads(answer) if len(answer) <= MAX_BYTES else {}
        except ValueError:
            found = {}
        self.files = tuple(found.get("files", self.files))
        if error := found.get("error"):
            raise ConfigError(f"{text} cannot be served: {error}", key="model-repository")
        if "models" not in found:
            how = f"was killed by signal {-status}" if status < 0 else f"ended with exit code {status}"
            raise ConfigError(f"{text} cannot be served: its import {how}", key="model-repository")
        return Description(self.target, tuple(found["models"]), self.files)
