"""Runs programs of a model's environment: to their end, or to that of the load."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from alipes.model_load import Load

__all__ = ["Finished", "nameless_file", "run_program", "started", "wait_unreaped"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that has ended.

    Attributes:
        exit_code: Its exit code; the negative number of a signal that ended it.
        output: What it wrote to its standard output.
        errors: What it wrote to its standard error.
    """

    exit_code: int
    output: bytes
    errors: bytes


def run_program(
    command: Sequence[str], load: Load, *, variables: Mapping[str, str] | None = None, timeout_s: float = 0.0
) -> Finished | None:
    """Runs a program that answers with what it writes.

    Args:
        command: The program and its arguments.
        load: The load that this is part of; cancelled, it kills the program with all that it started.
        variables: Environment variables of the program, above the server's own.
        timeout_s: Longest time that it may take, in seconds; 0 sets no limit.

    Returns:
        How it ended; `None` where its time was up.

    Raises:
        LoadCancelled: If the load is cancelled.
        OSError: If the program cannot be run.
    """
    with nameless_file("output") as output, nameless_file("errors") as errors:
        with started(command, variables or {}, load, stdout=output, stderr=errors) as process:
            in_time = wait_unreaped(process, timeout_s)
        load.check()
        return Finished(process.returncode, _content(output), _content(errors)) if in_time else None


@contextlib.contextmanager
def nameless_file(name: str) -> Iterator[int]:
    """A file in memory: it is gone with its last user, even if the server is killed."""
    descriptor = os.memfd_create(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def started(
    command: Sequence[str],
    variables: Mapping[str, str],
    load: Load,
    *,
    descriptors: Sequence[int] = (),
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process, killed at the end of the block, or of the load, with all that it started; reaped after the block.

    Args:
        command: The program and its arguments.
        variables: Environment variables of the program, above the server's own.
        load: The load that this is part of.
        descriptors: Further open files of the process.
        stdout: Where its output goes; to the server's own where left out.
        stderr: The same for its errors.

    Raises:
        LoadCancelled: If the load is cancelled already.
        OSError: If the program cannot be run.
    """
    load.check()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, **variables},
        pass_fds=tuple(descriptors),
        process_group=0,  # so that what the program starts can be found and ended; Ctrl-C is the server's
    )
    group = _Group(process.pid)
    try:
        with load.ending(group.kill):
            yield process
    finally:
        group.end()
        process.wait()


def wait_unreaped(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Waits for the end of a process; false where the time is up first.

    It is not reaped: until then its number is its own, and its group can be killed safely.

    Args:
        process: The process.
        timeout_s: Longest wait, in seconds; 0 sets no limit.
    """
    pidfd = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000 if timeout_s > 0 else None))
    finally:
        os.close(pidfd)


class _Group:
    """The processes that one has started, as long as their number is theirs."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._lock = threading.Lock()
        self._over = False

    def kill(self) -> None:
        with self._lock:
            if not self._over:
                self._send_kill()

    def end(self) -> None:
        """Kills them for the last time: their number may be another's from now on."""
        with self._lock:
            self._over = True
            self._send_kill()

    def _send_kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._number, signal.SIGKILL)


def _content(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as file:
        file.seek(0)
        return file.read()
