"""Waiting for objects of a cluster: watched, read again now and then, and given up when a reason is known."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from alipes.cloud.kubernetes.findings import Finding
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.errors import CloudError, CloudTimeout
from alipes.progress import Task, task

__all__ = ["SETTLE_S", "Look", "Wait"]

_Value = TypeVar("_Value")

SETTLE_S: Final = 15.0
"""How long a reason that may pass by itself, such as an image that cannot be pulled, has to last to end a wait."""

_OUTAGE_S: Final = 300.0
"""How long the API server may not answer: one that is upgraded is away for minutes."""

_SETTLED_S: Final = 10.0
"""How long an API server that came back may refuse what it allowed before: it reads its rules first."""

_WATCH_S: Final = (1, 2, 3)
"""How long changes are watched before everything is read again, by chance, so that several waits do not ask at once."""


@dataclass(frozen=True)
class Look(Generic[_Value]):
    """What there is now.

    Attributes:
        value: What is waited for; None as long as it is not there.
        words: How far it has come.
        findings: Why it has not come further.
    """

    value: _Value | None
    words: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass
class Wait:
    """A wait for one object.

    Attributes:
        what: What is waited for, as messages name it.
        timeout_s: The longest wait; None sets no limit.
        settle_s: How long a reason that may pass has to last.
        clock: The time in seconds.
        pause: What sleeps.
        show: False shows no line: the caller has one of its own.
    """

    what: str
    timeout_s: float | None = None
    settle_s: float = SETTLE_S
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    show: bool | None = None
    _first_seen_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _begun_s: float | None = None

    @property
    def lasts_s(self) -> float:
        """How long it has lasted."""
        return 0.0 if self._begun_s is None else self.clock() - self._begun_s

    def until(
        self,
        look: Callable[[], Look[_Value]],
        changed: Callable[[int], None],
        explain: Callable[[Finding], str] = lambda finding: finding.text,
    ) -> _Value:
        """What is waited for, once it is there.

        Args:
            look: Reads what there is.
            changed: Returns once something has changed, or after so many seconds.
            explain: The text of a finding that ends the wait.

        Raises:
            CloudError: If it cannot come, with the reason.
            CloudTimeout: If it does not come in time.
        """
        self._begun_s = self.clock()
        outage = _Outage(self)
        with task(f"waiting for {self.what}", show=self.show) as shown:
            while True:
                seen = outage.survived(look, shown)
                if seen is not None:
                    if seen.value is not None:
                        return seen.value
                    shown.step(seen.words)
                    if (final := self._final(seen)) is not None:
                        text = f"{self.what} cannot become ready: {explain(final)}"
                        raise CloudError(text, reason=final.reason)
                if self.timeout_s is not None and self.lasts_s >= self.timeout_s:
                    raise self._late(seen)
                if seen is not None:
                    self._watch(changed)

    def _watch(self, changed: Callable[[int], None]) -> None:
        """Returns once something has changed, or after a while. If that cannot be watched, the next look says why."""
        for_s = self._watch_s()
        try:
            changed(for_s)
        except NoAnswer:
            return
        except Refused as error:
            if error.status == 403:  # reading is allowed, as the look shows, and watching is not
                self.pause(for_s)

    def _watch_s(self) -> int:
        """How long changes are watched next: not much beyond the end of the wait."""
        chosen = random.choice(_WATCH_S)
        return chosen if self.timeout_s is None else max(1, min(chosen, int(self.timeout_s - self.lasts_s)))

    def _final(self, seen: Look[_Value]) -> Finding | None:
        """The finding that ends the wait: a final one, or one that has lasted. What explains it best comes first."""
        now_s = self.clock()
        keys = {finding.key for finding in seen.findings}
        self._first_seen_s = {key: self._first_seen_s.get(key, now_s) for key in keys}
        lasting = [
            finding
            for finding in seen.findings
            if finding.is_final or (not finding.may_pass and now_s - self._first_seen_s[finding.key] >= self.settle_s)
        ]
        if not lasting:
            return None
        # That it does not progress says less than why a pod does not start.
        others = [finding for finding in seen.findings if finding.reason != "ProgressDeadlineExceeded"]
        by_weight = sorted(others, key=lambda finding: (finding not in lasting, finding.may_pass))
        return by_weight[0] if by_weight else lasting[0]

    def _late(self, seen: Look[_Value] | None) -> CloudTimeout:
        known = "" if seen is None else "; ".join([seen.words, *(finding.text for finding in seen.findings)])
        text = f"{self.what} is not ready after {self.timeout_s:g} s: {known or 'the API server does not answer'}"
        return CloudTimeout(text, reason=seen.findings[0].reason if seen is not None and seen.findings else "Timeout")


class _Outage:
    """Times in which the API server does not answer."""

    def __init__(self, wait: Wait) -> None:
        self._wait = wait
        self._begun_s: float | None = None
        self._over_s: float | None = None
        self._tried = 0

    def survived(self, look: Callable[[], Look[_Value]], shown: Task) -> Look[_Value] | None:
        """What is seen; None, after a pause, while the API server does not answer."""
        try:
            seen = look()
        except NoAnswer as error:
            self._begin(error)
            shown.step(f"{error}; asked again")
        except Refused as error:
            if not self._is_recent() or error.status not in (401, 403):
                raise
        else:
            if self._begun_s is not None:
                self._begun_s, self._over_s, self._tried = None, self._wait.clock(), 0
            return seen
        self._tried += 1
        self._wait.pause(min(0.1 * 2**self._tried, 5.0) * random.uniform(0.5, 1.0))
        return None

    def _begin(self, error: NoAnswer) -> None:
        now_s = self._wait.clock()
        if self._begun_s is None:
            self._begun_s = now_s
        if now_s - self._begun_s >= _OUTAGE_S:
            raise CloudError(f"{self._wait.what}: for {_OUTAGE_S:g} s {error}", reason="NoAnswer") from error

    def _is_recent(self) -> bool:
        return self._begun_s is not None or (
            self._over_s is not None and self._wait.clock() - self._over_s < _SETTLED_S
        )
