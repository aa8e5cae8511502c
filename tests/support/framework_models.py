"""What tests of several frameworks share: why a model is not ready, and rows to send."""

from __future__ import annotations

import json
import urllib.request

from support.server import ServerProcess


def reason(server: ServerProcess, model: str) -> str:
    """Why a model is not ready."""
    request = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}")
    with urllib.request.urlopen(request) as answer:
        [row] = [row for row in json.load(answer) if row["name"] == model]
    assert row["state"] == "UNAVAILABLE", row
    return str(row["reason"])
