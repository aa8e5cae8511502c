"""Calls to a server that is somewhere else each time it is started again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from alipes.client.plain.sync import Client
from alipes.errors import NotReady, TransportError

__all__ = ["MovingClient"]

_PAUSE_S: Final = 0.2


class MovingClient:
    """Asks wherever the server is now. Several threads may use it."""

    def __init__(self, find: Callable[[], str], reconnect_s: float, options: dict[str, Any]) -> None:
        """Opens nothing yet.

        Args:
            find: Gives the address of the server.
            reconnect_s: How long a call looks for the server.
            options: Further arguments of `alipes.Client`.
        """
        self._find, self._reconnect_s, self._options = find, reconnect_s, options
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._address = ""

    def infer(self, model: str, inputs: Any, **options: Any) -> Any:
        """Sends a request, as `alipes.Client.infer` does, and sends it again where the server was lost meanwhile.

        Raises:
            TransportError: If no server answers for so long.
            AlipesError: Whatever else the server says.
        """
        deadline_s = time.monotonic() + self._reconnect_s
        while True:
            try:
                return self._current().infer(model, inputs, **options)
            except (TransportError, NotReady):
                if time.monotonic() >= deadline_s:
                    raise
                time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._client = None

    def _current(self) -> Client:
        address = self._find()
        with self._lock:
            if self._client is None or address != self._address:
                # One that other threads still use ends with its last call.
                self._client, self._address = Client(address, **self._options), address
            return self._client
