"""A request or response as a line of a table.

Columns are those of KServe's logger, in its order, so that what reads its tables reads these; five more follow.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from alipes.server.payloads.cloudevent import TYPES, moment
from alipes.server.payloads.sink import Payload

__all__ = ["COLUMNS", "Record", "record"]

Record = dict[str, Any]
"""By column: text, but for `tlsSkipVerify`, a truth, and `status`, an integer."""

COLUMNS: Final = (
    "url",
    "bytes",
    "contentType",
    "reqType",
    "id",
    "sourceUri",
    "inferenceService",
    "namespace",
    "component",
    "endpoint",
    "metadata",
    "annotations",
    "certName",
    "tlsSkipVerify",
    # What KServe's tables lack.
    "occurrenceTime",
    "modelVersion",
    "requestId",
    "status",
    "path",
)
"""The columns. Source: `logRecord` of KServe 0.20, whose settings `certName` and `tlsSkipVerify` are empty here."""


def record(payload: Payload, url: str, source: Mapping[str, str]) -> Record:
    """The record of a payload.

    Args:
        payload: The payload; its body becomes text in base64.
        url: Where the log goes.
        source: Attributes that say who sends it; `source` is one.
    """
    head = payload.head
    headers = {name: [value] for name, value in head["headers"].items()}
    return {
        "url": url,
        "bytes": base64.b64encode(payload.body).decode(),
        "contentType": head["content_type"],
        "reqType": TYPES[head["side"]],
        "id": head["exchange"],
        "sourceUri": source.get("source", ""),
        "inferenceService": source.get("inferenceservicename", ""),
        "namespace": source.get("namespace", ""),
        "component": source.get("component", ""),
        "endpoint": head["model"],
        "metadata": json.dumps(headers) if headers else "",
        "annotations": "",
        "certName": "",
        "tlsSkipVerify": False,
        "occurrenceTime": moment(head["unix_ns"]),
        "modelVersion": str(head["version"]),
        "requestId": head["request_id"],
        "status": head["status"],
        "path": head["path"],
    }
