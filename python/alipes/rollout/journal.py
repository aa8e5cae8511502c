"""The journal of a rollout: one JSON document a line, written as things happen, and read to go on after a break."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from alipes.errors import ConfigError
from alipes.rollout.plan import Plan

__all__ = ["PROMOTED", "ROLLED_BACK", "Journal", "Resumed"]

PROMOTED: Final = "promoted"
ROLLED_BACK: Final = "rolled back"

_ENDS: Final = frozenset({PROMOTED, ROLLED_BACK})
"""Events after which a rollout is over."""

_FIRST_KEY: Final = "time"
_EVENT: Final = ', "event": "'


@dataclass(frozen=True, slots=True)
class Resumed:
    """Where a rollout goes on that was broken off.

    Attributes:
        share: The share of its step, in per cent; `None` before the first step.
        reason: Why its candidate was being taken back; `None` where it was not.
    """

    share: float | None = None
    reason: str | None = None


class Journal:
    """Events of one rollout in a file; without a path they are kept nowhere."""

    def __init__(self, path: Path | None) -> None:
        """Opens nothing yet."""
        self._path = path

    def note(self, event: str, **more: Any) -> None:
        """Adds an event, on the disk when this returns."""
        if self._path is None:
            return
        line = json.dumps({_FIRST_KEY: round(time.time(), 3), "event": event, **more})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def begin(self, plan: Plan[Any], servers: Sequence[str] = ()) -> Resumed | None:
        """Notes the beginning of a rollout, or finds the one that was broken off.

        Args:
            plan: What the rollout does.
            servers: Addresses of the servers; those of one that goes on may be others.

        Returns:
            Where it goes on; `None` where it begins.

        Raises:
            ConfigError: If the file holds another rollout that is not over, or is no journal.
        """
        wanted = plan.identity()
        found, resumed = self._unfinished()
        self._drop_torn_line()
        if found is None:
            self.note("began", **wanted, servers=list(servers), tolerance=asdict(plan.tolerance))
            return None
        if {name: found.get(name) for name in wanted} != wanted:
            raise ConfigError(
                f"{self._path}: the rollout of version {found['candidate']} of '{found['model']}' is not over",
                key="journal",
                hint="finish it with its own options, or name another file",
            )
        return resumed

    def unfinished(self) -> dict[str, Any] | None:
        """What was noted of the rollout that is not over when it began, if there is one.

        Raises:
            ConfigError: If the file is no journal.
        """
        return self._unfinished()[0]

    def _drop_torn_line(self) -> None:
        """Takes away a last line without its end, as a full disk leaves it: what it stands for is done again."""
        if self._path is not None and self._path.exists():
            with self._path.open("r+b") as file:
                file.truncate(file.read().rfind(b"\n") + 1)

    def _unfinished(self) -> tuple[dict[str, Any] | None, Resumed]:
        found: dict[str, Any] | None = None
        resumed = Resumed()
        for event in self._events():
            if event["event"] == "began":
                found, resumed = event, Resumed()
            elif event["event"] in _ENDS:
                found = None
            elif event["event"] == "step":
                resumed = Resumed(float(event["share"]))
            elif event["event"] == "taking back":
                resumed = Resumed(resumed.share, event["reason"])
        return found, resumed

    def _events(self) -> Iterator[dict[str, Any]]:
        if self._path is None or not self._path.exists():
            return
        text = self._path.read_text(encoding="utf-8", errors="replace")
        *lines, last = text.split("\n")
        if not _is_torn(last):
            lines.append(last)
        for number, line in enumerate(lines, 1):
            try:
                event = json.loads(line)
                event["event"]
            except (ValueError, KeyError, TypeError) as error:
                raise ConfigError(
                    f"{self._path}, line {number}: this is no journal of a rollout",
                    key="journal",
                    hint="name another file",
                ) from error
            yield event


def _is_torn(last: str) -> bool:
    """Whether what follows the last end of a line is nothing, or the beginning of an event."""
    before_event = re.match(rf'\{{"{_FIRST_KEY}": [\d.]*', last)
    if before_event is None:
        return f'{{"{_FIRST_KEY}": '.startswith(last)
    rest = last[before_event.end() :]
    return rest.startswith(_EVENT) or _EVENT.startswith(rest)
