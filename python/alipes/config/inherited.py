"""Listening sockets that the process before this one opened: what systemd and `alipes activate` say of them.

Source: `sd_listen_fds(3)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from alipes.config.listener_options import InheritedSocket
from alipes.errors import ConfigError

__all__ = ["FIRST_DESCRIPTOR", "read_inherited"]

FIRST_DESCRIPTOR: Final = 3
"""Behind those of input, output and errors."""
_MOST: Final = 64


def read_inherited(environ: Mapping[str, str], process: int) -> tuple[InheritedSocket, ...]:
    """The sockets that are meant for a process.

    Args:
        environ: `LISTEN_PID`, `LISTEN_FDS`, and `LISTEN_FDNAMES` where they have names.
        process: The number of this process: variables that its parent left behind are for another.

    Raises:
        ConfigError: If their number is none.
    """
    if environ.get("LISTEN_PID") != str(process):
        return ()
    text = environ.get("LISTEN_FDS", "0")
    if not (text.isascii() and text.isdecimal() and int(text) <= _MOST):
        raise ConfigError(f"LISTEN_FDS is '{text}': expected a number of sockets up to {_MOST}", key="LISTEN_FDS")
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    names += [""] * (int(text) - len(names))
    return tuple(InheritedSocket(descriptor=FIRST_DESCRIPTOR + place, name=names[place]) for place in range(int(text)))
