"""Commands of an engine that is used by its own command line."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Final

from alipes.errors import BatchError

__all__ = ["answer_of"]

_COMMAND_S: Final = 60.0


def answer_of(command: Sequence[str]) -> str:
    """What a command prints.

    Raises:
        BatchError: If it refuses, or does not answer.
    """
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BatchError(f"{command[0]} does not answer: {error}") from error
    if done.returncode:
        raise BatchError(f"{command[0]} refuses: {done.stderr.strip() or done.returncode}")
    return done.stdout
