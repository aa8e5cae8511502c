"""A relay between a client and a server that counts the bytes in either direction: what really went over the wire."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self


class Relay:
    """Passes connections on to a server. A context manager: leaving it closes all of them."""

    def __init__(self, target: str) -> None:
        """Listens at once; ``target`` is the server's ``host:port``."""
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.sent = 0
        self.received = 0

    @property
    def address(self) -> str:
        """Where clients connect to, ``host:port``."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in self._open:
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            passing = [
                threading.Thread(target=self._pass, args=(client, server, "sent"), daemon=True),
                threading.Thread(target=self._pass, args=(server, client, "received"), daemon=True),
            ]
            with self._lock:
                self._open += [client, server]
            self._threads += passing
            for thread in passing:
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket, what: str) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                with self._lock:
                    setattr(self, what, getattr(self, what) + len(data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
