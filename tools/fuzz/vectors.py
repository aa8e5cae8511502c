"""Inputs that broke a promise once, as files of the repository."""

from __future__ import annotations

import json
from pathlib import Path

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "vectors" / "fuzz"


def add(fuzzer: str, fact: str, data: bytes) -> None:
    """Adds an input, unless it is there."""
    file = VECTORS / f"{fuzzer}.json"
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    if any(vector["hex"] == data.hex() for vector in known):
        return
    lines = [json.dumps(vector) for vector in [*known, {"fact": fact, "hex": data.hex()}]]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[\n  " + ",\n  ".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{file}: {data[:80]!r}, {len(data)} bytes")
