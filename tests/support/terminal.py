"""A Python script whose error output is a terminal, as a person runs it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from support.waiting import TIMEOUT_S

# Wide enough that nothing is cut off.
_ROWS, _COLUMNS = 40, 200

# What would have a script take its terminal for something else.
_DECIDED_HERE = {"ALIPES_PROGRESS", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}


class TerminalScript:
    """A running script: its error output is a terminal of its own, what it prints goes to a file."""

    def __init__(
        self, code: str, *arguments: str, environment: Mapping[str, str] | None = None, columns: int = _COLUMNS
    ) -> None:
        """Starts it."""
        self.shown = b""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the script
        settings = {name: text for name, text in os.environ.items() if name not in _DECIDED_HERE}
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=theirs,
                env=settings | {"TERM": "xterm-256color"} | dict(environment or {}),
            )
        finally:
            os.close(theirs)

    def __enter__(self) -> Self:
        """Nothing more."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends it where it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)
        self._printed.close()

    @property
    def text(self) -> str:
        """What the terminal was sent so far."""
        return self.shown.decode(errors="replace")

    def read_until(self, words: str) -> None:
        """Reads the terminal until it has shown these words."""
        deadline = time.monotonic() + TIMEOUT_S
        while words not in self.text:
            assert self._read(deadline), f"the script ended without {words!r}, it showed:\n{self.text}"

    def finish(self) -> str:
        """Reads the rest, and returns what the script has printed; it must have succeeded."""
        deadline = time.monotonic() + TIMEOUT_S
        while self._read(deadline):
            pass
        assert self.process.wait(TIMEOUT_S) == 0, self.text
        self._printed.seek(0)
        return self._printed.read().decode()

    def _read(self, deadline: float) -> bool:
        """Reads what is there; returns whether there may be more."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more came in time; until then:\n{self.text}"
        try:
            came = os.read(self._ours, 4096)
        except OSError:  # the other end is closed
            return False
        self.shown += came
        return bool(came)
