"""The recorded scenarios, as the files under ``tests/golden`` hold them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .exchange.shared_memory import with_own_keys

GOLDEN = Path(__file__).parents[2] / "golden"
MODELS = GOLDEN / "models"

Step = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A few steps that belong together.

    Attributes:
        id: ``chapter.group.name``.
        title: What it shows, in a few words.
        steps: What is sent, each with what is expected.
    """

    id: str
    title: str
    steps: Sequence[Step]


@dataclass(frozen=True)
class Group:
    """Scenarios that meet one freshly started server, in this order: some of them look at its counters.

    Attributes:
        name: ``chapter.group``.
        repository: The folder under ``models`` that is served; None where the steps start servers themselves.
        args: Further arguments of the server.
        awaited: What the server has to be before the first step, ``ready`` or ``live``, or to listen on its ``port``.
        scenarios: The scenarios.
    """

    name: str
    repository: str | None
    args: Sequence[str]
    awaited: str
    scenarios: Sequence[Scenario]


@cache
def groups() -> dict[str, Group]:
    """All groups by name."""
    loaded = (_load(path) for path in sorted((GOLDEN / "scenarios").rglob("*.json")))
    return {group.name: group for group in loaded}


def _load(path: Path) -> Group:
    data = json.loads(with_own_keys(path.read_text(encoding="utf-8")))
    scenarios = [Scenario(entry["id"], entry["title"], entry["steps"]) for entry in data["scenarios"]]
    server = data["server"]
    name, awaited = f"{data['chapter']}.{data['group']}", server.get("wait", "ready")
    return Group(name, server["repository"], server["args"], awaited, scenarios)
