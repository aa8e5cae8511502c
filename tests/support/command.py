"""The command `alipes` as a person at a shell sees it: its exit code, what it prints, and where."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from support.waiting import TIMEOUT_S

_SETTINGS = {"COLUMNS": "80", "NO_COLOR": "1"}

# What would have it print for something else than a pipe, or look for another server.
_DECIDED_HERE = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "ALIPES_LOCAL_PORTS")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """Its error in one line: where it is folded depends on the paths in it."""
        return " ".join(self.err.split())

    @property
    def rows(self) -> list[list[str]]:
        """What it printed, each line as its words."""
        return [line.split() for line in self.out.splitlines()]


def alipes(*arguments: str, text: str | bytes = "", folder: Path | None = None) -> Done:
    """Runs the command in this process, which is quick: into pipes of 80 columns, without colours.

    Args:
        arguments: The command line.
        text: Its standard input.
        folder: The current folder for it.
    """
    from alipes.cli import main

    out, err = io.StringIO(), io.StringIO()
    source = io.TextIOWrapper(io.BytesIO(text.encode() if isinstance(text, str) else text))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(folder or Path.cwd()),
        mock.patch.object(sys, "stdin", source),
        _as_at_a_shell(),
    ):
        code = main(arguments)
    return Done(code, out.getvalue(), err.getvalue())


def alipes_process(*arguments: str, folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Done:
    """Runs the command as a process of its own, with further variables."""
    done = subprocess.run(
        [sys.executable, "-m", "alipes", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=_environment() | dict(environment or {}),
        timeout=TIMEOUT_S,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def check_readable(done: Done) -> None:
    """An error is at most four lines of 80 columns, without colours and traceback.

    Raises:
        AssertionError: If it is not.
    """
    lines = done.err.splitlines()
    assert 0 < len(lines) <= 4, done.err
    # A path stays whole, however long it is.
    assert all(len(line) <= 80 or len(line.split()) == 1 for line in lines), done.err
    assert "\x1b" not in done.err
    assert "Traceback" not in done.err


@contextlib.contextmanager
def _as_at_a_shell() -> Iterator[None]:
    """Changes only those variables that differ: other threads of the test read the environment meanwhile."""
    before = dict(os.environ)
    try:
        _set_environment(_environment())
        yield
    finally:
        _set_environment(before)


def _set_environment(wanted: Mapping[str, str]) -> None:
    for name in os.environ.keys() - wanted.keys():
        del os.environ[name]
    os.environ.update(wanted.items() - os.environ.items())


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name not in _DECIDED_HERE} | _SETTINGS
