"""A lock for each key: what is done to different models never waits for each other."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Generic, TypeVar

from alipes.model_load import Load

__all__ = ["KeyedLocks"]

Key = TypeVar("Key", bound=Hashable)


class KeyedLocks(Generic[Key]):
    """Locks by key. One exists while it is held: clients choose names, and choose new ones without end."""

    def __init__(self) -> None:
        """Holds no lock yet."""
        self._changed = threading.Condition()
        self._held: set[Key] = set()

    def __len__(self) -> int:
        """The number of keys whose lock is held."""
        return len(self._held)

    @contextmanager
    def of(self, key: Key, load: Load | None = None) -> Iterator[None]:
        """Holds the lock of a key.

        Args:
            key: The key.
            load: The load that needs it. The time in which it waits here is not its own.

        Raises:
            LoadCancelled: If the load is cancelled before it has the lock.
        """
        self._take(key, load)
        try:
            yield
        finally:
            with self._changed:
                self._held.discard(key)
                self._changed.notify_all()

    def _take(self, key: Key, load: Load | None) -> None:
        with ExitStack() as stack:
            if load is not None:
                stack.enter_context(load.ending(self._wake))
                stack.enter_context(load.waiting())
            stack.enter_context(self._changed)
            while key in self._held:
                if load is not None:
                    load.check()
                self._changed.wait()
            self._held.add(key)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
