"""The environment variable by which the processes that a script starts learn the ports of its servers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from alipes.local_ports.lifetime import GONE, started_at

__all__ = ["VARIABLE", "Entry", "read_entries", "write_entries"]

VARIABLE: Final = "ALIPES_LOCAL_PORTS"

_HIGHEST: Final = 65535


@dataclass(frozen=True, slots=True)
class Entry:
    """The ports of one server.

    Attributes:
        host: The address that it listens at; empty for every address of this machine.
        ports: The port at which it listens for each port that a script may name.
        pid: A process that lives as long as they count: the server's own, where it is known.
        started: When that process started, since ids are used again.
    """

    host: str
    ports: Mapping[int, int]
    pid: int
    started: int

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.started != GONE and started_at(self.pid) == self.started


def write_entries(entries: Iterable[Entry]) -> str:
    """The variable's text; the newest server is the last one."""
    return json.dumps([asdict(entry) for entry in entries], separators=(",", ":"))


def read_entries(text: str) -> tuple[Entry, ...]:
    """What a text says; nothing where it is none of ours, such as that of another release."""
    try:
        return tuple(
            Entry(
                str(row["host"]),
                {_port(named): _port(actual) for named, actual in row["ports"].items()},
                int(row["pid"]),
                int(row["started"]),
            )
            for row in (json.loads(text) if text else ())
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def _port(value: str | int) -> int:
    port = int(value)
    if not 0 < port <= _HIGHEST:
        raise ValueError(f"{port} is no port")
    return port
