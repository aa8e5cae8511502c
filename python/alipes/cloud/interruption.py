"""What a person who presses Ctrl-C has to know: what is still there and costs money, and how it goes away."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

__all__ = ["listed_on_interrupt"]


@contextmanager
def listed_on_interrupt(names: Callable[[], Sequence[str]], commands: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Inside, Ctrl-C leaves a list of what was made so far, and the commands that remove it.

    Args:
        names: What was made, by then.
        commands: What removes it.
    """
    try:
        yield
    except KeyboardInterrupt:
        if made := names():
            lines = ["", "interrupted; made so far, and still there:", *(f"  {name}" for name in made)]
            lines += ["remove it with:", *(f"  {command}" for command in commands()), ""]
            sys.stderr.write("\n".join(lines))
            sys.stderr.flush()
        raise
