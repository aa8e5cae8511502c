"""A lock for each model: loads of different models never wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from alipes.types import ModelKey

__all__ = ["ModelLocks"]


@dataclass(slots=True)
class _Shared:
    """The lock of a model, and how many threads hold it or wait for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class ModelLocks:
    """Locks by model. One exists while a thread uses it: clients choose names, and choose new ones without end."""

    def __init__(self) -> None:
        """Holds no lock yet."""
        self._changing = threading.Lock()
        self._locks: dict[ModelKey, _Shared] = {}

    def __len__(self) -> int:
        """The number of models whose lock is in use."""
        return len(self._locks)

    @contextmanager
    def of(self, key: ModelKey) -> Iterator[None]:
        """Holds the lock of a model."""
        with self._changing:
            shared = self._locks.setdefault(key, _Shared())
            shared.users += 1
        try:
            with shared.lock:
                yield
        finally:
            with self._changing:
                shared.users -= 1
                if not shared.users:
                    del self._locks[key]
