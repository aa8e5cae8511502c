"""Why a server ended, from its log: the errors among its last lines, without what stands in front of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from alipes.serve.readiness import tail

__all__ = ["not_found", "reason"]

_SHOWN: Final = 3
"""Lines of a reason: with the line in front of it, a message has four."""

_LONGEST: Final = 400
"""Most characters of a line: the log has all of them."""

# `I0520 20:03:25.829575 3355 server.py:41] "..."`, or with a time of ISO 8601 in front of the level.
_LOGGED: Final = re.compile(r"(?:\S+T\S+ )?(?P<level>[EFIWV])(?:\d{4} [\d:.]+)? \d+ [\w.-]+:\d+\] (?P<text>.*)")
_ABSENT: Final = re.compile(r"failed to poll model '.*': model not found in any model repository")


def reason(log: Path) -> str:
    """The last errors of a log, a line each; its last lines where it has no error; empty for an empty log."""
    lines = tail(log).splitlines()
    found = list(dict.fromkeys(_errors(lines))) or [line for line in lines if line.strip()]
    return "\n".join(map(_brief, found[-_SHOWN:]))


def not_found(log: Path) -> tuple[str, ...]:
    """What a log says of models that a server was to load at its start and did not find."""
    return tuple(dict.fromkeys(line for line in _errors(tail(log).splitlines()) if _ABSENT.match(line)))


def _errors(lines: list[str]) -> list[str]:
    """The messages of errors, then what stands behind the last record of the log: why the process gave up."""
    errors: list[str] = []
    behind: list[str] = []
    for line in lines:
        record = _record(line)
        if record is None and line.strip() and not line.startswith(("+-", "| ")):
            behind.append(line.strip().removeprefix("error: ").removeprefix("Error: "))
            continue
        behind.clear()
        if record is not None and record[0].startswith(("E", "F")):
            errors.append(record[1])
    return [*errors, *behind]


def _record(line: str) -> tuple[str, str] | None:
    """Level and message of a record of the log; `None` for any other line."""
    if line.startswith("{"):
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        return str(fields.get("level", "")).upper(), str(fields.get("message", ""))
    found = _LOGGED.match(line)
    return None if found is None else (found["level"], _unquoted(found["text"]))


def _unquoted(text: str) -> str:
    """The message of a record, which our server writes as JSON, and older releases of Triton as it is."""
    try:
        message = json.loads(text)
    except ValueError:
        return text
    return message if isinstance(message, str) else text


def _brief(message: str) -> str:
    """A message as one line: of a traceback the first and the last."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    text = ": ".join(dict.fromkeys([lines[0].rstrip(":"), lines[-1]])) if lines else ""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
