"""Which release of Triton a server follows that scripts of hermes start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["HERMES_RELEASE", "release_flags"]

HERMES_RELEASE: Final = "2.51"
"""hermes and its users ask whether models are ready that the server does not know yet: later releases call that an
error, at which their clients end."""

_FLAG: Final = "--triton-release"
_VARIABLE: Final = "ALIPES_TRITON_RELEASE"


def release_flags(words: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """What is to stand in front of the flags that a script gives to our own server: nothing where somebody says it."""
    is_named = _VARIABLE in environment or any(word.split("=", 1)[0] == _FLAG for word in words)
    return () if is_named else (f"{_FLAG}={HERMES_RELEASE}",)
