"""Ports for programs that cannot choose their own, and addresses without a listener."""

from __future__ import annotations

import secrets
import socket
from contextlib import ExitStack
from pathlib import Path

_LOWEST = 10_000
# The system takes ports from this range where a program names none. Each connection has one of them too, so that any of
# them may be in use at any time.
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_HIGHEST_AT_LEAST = 30_000


def free_ports(count: int) -> list[int]:
    """Different ports of this machine without a listener; the system assigns none of them by itself."""
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


def unused_address() -> str:
    """An address, `host:port`, without a listener."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"
