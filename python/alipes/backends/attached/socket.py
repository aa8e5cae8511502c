"""The socket that a script leaves to the server that it starts."""

from __future__ import annotations

import os
import stat

from alipes.errors import ConfigError

__all__ = ["is_socket", "keep_socket"]


def is_socket(descriptor: int) -> bool:
    """Whether a number is that of an open socket."""
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def keep_socket(descriptor: int) -> None:
    """Keeps an inherited socket from the processes that the server starts: one that outlives it would hold it open.

    Raises:
        ConfigError: If the number is not that of an open socket.
    """
    if not is_socket(descriptor):
        raise ConfigError(
            f"--backend-config=attached,socket={descriptor} names no socket that this process has inherited; it is set "
            "by alipes.attached.Attachment and by nobody else",
            key="backend-config",
        )
    os.set_inheritable(descriptor, False)
