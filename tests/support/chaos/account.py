"""What became of every request: each ends exactly once, in a way that is allowed."""

from __future__ import annotations

import re
import threading
from collections import Counter

from support.endpoints import Refusal

_DIED = r"worker process of '(plain|batching|caller|callee|stream)_0_\d' .*"
_GONE = r"Model '\w+' is not ready: .*"
_POISONED = r"(Failed to process the request\(s\) for model '\w+', message: )?ValueError: poisoned.*"
_OF_CALLEE = rf"({_DIED}|{_GONE}|{_POISONED}|Model callee - Error when running inference: .*)"

# What a request may be refused with while workers die.
_ALLOWED = re.compile(
    rf"{_DIED}|{_GONE}|{_POISONED}"
    rf"|Failed to process the request\(s\) for model 'caller_0_\d', message: TritonModelException: {_OF_CALLEE}",
    re.DOTALL,
)

_NOT_READY = re.compile(_GONE, re.DOTALL)


class Account:
    """Counts by model and outcome. Any thread may write into it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sent: Counter[str] = Counter()
        self._ended: Counter[tuple[str, str]] = Counter()
        self.violations: list[str] = []

    def sent(self, model: str) -> None:
        """A request is about to be sent."""
        with self._lock:
            self._sent[model] += 1

    def answered(self, model: str, *, right: bool, what: object = "") -> None:
        """A request got its answer."""
        self._end(model, "answered")
        if not right:
            self.violation(f"a wrong answer of {model}: {what}")

    def refused(self, model: str, refusal: Refusal) -> None:
        """A request got an error. Where no worker could be started it may be turned away before it is booked."""
        self._end(model, "turned away" if _NOT_READY.fullmatch(refusal.text) else "refused")
        if not _ALLOWED.fullmatch(refusal.text):
            self.violation(f"an unexpected error of {model}: {refusal}")

    def dropped(self, model: str) -> None:
        """We went away before the answer."""
        self._end(model, "dropped")

    def violation(self, text: str) -> None:
        """Something that must not happen."""
        with self._lock:
            self.violations.append(text)

    def count(self, model: str, outcome: str) -> int:
        """Requests of a model that ended so."""
        with self._lock:
            return self._ended[model, outcome]

    def open(self, model: str) -> int:
        """Requests of a model that never ended."""
        with self._lock:
            return self._sent[model] - sum(count for (name, _), count in self._ended.items() if name == model)

    def text(self) -> str:
        """All counts, for people."""
        with self._lock:
            ended = ", ".join(f"{model} {outcome} {count}" for (model, outcome), count in sorted(self._ended.items()))
            return f"sent {sum(self._sent.values())}: {ended}"

    def _end(self, model: str, outcome: str) -> None:
        with self._lock:
            self._ended[model, outcome] += 1
