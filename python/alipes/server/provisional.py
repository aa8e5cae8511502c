"""Provisional loads: configurations that go away by themselves, unless their client loads them again in time.

A load request's configuration says so with the parameter `load.revert_after_s`, a number of seconds as text. Another
load of the model, or an unload, puts an end to that: the same load without the parameter keeps what is loaded, a load
without a configuration goes back at once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from alipes.config.limits import MAX_REVERT_AFTER_S
from alipes.server.failures import LoadFailed
from alipes.server.override import Override

__all__ = ["REVERT_AFTER", "Provisional", "split_revert_after"]

REVERT_AFTER: Final = "load.revert_after_s"
_OWN: Final = Override(None)
"""The repository's own configuration, read again although no file has changed."""


def split_revert_after(model: str, override: Override | None) -> tuple[Override | None, float | None]:
    """The override of a load request without the parameter, and its seconds; `None` where it has none.

    Raises:
        LoadFailed: If the seconds are no number from 1 to the limit, or files come along.
    """
    document = _document(override)
    parameters = document.get("parameters")
    if override is None or not isinstance(parameters, Mapping) or REVERT_AFTER not in parameters:
        return override, None
    seconds = _seconds(model, parameters[REVERT_AFTER])
    if override.files:
        raise _refused(model, "it cannot be said of a load with files")
    rest = {key: value for key, value in parameters.items() if key != REVERT_AFTER}
    return Override(json.dumps({**document, "parameters": rest})), seconds


def _document(override: Override | None) -> dict[str, object]:
    if override is None or override.config is None or REVERT_AFTER not in override.config:
        return {}
    try:
        document = json.loads(override.config)
    except (ValueError, RecursionError):  # the load says what is wrong with it
        return {}
    return document if isinstance(document, dict) else {}


def _seconds(model: str, parameter: object) -> float:
    value = parameter.get("string_value", parameter.get("stringValue")) if isinstance(parameter, Mapping) else None
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = float("nan")
    if not 1 <= seconds <= MAX_REVERT_AFTER_S:
        raise _refused(
            model, f"expected a string_value from 1 to {MAX_REVERT_AFTER_S} seconds, got {str(value)[:40]!r}"
        )
    return seconds


def _refused(model: str, reason: str) -> LoadFailed:
    return LoadFailed("INVALID_ARG", f"failed to load '{model}': parameter '{REVERT_AFTER}': {reason}")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A load that goes away.

    Attributes:
        before: What to go back to.
        seconds: How long it stays after it was loaded.
        deadline: When it goes, on the clock of the caller.
    """

    before: Override
    seconds: float
    deadline: float


class Provisional:
    """What each model goes back to, and when. Any thread may call it; the jobs of one model do not overlap."""

    def __init__(self) -> None:
        """Nothing is provisional."""
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        # Configurations of load requests that are in force, to go back to; `None` for one that brought files along.
        self._overrides: dict[str, Override | None] = {}

    def base(self, model: str) -> Override:
        """What a provisional load of the model is going to go back to.

        Raises:
            LoadFailed: If its files came with a load request: they cannot be loaded again.
        """
        with self._lock:
            entry = self._entries.get(model)
            before = entry.before if entry is not None else self._overrides.get(model, _OWN)
        if before is None:
            raise _refused(model, "its files came with a load request, so that there is nothing to go back to")
        return before

    def resolved(self, model: str, override: Override | None) -> Override | None:
        """The override of a request: one without a configuration goes back to what was before a provisional load."""
        with self._lock:
            entry = self._entries.get(model)
        return entry.before if override is None and entry is not None else override

    def begin(self, model: str, before: Override, seconds: float, now: float) -> None:
        """Notes that a model was loaded provisionally, or once more."""
        with self._lock:
            self._entries[model] = _Entry(before, seconds, now + seconds)

    def settle(self, model: str, override: Override | None) -> None:
        """Notes that a model was loaded for good; without an override it keeps the one that it has."""
        with self._lock:
            self._entries.pop(model, None)
            if override == _OWN:
                self._overrides.pop(model, None)
            elif override is not None:
                self._overrides[model] = None if override.files else override

    def forget(self, model: str) -> None:
        """Notes that a model was unloaded."""
        with self._lock:
            self._entries.pop(model, None)
            self._overrides.pop(model, None)

    def due(self, now: float) -> list[str]:
        """The models that have to go back."""
        with self._lock:
            return [model for model, entry in self._entries.items() if entry.deadline <= now]

    def take(self, model: str, now: float) -> tuple[Override, float] | None:
        """What a model goes back to, and the seconds that passed without a word; `None` where it stays after all."""
        with self._lock:
            entry = self._entries.get(model)
            if entry is None or entry.deadline > now:
                return None
            del self._entries[model]
            return entry.before, entry.seconds
