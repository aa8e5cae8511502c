"""An address that stays while the server behind it comes and goes: what a client sees of a restart."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Switch:
    """Passes connections on to whichever server is behind it now. A context manager."""

    def __init__(self, target: str | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listens at once; without a target connections are closed as soon as they come."""
        self._listener = socket.create_server((host, port))
        self._lock = threading.Lock()
        self._target = target
        self._cuts = 0
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        """Where clients connect to, ``host:port``."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def lead(self, target: str | None) -> None:
        """Puts another server behind the address, and cuts the connections to the one before."""
        with self._lock:
            self._target = target
        self.cut()

    def cut(self) -> None:
        """Breaks every connection, those that are being made too."""
        with self._lock:
            self._cuts += 1
            ends, self._open = self._open, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                target, cuts = self._target, self._cuts
            try:
                server = socket.create_connection(_pair(target)) if target else None
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            both = [
                threading.Thread(target=_pass, args=ends, daemon=True) for ends in ((client, server), (server, client))
            ]
            with self._lock:
                is_cut = self._cuts != cuts
                if not is_cut:
                    self._open += [client, server]
            if is_cut:
                client.close()
                server.close()
                continue
            self._threads += both
            for thread in both:
                thread.start()


def _pair(target: str) -> tuple[str, int]:
    host, port = target.rsplit(":", 1)
    return host, int(port)


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            sink.sendall(piece)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    source.close()
