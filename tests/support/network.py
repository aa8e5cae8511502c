"""A network of its own for a test and what it starts: nothing in it reaches the machine's, nor the other way."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.waiting import until

# Source: linux/sched.h.
_CLONE_NEWNET = 0x40000000


@contextmanager
def own_network(address: str) -> Iterator[None]:
    """A network with the loopback interface alone, for this thread and what it starts until the block ends.

    The system removes it with everything in it once the last of its processes has ended.

    Args:
        address: A further address of the loopback interface, `1.2.3.4/32`.

    Raises:
        PermissionError: If this user may have none.
        OSError: If the system has none.
    """
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", _CLONE_NEWNET)
        try:
            _ip("link", "set", "lo", "up")
            _ip("address", "add", address, "dev", "lo")
            yield
        finally:
            _call("setns", before, _CLONE_NEWNET)
    finally:
        os.close(before)


@dataclass(frozen=True)
class JoinedNetwork:
    """A network of its own that is joined to this thread's.

    Attributes:
        launcher: Words before a command that is to run in it.
        gateway: The address of this thread's network in it.
        address: Its own address.
    """

    launcher: tuple[str, ...]
    gateway: str
    address: str


@contextmanager
def joined_network(number: int, address: str = "") -> Iterator[JoinedNetwork]:
    """A further network, joined to that of this thread, which has to be one of its own.

    Args:
        number: Up to 250; another one for each of them.
        address: An address that it has besides.
    """
    # It holds the network; others find it by its number.
    holder = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
    with subprocess.Popen(holder, stdin=subprocess.DEVNULL) as process:
        try:
            until(lambda: _network_of(str(process.pid)) != _network_of("thread-self"), "a network of its own")
            launcher = ("nsenter", f"--net=/proc/{process.pid}/ns/net")
            joined = JoinedNetwork(launcher, f"10.245.{number}.1", f"10.245.{number}.2")
            _join(joined, f"joined{number}", process.pid, address)
            yield joined
        finally:
            process.kill()


def _join(joined: JoinedNetwork, name: str, process: int, address: str) -> None:
    _ip("link", "add", name, "type", "veth", "peer", "name", "joined", "netns", str(process))
    _ip("address", "add", f"{joined.gateway}/30", "dev", name)
    _ip("link", "set", name, "up")
    _ip("link", "set", "lo", "up", launcher=joined.launcher)
    _ip("address", "add", f"{joined.address}/30", "dev", "joined", launcher=joined.launcher)
    _ip("link", "set", "joined", "up", launcher=joined.launcher)
    _ip("route", "add", "default", "via", joined.gateway, launcher=joined.launcher)
    if address:
        _ip("address", "add", f"{address}/32", "dev", "lo", launcher=joined.launcher)
        _ip("route", "add", address, "via", joined.address)


def _ip(*words: str, launcher: tuple[str, ...] = ()) -> None:
    subprocess.run([*launcher, "ip", *words], check=True)


def _network_of(process: str) -> str:
    return str(Path("/proc", process, "ns", "net").readlink())


def _call(name: str, *arguments: int) -> None:
    """A function of the C library that Python 3.11 has not."""
    if ctypes.CDLL(None, use_errno=True)[name](*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
