"""The servers of a run: each started when a row first needs it, checked, and stopped at the end."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.models.repository import SERVED_TOGETHER, repository
from bench.servers import alipes, caching, encrypted, floors, peers
from bench.servers.endpoint import Endpoint
from bench.servers.process import StartFailed
from bench.work import Work

ALIPES = "alipes"
#: alipes with an encrypted HTTP endpoint.
ENCRYPTED = "alipes_tls"
#: alipes whose models have their answers kept.
CACHING = "alipes_cache"
FLOOR = "floor"


class Fleet:
    """Running servers by name: ``alipes`` (one a backend, and others), ``floor`` (one for each work), peers."""

    def __init__(self, wanted_peers: frozenset[str]) -> None:
        """Remembers which peers may be started; starts nothing."""
        self._wanted_peers = wanted_peers
        self._stack = ExitStack()
        #: What the row that is measured started for itself.
        self._of_row = ExitStack()
        self._endpoints: dict[str, Endpoint] = {}
        self._answer_bytes: dict[tuple[str, str], int] = {}
        #: Peers that could not be started, and why.
        self.skipped: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end_row()
        self._stack.close()

    def end_row(self) -> None:
        """Stops what `of_row` and `peer_of_row` started: there are many of these servers, and some are never idle."""
        self._of_row.close()

    def endpoint(self, server: str, work: Work) -> Endpoint | None:
        """The running server that does this work, its answer checked; None where a peer is not there.

        Raises:
            StartFailed: If alipes or a floor does not start.
            WrongAnswer: If the answer is not the model's.
        """
        endpoint = self._running(server, work)
        if endpoint is not None and (server, work.name) not in self._answer_bytes:
            self._answer_bytes[server, work.name] = endpoint.check(work)
        return endpoint

    def answer_bytes(self, server: str, work: Work) -> int:
        """Bytes of the body of the server's checked answer."""
        return self._answer_bytes[server, work.name]

    def alipes(self, *models: str) -> Endpoint:
        """alipes with these models and no others; nothing is checked.

        Raises:
            StartFailed: If it does not start.
        """
        return self.alipes_on("_".join(models), repository(*models))

    def alipes_on(self, name: str, folder: Path) -> Endpoint:
        """alipes with a repository of its own; nothing is checked.

        Raises:
            StartFailed: If it does not start.
        """
        name = f"{ALIPES}_{name}"
        return self._once(name, lambda: alipes.start(folder, name))

    def of_row(self, started: Endpoint) -> Endpoint:
        """Takes a server that was started for one row, and stops it at the row's end."""
        self._of_row.enter_context(started.process)
        return started

    def peer_of_row(self, peer: str, environment: str, start: Callable[[Path], Endpoint]) -> Endpoint | None:
        """A program of a peer, until the row's end; None where the peer is not wanted or not there.

        Args:
            peer: Its name.
            environment: Name of the environment that it needs.
            start: Starts it, from the environment's folder.
        """
        made = self.environment(peer, environment)
        if made is None:
            return None
        try:
            return self.of_row(start(made))
        except StartFailed as error:
            self.skipped[peer] = str(error)
            return None

    def environment(self, peer: str, name: str) -> Path | None:
        """The folder of an environment; None where its peer is not wanted, or where it cannot be made."""
        if peer not in self._wanted_peers or peer in self.skipped:
            return None
        try:
            return peers.environment(name)
        except StartFailed as error:
            self.skipped[peer] = str(error)
            return None

    def _running(self, server: str, work: Work) -> Endpoint | None:
        if server == ALIPES:
            return self.alipes(*SERVED_TOGETHER[work.model.backend])
        if server == ENCRYPTED:
            folder = repository(*SERVED_TOGETHER[work.model.backend])
            return self._once(ENCRYPTED, lambda: encrypted.start(folder, ENCRYPTED))
        if server in (CACHING, FLOOR):
            return self._for_one(server, work)
        start, made = peers.ALL[server].start, self.environment(server, server)
        if made is None or start is None:
            return None
        try:
            return self._once(server, lambda: start(made))
        except StartFailed as error:
            self.skipped[server] = str(error)
            return None

    def _for_one(self, server: str, work: Work) -> Endpoint:
        """A server that does one thing only."""
        if server == CACHING:
            name = f"{CACHING}_{work.model.name}"
            return self._once(name, lambda: caching.start(repository(work.model.name), name))
        return self._once(f"{FLOOR}_{work.name}", lambda: floors.start(work))

    def _once(self, name: str, start: Callable[[], Endpoint]) -> Endpoint:
        if name not in self._endpoints:
            started = start()
            self._stack.enter_context(started.process)
            self._endpoints[name] = started
        return self._endpoints[name]
