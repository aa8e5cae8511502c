"""Trials on servers of our own: one process for each configuration, loaded and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

from alipes.config.override import from_document
from alipes.config.schema import ModelConfig
from alipes.errors import AlipesError, ConfigError, ServeError
from alipes.loadtest import Measuring, ModelRequests
from alipes.periodic import periodic
from alipes.process_folder import ProcessFolder
from alipes.serve.flags import FlagValue
from alipes.serve.server import Server
from alipes.tune.measure import measure
from alipes.tune.models import TunedModel
from alipes.tune.outcome import Outcome
from alipes.tune.point import Point
from alipes.tune.usage import Usage, resident_bytes, usage
from alipes.tune.variant import write_variant

__all__ = ["ServerTrials", "Trials", "Workload"]

_LOOK_S: Final = 0.2
"""Between two looks at the memory of a server."""
_SWAPPED_BYTES: Final = 1 << 20
"""More than that in the swap is no accident."""


class Trials(Protocol):
    """What can try a point."""

    def run(self, point: Point) -> Outcome:
        """Tries it. Whatever goes wrong with the server is an outcome."""


@dataclass(frozen=True)
class Workload:
    """What servers are measured with.

    Attributes:
        requests: For each model that gets requests.
        measuring: How.
        protocol: Over which.
        flags: Of the server, as keywords of `alipes.Server`.
        start_timeout_s: Longest start of a server.
        max_memory_bytes: A server that holds more is stopped, before the machine is in trouble.
    """

    requests: Sequence[ModelRequests]
    measuring: Measuring = field(default_factory=Measuring)
    protocol: Literal["http", "grpc"] = "http"
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    start_timeout_s: float = 120.0
    max_memory_bytes: int = 1 << 62


class ServerTrials:
    """Trials on servers of our own. A context manager: the last server and all folders go with it."""

    def __init__(self, models: Mapping[str, TunedModel], workload: Workload) -> None:
        """Prepares; no server runs yet.

        Args:
            models: All that are served.
            workload: What is measured.
        """
        self._models = models
        self._workload = workload
        self._names = [*dict.fromkeys([*(one.model for one in workload.requests), *models])]
        self._running: _Running | None = None

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the server."""
        self._stop()

    def completed(self) -> dict[str, ModelConfig]:
        """The configurations of all models, as a server completes them where nothing is changed.

        Raises:
            ServeError: If the repository cannot be served as it is.
        """
        server = self._serve(Point(())).server
        with server.client() as client:
            return {name: from_document(client.config(name)) for name in self._models}

    def run(self, point: Point) -> Outcome:
        """Tries a point; a server with its configuration that runs already is used again."""
        try:
            running = self._serve(point.variant)
        except (ServeError, ConfigError) as error:
            self._stop()
            return Outcome(point, failure=f"the server did not start: {_last_line(error)}")
        except BaseException:
            self._stop()
            raise
        outcome = self._measure(running, point)
        if outcome.failure:
            self._stop()
        return outcome

    def _measure(self, running: _Running, point: Point) -> Outcome:
        server = running.server
        address = server.url if self._workload.protocol == "http" else server.grpc_url
        before, guard = usage(server.pid), _Guard(server, self._workload.max_memory_bytes)
        try:
            with periodic(guard.look, _LOOK_S, "alipes-tune-guard"):
                outcome = measure(point, address, self._workload.requests, self._workload.measuring)
                after = usage(server.pid)
        except AlipesError as error:
            return Outcome(point, failure=guard.reason or _ended(server) or str(error))
        failure = guard.reason or _ended(server) or outcome.failure or _swapped(before, after)
        return replace(outcome, failure=failure, figures={**outcome.figures, **_used(before, after, outcome)})

    def _serve(self, variant: Point) -> _Running:
        if self._running is not None and self._running.variant == variant and _ended(self._running.server) == "":
            return self._running
        self._stop()
        with ExitStack() as stack:
            holder = ProcessFolder("tune")
            stack.callback(holder.close)
            folder = holder.path / "models"
            folder.mkdir()
            write_variant(folder, self._models, variant)
            flags: dict[str, Any] = {"port": 0, "host": "127.0.0.1", **self._workload.flags}
            server = Server(
                folder,
                timeout=self._workload.start_timeout_s,
                model_control_mode="explicit",
                load_model=self._names,
                **flags,
            )
            stack.callback(server.stop)
            self._running = _Running(variant, server, stack.pop_all().close)
        return self._running

    def _stop(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            running.stop()


@dataclass(frozen=True)
class _Running:
    variant: Point
    server: Server
    stop: Callable[[], None]


@dataclass
class _Guard:
    """Stops a server that holds too much memory; `reason` then says so."""

    server: Server
    max_bytes: int
    reason: str = ""

    def look(self) -> bool:
        """Whether the server runs on."""
        held = resident_bytes(self.server.pid)
        if held <= self.max_bytes:
            return True
        limit = self.max_bytes / 2**20
        self.reason = f"it was stopped: it held {held / 2**20:,.0f} MiB, the limit is {limit:,.0f} MiB"
        with suppress(AlipesError, OSError):
            self.server.stop()
        return False


def _used(before: Usage, after: Usage, outcome: Outcome) -> dict[str, float]:
    seconds = outcome.details.get("seconds", math.nan)
    cores = (after.busy_s - before.busy_s) / seconds if seconds > 0 else math.nan
    return {"memory_mb": after.memory_bytes / 1e6, "cores": cores}


def _swapped(before: Usage, after: Usage) -> str:
    swapped = after.swap_bytes - before.swap_bytes
    return f"it swapped: {swapped / 2**20:,.0f} MiB went out" if swapped > _SWAPPED_BYTES else ""


def _ended(server: Server) -> str:
    if server.status() != "ended":
        return ""
    return f"the server ended: {_last_words(server.log)}"


def _last_words(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "its log is empty"


def _last_line(error: Exception) -> str:
    text = error.explain() if isinstance(error, ConfigError) else str(error)
    return " ".join(text.split())
