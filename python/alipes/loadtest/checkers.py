"""The answers of a load, checked: each kind of requests by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from alipes.client import Tls
from alipes.client.endpoint import Endpoint
from alipes.errors import ConfigError
from alipes.loadtest.check import Check, Checker, Wire
from alipes.loadtest.mix import Share, labels
from alipes.loadtest.window import Window

if TYPE_CHECKING:
    from alipes._core import LoadTestRecord

__all__ = ["Checkers"]


@dataclass(frozen=True)
class Checkers:
    """The checkers of a load.

    Attributes:
        each: Of each kind of requests; `None` where its answers are not checked.
        names: What each kind is called.
        samples: Most answers of a window that each thread keeps, of each kind.
    """

    each: Sequence[Checker | None]
    names: Sequence[str] = ()
    samples: int = 0

    @classmethod
    def of(cls, shares: Sequence[Share], check: Check | None, address: str, tls: Tls | None) -> Self:
        """The checkers of a mix: a share's own check, else that of the load.

        Raises:
            ConfigError: If outputs do not come with the answers.
        """
        checks = [share.check or check for share in shares]
        each = [
            None if one is None else _checker(one, share.requests, share.address or address, tls)
            for one, share in zip(checks, shares, strict=True)
        ]
        return cls(each, labels(shares), max((one.samples for one in checks if one is not None), default=0))

    def check(self, record: LoadTestRecord, window: Window) -> Window:
        """The window with what was wrong with answers that the record has kept of it."""
        if not any(self.each):
            return window
        if len(self.each) == 1:
            return _checked(self.each[0], record, window)
        parts = [
            _checked(checker, part, seen)
            for checker, part, seen in zip(self.each, record.parts, window.parts, strict=True)
        ]
        return replace(
            window, parts=tuple(parts), checked=sum(part.checked for part in parts), wrong=self._wrong(parts)
        )

    def _wrong(self, parts: Sequence[Window]) -> Mapping[str, int]:
        wrong: Counter[str] = Counter()
        for name, part in zip(self.names, parts, strict=True):
            for text, count in part.wrong.items():
                wrong[f"{name}: {text}"] += count
        return dict(wrong)


def _checker(check: Check, requests: object, address: str, tls: Tls | None) -> Checker:
    """What checks the answers to requests as they come from an address."""
    if getattr(requests, "shares_outputs", False):
        raise ConfigError("outputs in shared memory are not checked: they are written over each other", key="check")
    wire: Wire = "stream" if getattr(requests, "stream", False) else Endpoint.parse(address, tls).wire
    return Checker(check, wire)


def _checked(checker: Checker | None, record: LoadTestRecord, window: Window) -> Window:
    if checker is None:
        return window
    checked, wrong = checker.check(record.samples)
    return replace(window, checked=checked, wrong=wrong)
