"""Arguments of a script, checked by their names: a wrong type is told where it was written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final, get_args

from alipes.errors import ServeError
from alipes.serve.recipe import Runtime

__all__ = ["check"]


def _path(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: object) -> bool:
    return isinstance(value, int) or (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(one, int) for one in value)
    )


_RUNTIMES: Final[tuple[str, ...]] = get_args(Runtime)

_EXPECTED: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "image": (_path, "the name of a container image; a port is given as port="),
    "name": (lambda value: isinstance(value, str), "a text"),
    "gpus": (_numbers, "the number of a GPU, or a list of numbers, as in [0, 1]"),
    "runtime": (lambda value: value in _RUNTIMES, f"one of {', '.join(map(repr, _RUNTIMES))}"),
    "log_file": (_path, "the name of a file"),
    "handle": (_path, 'the name of a file by which the server is found again, as in "server.json"'),
    "timeout": (_number, "a number of seconds, or None for no limit"),
}
"""What an argument takes, as a test and in words. Any of them may be `None`."""


def check(**arguments: object) -> None:
    """Checks arguments by their names.

    Raises:
        ServeError: If one is of another kind.
    """
    for name, value in arguments.items():
        fits, expected = _EXPECTED[name]
        if value is not None and not fits(value):
            raise ServeError(f"{name}={value!r} cannot be used: it takes {expected}")
