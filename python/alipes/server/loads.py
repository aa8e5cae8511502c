"""The loads that wait or run, so that an unload can end them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from alipes.model_load import Load
from alipes.types import ModelKey

__all__ = ["LoadLimits", "Loads"]


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """How long and how often a model is tried.

    Attributes:
        retries: Further attempts at a version that does not load.
        timeout_s: Longest time that the load of a model may take, in seconds, with all attempts; 0 sets no limit.
    """

    retries: int = 0
    timeout_s: float = 0.0


class Loads:
    """Every load from its announcement to its end."""

    def __init__(self, timeout_s: float = 0.0) -> None:
        """Knows no load.

        Args:
            timeout_s: Longest time that the load of one model may take, in seconds; 0 sets no limit.
        """
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._known: dict[int, Load] = {}

    def announce(self, model: str) -> Load:
        """A request that loads a model, once it has its turn; to be forgotten at its end.

        It has no limit of its own: the load of each model has.
        """
        return self._add(Load(ModelKey(model)))

    @contextmanager
    def request(self, model: str) -> Iterator[Load]:
        """The same for one that has its turn at once, and ends with the block."""
        load = self.announce(model)
        try:
            yield load
        finally:
            self.forget(load)

    @contextmanager
    def of(self, key: ModelKey, within: Load | None = None) -> Iterator[Load]:
        """The load of one model.

        Args:
            key: The model.
            within: The request, or the load of the ensemble, that it is a part of: cancelled, it takes this one along.
        """
        load = self._add(Load(key, timeout_s=self._timeout_s))
        try:
            if within is None:
                yield load
            else:
                with within.ending(load.cancel):
                    yield load
        finally:
            self.forget(load)

    def cancel(self, key: ModelKey, *, every_namespace: bool = False) -> None:
        """Cancels what loads a model, or waits to: the model is to be unloaded.

        Args:
            key: The model.
            every_namespace: Whether the namespace does not count.
        """
        with self._lock:
            known = tuple(self._known.values())
        for load in known:
            if load.key == key or (every_namespace and load.key.name == key.name):
                load.cancel()

    def interrupt(self) -> None:
        """Ends the pauses of all loads: the server is about to stop."""
        with self._lock:
            known = tuple(self._known.values())
        for load in known:
            load.interrupt()

    def forget(self, load: Load) -> None:
        """Drops a load that has ended, or will never begin."""
        with self._lock:
            self._known.pop(id(load), None)

    def _add(self, load: Load) -> Load:
        with self._lock:
            self._known[id(load)] = load
        return load
