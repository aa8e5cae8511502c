"""A thread that looks after servers that are silent or gone, and after names that may mean others by now."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final

from alipes.client.servers.renewal import RENEW_S, RENEW_SOON_S

if TYPE_CHECKING:
    from alipes.client.servers.spread import Server, Servers

__all__ = ["LOOK_S", "Watch"]

_LOG: Final = logging.getLogger("alipes.client")

LOOK_S: Final = 0.4
"""The longest wait for an answer to whether a server is there: with two ticks of silence before it, under a second."""

_TICK_S: Final = 0.25

_SILENT_TICKS: Final = 2
"""A server that has calls and answers none in so many ticks is asked whether it is there."""

_FIRST_PAUSE_S: Final = 0.1
_MOST_PAUSE_S: Final = 2.0
"""Pauses between looks at a server that is gone: they double."""


class Watch:
    """Looks after the servers of one client, for as long as there is that client."""

    def __init__(self, servers: Servers[Any]) -> None:
        """Begins."""
        self._servers = weakref.ref(servers, lambda _: self.stop())
        self._wake = threading.Event()
        self._stopped = False
        self._pauses: weakref.WeakKeyDictionary[Server[Any], tuple[float, float]] = weakref.WeakKeyDictionary()
        self._silent: weakref.WeakKeyDictionary[Server[Any], tuple[int, int]] = weakref.WeakKeyDictionary()
        self._looking: set[Server[Any]] = set()
        self._thread = threading.Thread(target=self._run, name="alipes-client-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Looks no more."""
        self._stopped = True
        self._wake.set()

    def look_after(self, server: Server[Any]) -> None:
        """Looks at a server that is gone, soon and then more and more rarely."""
        self._pauses.setdefault(server, (time.monotonic(), _FIRST_PAUSE_S))
        self._wake.set()

    def _run(self) -> None:
        while not self._stopped:
            self._wake.wait(_TICK_S)
            self._wake.clear()
            servers = self._servers()
            if servers is None:
                return
            try:
                self._tick(servers)
            except Exception:
                _LOG.exception("the client's look at its servers failed")
            del servers

    def _tick(self, servers: Servers[Any]) -> None:
        now_s = time.monotonic()
        gone = False
        for server in servers.all:
            if server.lost is not None:
                gone = True
                due_s, _ = self._pauses.setdefault(server, (now_s, _FIRST_PAUSE_S))
                if now_s >= due_s:
                    self._look(servers, server)
            elif self._is_silent(server):
                self._look(servers, server)
        servers.renew_after(RENEW_SOON_S if gone else RENEW_S)

    def _is_silent(self, server: Server[Any]) -> bool:
        """Whether it has had calls for some ticks, and answered none."""
        answered, ticks = self._silent.get(server, (-1, 0))
        ticks = ticks + 1 if server.load and answered == server.answered else 0
        self._silent[server] = (server.answered, ticks)
        return ticks >= _SILENT_TICKS

    def _look(self, servers: Servers[Any], server: Server[Any]) -> None:
        """Asks a server whether it is there, on a thread of its own: one that is silent holds up no other."""
        if server in self._looking:
            return
        self._looking.add(server)

        def work() -> None:
            try:
                live = servers.is_live(server.member, LOOK_S)
            except Exception as error:  # a look that fails is none that succeeded
                _LOG.debug("a look at %s failed: %r", server, error)
                live = False
            finally:
                self._looking.discard(server)
            if self._stopped:
                return
            self._note(servers, server, live=live)

        threading.Thread(target=work, name="alipes-client-look", daemon=True).start()

    def _note(self, servers: Servers[Any], server: Server[Any], *, live: bool) -> None:
        if live:
            self._pauses.pop(server, None)
            self._silent.pop(server, None)
            if server.lost is not None:
                servers.find(server)
            return
        pause_s = self._pauses.get(server, (0.0, _FIRST_PAUSE_S))[1]
        self._pauses[server] = (time.monotonic() + pause_s, min(2 * pause_s, _MOST_PAUSE_S))
        if server.lost is None:
            servers.lose(server, f"it has calls in flight and did not answer a look within {LOOK_S:g} s")
