"""A server that runs for a script: its endpoints, its state, its log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from alipes.errors import ServeError, ServeTimeout
from alipes.local_ports import resolve
from alipes.progress.work import Task, task
from alipes.serve.arguments import check
from alipes.serve.endpoints import EndpointName, Endpoints, ServerEndpoint
from alipes.serve.readiness import State, announces, loading, look, look_over_grpc, tail
from alipes.serve.reason import not_found, reason
from alipes.serve.verbs import Verbs

__all__ = ["Instance", "Source"]

_FIRST_LOOK_S: Final = 0.02
_LATER_LOOKS_S: Final = 0.25
_PROGRESS_AFTER_S: Final = 0.5
"""A wait is shown after this time: most are over by then, and a line that flashes is noise."""
_NAMED: Final = 3
"""Models that a line names; it counts the others."""
_log = logging.getLogger("alipes.serve")


class Source(Protocol):
    """The owner of the server's process for an instance."""

    endpoints: Endpoints
    ports: set[int]
    """By which scripts may know its endpoints."""

    @property
    def pid(self) -> int:
        """The process id."""

    def how(self) -> str | None:
        """How it ended, in words; `None` while it runs."""

    def wait_for_end(self, timeout_s: float) -> bool:
        """Whether it has ended, as soon as it has or when the time is up."""

    def stop(self) -> None:
        """Ends it."""


class Instance(Verbs):
    """A running server.

    Attributes:
        name: Its name.
        log_path: The file with what it wrote.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        log_path: Path,
        *,
        announced: Collection[str],
        api_key: str | None = None,
    ) -> None:
        """Takes what runs.

        Args:
            name: Its name.
            source: The owner of the process.
            log_path: Where its output is.
            announced: Endpoints of which its log will say when they are open.
            api_key: The key that it asks for, where its flags name one.
        """
        self.name = name
        self.log_path = log_path
        self._source = source
        self._closed: Collection[str] = announced
        self._api_key = api_key
        self._seen_live = False

    def __repr__(self) -> str:
        """Its name, its state and its gRPC endpoint."""
        return f"<{type(self).__name__} {self.name}: {self.status()}, gRPC at {self._known('grpc')}>"

    @property
    def pid(self) -> int:
        """The process id of the server, or of what runs its container."""
        return self._source.pid

    @property
    def http(self) -> str:
        """Where HTTP requests go, `host:port`."""
        return self._address("http")

    @property
    def grpc(self) -> str:
        """Where gRPC requests go, `host:port`."""
        return self._address("grpc")

    @property
    def metrics(self) -> str:
        """The address of the metrics endpoint, `host:port`."""
        return self._address("metrics")

    @property
    def http_port(self) -> int:
        """The port of the HTTP endpoint."""
        return self._endpoint("http").port

    @property
    def grpc_port(self) -> int:
        """The port of the gRPC endpoint."""
        return self._endpoint("grpc").port

    @property
    def metrics_port(self) -> int:
        """The port of the metrics endpoint."""
        return self._endpoint("metrics").port

    @property
    def log(self) -> str:
        """The last lines of what the server wrote."""
        return tail(self.log_path)

    def status(self) -> str:
        """`ready`, `starting`, or `ended`."""
        if self._source.how() is not None:
            return "ended"
        return "ready" if self._look().ready else "starting"

    def wait(
        self,
        endpoint: str | None = None,
        timeout: float | None = None,
        log_interval: float | None = 10,
        *,
        progress: bool | None = None,
    ) -> None:
        """Returns once the server and all of its models can answer.

        Args:
            endpoint: One of the server's endpoints, as a script knows it; `None` for whichever it has.
            timeout: Longest wait in seconds; `None` and 0 wait without end.
            log_interval: Seconds between two notes in the log (level DEBUG) that it is still waiting.
            progress: False shows no line with what is loading, which a terminal or a notebook is shown otherwise.

        Raises:
            ServeError: If the server ended, if a model cannot be loaded, or if the endpoint is none of its endpoints.
            ServeTimeout: If the time is up; it is a `TimeoutError` and a `RuntimeError`.
        """
        if endpoint is not None:
            self._check(endpoint)
        self.wait_until_ready(timeout, log_interval, progress=progress)

    def stop(self) -> None:
        """Ends the server, after what it is doing. A second time does nothing."""
        self._source.stop()

    def wait_until_ready(
        self, timeout: float | None = None, log_interval: float | None = 10, *, progress: bool | None = None
    ) -> None:
        """The same as `wait`, at whichever endpoints the server has."""
        check(timeout=timeout)
        self._wait(lambda state: state.ready, timeout, log_interval, progress)

    def _wait(
        self,
        enough: Callable[[State], bool],
        timeout: float | None = None,
        log_interval: float | None = 10,
        progress: bool | None = None,
    ) -> None:
        begun = time.monotonic()
        deadline = begun + timeout if timeout else None
        noted, pause = begun, _FIRST_LOOK_S
        with ExitStack() as shown:
            line: Task | None = None
            while not enough(state := self._look()):
                self._raise_if_lost(state)
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    pending = _loading_text(loading(self.log_path))
                    raise ServeTimeout(
                        f"the server {self.name} was not ready within {timeout:g} seconds"
                        f"{f': {pending}' if pending else ''}; its log is {self.log_path}"
                    )
                if log_interval and now - noted >= log_interval:
                    noted = now
                    _log.debug("waiting for the server %s since %.0f seconds", self.name, now - begun)
                if line is None and now - begun >= _PROGRESS_AFTER_S:
                    line = shown.enter_context(task(f"waiting for the server {self.name}", show=progress))
                if line is not None and line.shown:
                    line.step(_loading_text(loading(self.log_path)))
                self._source.wait_for_end(pause if deadline is None else min(pause, max(0.0, deadline - now)))
                pause = min(pause * 1.5, _LATER_LOOKS_S)

    def _look(self) -> State:
        if self._closed and not announces(self.log_path, self._closed):
            return State(live=False, ready=False)
        self._closed = ()
        http, grpc = self._source.endpoints.get("http"), self._source.endpoints.get("grpc")
        # Encrypted, it may want a certificate of its clients; the other endpoint, where there is one, need not.
        if http is None or (http.encrypted and grpc is not None and not grpc.encrypted):
            return look_over_grpc(self._address("grpc"), self._api_key)
        return look(http.address, self._api_key, encrypted=http.encrypted)

    def _raise_if_lost(self, state: State) -> None:
        if (how := self._source.how()) is not None:
            raise self._lost("\n".join(filter(None, (f"does not run: {how}", reason(self.log_path)))))
        if failed := state.failed or (not_found(self.log_path) if state.settled else ()):
            raise self._lost(f"runs and will not be ready: {'; '.join(failed)}")

    def _lost(self, text: str) -> ServeError:
        error = ServeError(f"the server {self.name} {text}")
        error.log = self.log
        return error

    def _check(self, endpoint: str) -> None:
        """The endpoint names one of this server.

        Raises:
            ServeError: If it does not.
        """
        named = {address.rpartition("/")[2].rpartition(":")[2] for address in (endpoint, resolve(endpoint))}
        if named.isdisjoint(map(str, self._source.ports)):
            there = ", ".join(f"{name} at {endpoint.address}" for name, endpoint in self._source.endpoints.items())
            raise ServeError(f"{endpoint} is no endpoint of the server {self.name}: it has {there}")

    def _wait_until_live(self) -> None:
        if not self._seen_live or self._source.how() is not None:
            self._wait(lambda state: state.live)
            self._seen_live = True

    def _offers_grpc(self) -> bool:
        return "grpc" in self._source.endpoints

    def _is_encrypted(self) -> bool:
        return self._endpoint("http").encrypted

    def _address(self, name: EndpointName) -> str:
        return self._endpoint(name).address

    def _endpoint(self, name: EndpointName) -> ServerEndpoint:
        endpoint = self._source.endpoints.get(name)
        if endpoint is None:
            raise ServeError(f"the server {self.name} has no {name} endpoint: its flags disable it")
        return endpoint

    def _known(self, name: EndpointName) -> str:
        endpoint = self._source.endpoints.get(name)
        return endpoint.address if endpoint is not None else "no endpoint"


def _loading_text(models: Sequence[str]) -> str:
    """What a line says of models that are being loaded."""
    if not models:
        return ""
    named, rest = models[:_NAMED], len(models[_NAMED:])
    return f"loading {', '.join(named)}{f' and {rest} more' if rest else ''}"
