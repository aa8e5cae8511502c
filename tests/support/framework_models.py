"""What tests of several frameworks share: why a model is not ready, and rows to send."""

from __future__ import annotations

import json
import urllib.request

from alipes import Client

from support.server import ServerProcess


def reason(server: ServerProcess, model: str) -> str:
    """Why a model is not ready."""
    request = urllib.request.Request(f"http://{server.http}/v2/repository/index", data=b"{}")
    with urllib.request.urlopen(request) as answer:
        [row] = [row for row in json.load(answer) if row["name"] == model]
    assert row["state"] == "UNAVAILABLE", row
    return str(row["reason"])


def executions(client: Client, model: str) -> int:
    """How many times a model was executed."""
    return int(client.statistics(model)[0]["execution_count"])


def parameter(key: str, value: str) -> str:
    """A parameter as `config.pbtxt` has it."""
    return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
