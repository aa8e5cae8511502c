"""Whether a condition can be read: gjson refuses no path, and finds nothing at one that a person has not closed."""

from __future__ import annotations

from typing import Final

__all__ = ["condition_fault"]

_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


def condition_fault(path: str) -> str | None:
    """What is wrong with a path; None where gjson can read it.

    Args:
        path: A path of gjson.

    Returns:
        A bracket or a quote that is not closed, or a query that compares nothing.

    Source: the path syntax of gjson v1.18.
    """
    opened: list[str] = []
    at = 0
    while at < len(path):
        letter = path[at]
        if letter == "\\":
            at += 1
        elif letter == '"' and opened:
            end = _quote_end(path, at)
            if end is None:
                return f"the quote at {at + 1} is not closed"
            at = end
        elif letter in _CLOSING:
            opened.append(_CLOSING[letter])
        elif opened and letter == opened[-1]:
            opened.pop()
        elif letter in ")]}":
            return f"'{letter}' at {at + 1} closes nothing"
        at += 1
    return f"'{opened[-1]}' is missing at its end" if opened else None


def _quote_end(path: str, start: int) -> int | None:
    at = start + 1
    while at < len(path):
        if path[at] == "\\":
            at += 1
        elif path[at] == '"':
            return at
        at += 1
    return None
