"""Ports for programs that have to be told theirs, and for addresses where nobody is."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack
from pathlib import Path

_LOWEST = 10_000
# What the system gives to whoever asks for any port. Every connection has one of these too, so that in a while without
# anybody's doing somebody is at each.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_HIGHEST_AT_LEAST = 30_000


def free_ports(count: int) -> list[int]:
    """Ports of this machine at which nobody listens, each another one; the system gives none of them to others."""
    found: list[int] = []
    first_dynamic = int(_RANGE.read_text().split()[0])
    with ExitStack() as held:
        while len(found) < count:
            port = _LOWEST + secrets.randbelow(max(first_dynamic, _HIGHEST_AT_LEAST) - _LOWEST)
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def nobody() -> str:
    """An address, `host:port`, at which nobody listens."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"
