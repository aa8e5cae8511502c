"""How a verb fails: the words on standard error and the exit code."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from typing import Final

from alipes.errors import (
    AlipesError,
    ConfigError,
    DeadlineExceeded,
    InferError,
    PermissionDenied,
    TlsError,
    TransportError,
    Unauthenticated,
)

__all__ = ["GIVE_KEY", "INTERRUPTED", "NOT_RUNNING", "CommandFailed", "UsageFailed", "abridged", "perform"]

NOT_RUNNING: Final = "start a server with `alipes serve REPOSITORY`, or name one with --url"
"""What to do where nobody answers."""

GIVE_KEY: Final = "give the key that the server asks for with --api-key, or in ALIPES_API_KEY"

_MENDS: Final = {
    DeadlineExceeded: "allow more time, with --timeout where the verb has it",
    Unauthenticated: GIVE_KEY,
    PermissionDenied: "add what the server asks for with --header NAME:VALUE",
}

_NOT_SERVED: Final = ("has no available versions", "is not found", "is not ready")
"""What servers say of a model that they have and do not serve. Source: Triton."""

_TLS_OPTIONS: Final = {
    "as Tls(roots=...)": "with --tls-roots FILE",
    "as Tls(certificate=..., key=...)": "with --tls-cert FILE --tls-key FILE",
    "or say which it bears as Tls(server_name=...)": "by that name in --url",
}
"""Settings of a script's client -> what a command has for them."""

_COLUMNS: Final = 80
_LINES: Final = 4
_WRAPPER: Final = textwrap.TextWrapper(_COLUMNS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

INTERRUPTED: Final = 130
"""128 and the number of SIGINT, as shells count."""


class CommandFailed(AlipesError):
    """What was asked for cannot be done.

    Attributes:
        mend: What to do about it.
        seen: What was seen; empty where the mend says it.
        code: The exit code.
    """

    code = 1

    def __init__(self, mend: str, seen: str = "") -> None:
        """Takes both."""
        super().__init__(f"{mend}: {seen}" if seen else mend)
        self.mend = mend
        self.seen = seen


class UsageFailed(CommandFailed):
    """The command line itself is wrong."""

    code = 2


def perform(action: Callable[[], int]) -> int:
    """Runs a verb.

    Returns:
        Its exit code: 1 after an error of the server or of what was asked, 2 for a wrong command line. The error is on
        standard error, at most four lines of 80 columns.
    """
    try:
        code = action()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `alipes stats | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CommandFailed as error:
        _print(error.mend, error.seen)
        return error.code
    except (AlipesError, OSError) as error:
        _print(*_explained(error))
        return 1
    return code


def _explained(error: AlipesError | OSError) -> tuple[str, str]:
    """What to do and what was seen."""
    if isinstance(error, TransportError) and not isinstance(error, TlsError) and not error.reached:
        return NOT_RUNNING, str(error)
    for kind, mend in _MENDS.items():
        if isinstance(error, kind):
            return mend, str(error)
    seen, has, names = str(error).partition("; the server has ")
    if has:
        return f"the server has {names}", seen
    if isinstance(error, InferError) and any(words in str(error) for words in _NOT_SERVED):
        return "see with `alipes models list` which models are ready, and why others are not", str(error)
    return _in_options(error.explain() if isinstance(error, ConfigError) else str(error)), ""


def _in_options(text: str) -> str:
    """What a script is told to write, as the options of a command."""
    for written, typed in _TLS_OPTIONS.items():
        text = text.replace(written, typed)
    return text


def abridged(text: str) -> str:
    """A message in lines of 80 columns, at most four."""
    return "\n".join(_wrapped(text, _LINES))


def _print(mend: str, seen: str) -> None:
    lines = _wrapped(f"error: {mend}", _LINES)
    lines += _wrapped(f"  {seen}", _LINES - len(lines)) if seen else []
    print("\n".join(lines), file=sys.stderr)


def _wrapped(text: str, room: int) -> list[str]:
    """The text in lines of 80 columns. Of a longer one, such as a traceback, the beginning and the last line."""
    lines = [line for part in text.splitlines() if part.strip() for line in _WRAPPER.wrap(part)]
    if len(lines) <= room:
        return lines
    return [*lines[: max(room - 2, 0)], "  ...", lines[-1]][-room:] if room > 0 else []
