"""A client's objects of shared memory."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..bodies import encode

_FOLDER = Path("/dev/shm")

# Groups that run beside each other use the same keys.
_OURS = f"/golden{os.getpid()}_"


def with_own_keys(text: str) -> str:
    """A recorded group with keys that no other process uses."""
    return text.replace("/golden_", _OURS)


def exchange(step: Mapping[str, Any]) -> dict[str, Any]:
    """Does what a `shm` step says; the content, where it reads."""
    spec = step["shm"]
    path = _FOLDER / spec["key"].lstrip("/")
    match spec["op"]:
        case "create":
            data = encode(spec["data"]) if "data" in spec else b""
            path.write_bytes(data.ljust(spec["size"], b"\0"))
        case "write":
            with path.open("r+b") as file:
                file.seek(spec.get("offset", 0))
                file.write(encode(spec["data"]))
        case "read":
            content = path.read_bytes()[: spec["size"]]
            return {"content": {"base64": base64.b64encode(content).decode()}}
        case "remove":
            path.unlink(missing_ok=True)
        case other:
            raise AssertionError(f"unknown operation {other}")
    return {}
