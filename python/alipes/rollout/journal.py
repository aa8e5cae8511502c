"""The journal of a rollout: one JSON document a line, written as things happen, and read to go on after a break."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from alipes.errors import ConfigError
from alipes.rollout.plan import RolloutPlan

__all__ = ["ENDS", "Journal"]

ENDS = ("promoted", "rolled back")
"""Events after which a rollout is over."""


class Journal:
    """Events of one rollout in a file; without a path they are kept nowhere."""

    def __init__(self, path: Path | None) -> None:
        """Opens nothing yet."""
        self._path = path

    def note(self, event: str, **more: Any) -> None:
        """Adds an event, on the disk when this returns."""
        if self._path is None:
            return
        line = json.dumps({"time": round(time.time(), 3), "event": event, **more})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    def begin(self, plan: RolloutPlan, servers: Sequence[str] = ()) -> float | None:
        """Notes the beginning of a rollout, or finds the one that was broken off.

        Args:
            plan: What the rollout does.
            servers: Addresses of the servers; those of one that goes on may be others.

        Returns:
            The share at which it goes on, in per cent; `None` where it begins.

        Raises:
            ConfigError: If the file holds another rollout that is not over, or is no journal.
        """
        wanted = {"model": plan.model, "stable": plan.stable, "candidate": plan.candidate, "steps": list(plan.steps)}
        share: float | None = None
        found: dict[str, Any] | None = None
        for event in self._events():
            if event["event"] == "began":
                found, share = {name: event.get(name) for name in wanted}, None
            elif event["event"] in ENDS:
                found, share = None, None
            elif event["event"] == "step":
                share = float(event["share"])
        if found is None:
            self.note("began", **wanted, servers=list(servers), tolerance=asdict(plan.tolerance))
            return None
        if found != wanted:
            raise ConfigError(
                f"{self._path}: the rollout of version {found['candidate']} of '{found['model']}' is not over",
                key="journal",
                hint="finish it with its own options, or name another file",
            )
        return share

    def _events(self) -> Iterator[dict[str, Any]]:
        if self._path is None or not self._path.exists():
            return
        for number, line in enumerate(self._path.read_text(encoding="utf-8").splitlines(), 1):
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
