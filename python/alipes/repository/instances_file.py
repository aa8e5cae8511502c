"""The file of a version whose instances are objects of a script: how many requests each works on side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

__all__ = ["MOST_SIDE_BY_SIDE", "read_side_by_side", "write_side_by_side"]

MOST_SIDE_BY_SIDE: Final = 4096
"""A link to a process, or to a thread of a script, has no more places."""

_FILE: Final = "instances.json"
_KEY: Final = "side_by_side"


def write_side_by_side(version_folder: Path, requests: int) -> None:
    """Writes it; 0 writes nothing."""
    if requests > 0:
        (version_folder / _FILE).write_text(json.dumps({_KEY: requests}), encoding="utf-8")


def read_side_by_side(version_folder: Path) -> int:
    """Requests that an instance works on side by side; 0 where nothing is said."""
    try:
        document = json.loads((version_folder / _FILE).read_bytes())
    except (OSError, ValueError):
        return 0
    requests = document.get(_KEY) if isinstance(document, dict) else None
    return min(max(requests, 0), MOST_SIDE_BY_SIDE) if isinstance(requests, int) else 0
