"""A server of one machine of several: other machines know its address, and it is started again where it ends."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from alipes.errors import ServeError
from alipes.serve.server import Server

__all__ = ["NodeServer", "host_of"]

_MOST_RESTARTS: Final = 3
"""How often in a row a server is started again that ends."""
_LOOK_S: Final = 0.25
_LASTING_S: Final = 600.0
"""A server that has run for so long does not end in a row with the one before it."""


class NodeServer:
    """A server that is started again where it ends, at another port then."""

    def __init__(
        self, repository: str, host: str, options: dict[str, Any], new_log: Callable[[], Path] | None = None
    ) -> None:
        """Starts it, and does not wait until it is ready.

        Args:
            repository: The models.
            host: The name or the address by which others reach this machine; one in `options` goes before it.
            options: Further arguments of `alipes.Server`.
            new_log: Makes the file for what a server writes; without, that goes with the server.

        Raises:
            ServeError: If it cannot start.
        """
        options = {"port": 0} | options
        # Where the address is known, the server listens there alone; a name may mean another one here.
        if "host" not in options and _is_address(host):
            options["host"] = host
        self._host = str(options.get("host") or host)
        self._repository, self._options = repository, options
        self._new_log = None if "log_file" in options else new_log
        self._restarts = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._server = self._started()

    @property
    def grpc(self) -> str:
        """Where gRPC requests go, `host:port`."""
        return self._address(self._server.grpc_port)

    @property
    def http(self) -> str:
        """Where HTTP requests go, `host:port`."""
        return self._address(self._server.http_port)

    @property
    def pid(self) -> int:
        """The process of the server."""
        return self._server.pid

    def wait_until_ready(self) -> None:
        """Returns once all models can answer.

        Raises:
            ServeError: If one cannot be loaded, or the server has ended.
        """
        self._server.wait_until_ready(progress=False)

    def look(self) -> bool:
        """Starts the server again where it has ended, and waits until it is ready; whether it did.

        Raises:
            ServeError: If that happens again and again.
        """
        if self._server.status() != "ended":
            return False
        if time.monotonic() - self._started_s > _LASTING_S:
            self._restarts = 0
        self._restarts += 1
        if self._restarts > _MOST_RESTARTS:
            raise ServeError(f"the server ends again and again; the last words of it: {self._server.log}")
        self._server.stop()
        self._server = self._started()
        self.wait_until_ready()
        return True

    def watch(self, on_failure: Callable[[ServeError], None]) -> None:
        """From here on a thread starts the server again where it ends.

        Args:
            on_failure: Called with the reason where that does not help.
        """
        self._thread = threading.Thread(target=self._watch, args=(on_failure,), name="alipes-node-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends it."""
        self._over.set()
        with self._lock:
            self._server.stop()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, on_failure: Callable[[ServeError], None]) -> None:
        while not self._over.wait(_LOOK_S):
            try:
                with self._lock:
                    if not self._over.is_set():
                        self.look()
            except ServeError as error:
                on_failure(error)
                return

    def _started(self) -> Server:
        self._started_s = time.monotonic()
        options = self._options if self._new_log is None else self._options | {"log_file": self._new_log()}
        return Server(self._repository, wait=False, **options)

    def _address(self, port: int) -> str:
        return f"[{self._host}]:{port}" if ":" in self._host else f"{self._host}:{port}"


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_of(address: str) -> str:
    """The host of an address such as `tcp://10.0.0.7:40123`; this machine where it is one of this process alone."""
    protocol, _, rest = address.rpartition("://")
    return "127.0.0.1" if protocol == "inproc" else rest.rpartition(":")[0].strip("[]")
