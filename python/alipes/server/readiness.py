"""Word to the supervisor that the server accepts requests: `sd_notify(3)` of systemd, which `alipes activate` reads."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from alipes.server.log import log

__all__ = ["notify_ready"]


def notify_ready(environ: Mapping[str, str]) -> None:
    """Sends the word where `NOTIFY_SOCKET` says that a supervisor waits for it."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as opened:
            opened.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            opened.send(b"READY=1")
    except OSError as error:
        log.warning("the supervisor does not take word at %s: %s", address, error.strerror)
