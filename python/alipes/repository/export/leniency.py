"""What an export does with a file that differs from its source, where it was not told: refuse it, or warn of it."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = ["Check", "default_check", "warn_by_default"]

Check: TypeAlias = "bool | Literal['warn']"
"""True: a file that differs is refused. `warn`: it is published with a line in the log. False: nobody looks."""

_ON: Final[set[str]] = set()


def default_check() -> Check:
    """What holds where an export says nothing."""
    return "warn" if _ON else True


def warn_by_default(who: str, on: bool) -> None:
    """Say for this process that differences are warned of: for scripts that were written where nobody looked.

    Args:
        who: Who asks; each takes back what it asked for.
        on: Whether to warn from now on.
    """
    if on:
        _ON.add(who)
    else:
        _ON.discard(who)
